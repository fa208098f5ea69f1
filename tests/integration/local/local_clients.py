"""Ordinary clients of a stack's servers, as its users have them."""

import subprocess
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from redis import Redis
from sluice_local import Stack


def kubectl(stack: Stack, *arguments: str, stdin: str = "") -> str:
    environment = stack.user_env()
    run = subprocess.run(
        ["kubectl", *arguments], env=environment, input=stdin, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def redis_client(stack: Stack) -> Redis:
    return Redis.from_url(stack.endpoints.redis, decode_responses=True)


def kafka_settings(stack: Stack) -> dict[str, Any]:
    endpoints = stack.endpoints
    return {
        "bootstrap_servers": endpoints.kafka,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": endpoints.kafka_username,
        "sasl_plain_password": endpoints.kafka_password,
    }


def publish(stack: Stack, topic: str, value: bytes) -> None:
    admin = KafkaAdminClient(**kafka_settings(stack))
    if topic not in admin.list_topics():
        admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    admin.close()
    producer = KafkaProducer(**kafka_settings(stack), acks="all")
    producer.send(topic, value).get(timeout=10)
    producer.close()


def published(stack: Stack, topic: str) -> list[bytes]:
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(**kafka_settings(stack))
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    end = consumer.end_offsets([partition])[partition]
    values: list[bytes] = []
    while consumer.position(partition) < end:
        for records in consumer.poll(timeout_ms=1_000).values():
            values += [record.value for record in records]
    consumer.close()
    return values
