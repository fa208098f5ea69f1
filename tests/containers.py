"""Kafka and Redis through testcontainers, where a Docker engine answers and has their images."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import docker
from docker.errors import DockerException
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

# The sweeper would be an image to pull; our containers end with their context.
testcontainers_config.ryuk_disabled = True

KAFKA_IMAGE = "sluice-kafka:4.3.1"
REDIS_IMAGE = "sluice-redis:7.0"
LOOPBACK = "127.0.0.1"


@contextmanager
def servers() -> Iterator[dict[str, str]]:
    """The settings of both while they run; nothing where they can't, and the embedded stack has its own."""
    if not _images_exist():
        yield {}
        return
    kafka_port, redis_port = _free_port(), _free_port()
    kafka_password, redis_password = secrets.token_hex(16), secrets.token_hex(16)
    kafka = _container(
        KAFKA_IMAGE,
        ports={"19092/tcp": (LOOPBACK, kafka_port)},
        says="Kafka Server started",
        SLUICE_KAFKA_PASSWORD=kafka_password,
        KAFKA_INSIDE="127.0.0.1:9092",
        KAFKA_HOST=f"{LOOPBACK}:{kafka_port}",
    )
    redis = _container(
        REDIS_IMAGE,
        ports={"6379/tcp": (LOOPBACK, redis_port)},
        says="Ready to accept connections",
        SLUICE_REDIS_PASSWORD=redis_password,
    )
    with kafka, redis:
        yield {
            "SLUICE_KAFKA": f"{LOOPBACK}:{kafka_port}",
            "SLUICE_KAFKA_USERNAME": "sluice",
            "SLUICE_KAFKA_PASSWORD": kafka_password,
            "SLUICE_REDIS": f"redis://:{redis_password}@{LOOPBACK}:{redis_port}/0",
        }


def _container(
    image: str, *, ports: dict[str, tuple[str, int]], says: str, **settings: str
) -> DockerContainer:
    container = DockerContainer(image).with_envs(**settings).waiting_for(LogMessageWaitStrategy(says))
    container.ports.update(ports)  # its own method knows no addresses, and would open the port to everybody
    return container


def _images_exist() -> bool:
    try:
        engine = docker.from_env(timeout=5)
    except DockerException:  # also when nobody listens: it asks for the engine's version
        return False
    try:
        for image in (KAFKA_IMAGE, REDIS_IMAGE):
            engine.images.get(image)
    except DockerException:
        return False
    finally:
        engine.close()
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
