"""The scheduler's consumer logs in to Kafka as every other client of ours does, encrypted or not."""

from __future__ import annotations

import certifi
import pytest
from sluice.kafka import client_options
from sluice.settings import Settings
from sluice_scheduler.app import build

#: Any authority will do: nobody is called.
AUTHORITY = certifi.where()


@pytest.mark.parametrize("username", ["", "sluice"])
@pytest.mark.parametrize("authority", ["", AUTHORITY])
def test_faust_is_told_what_the_other_clients_are(username: str, authority: str) -> None:
    settings = Settings(kafka_username=username, kafka_password="secret", kafka_tls_ca=authority)
    credentials = build(settings, "").conf.broker_credentials
    protocol = "PLAINTEXT" if credentials is None else str(credentials.protocol.value)
    assert protocol == client_options(settings).get("security_protocol", "PLAINTEXT")
