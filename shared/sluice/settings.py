"""Settings of every service, from the environment: `SLUICE_KAFKA=host:port` and so on."""

from __future__ import annotations

import argparse
import json
import re
import sys
from textwrap import wrap
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, SettingsConfigDict

from sluice.applications import APPLICATION_KINDS
from sluice.crds.values import Cell, LabelSelector
from sluice.programs import ends_quietly
from sluice.vocabulary import DEFAULT_CELL

_PREFIX: Final = "SLUICE_"


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, frozen=True, use_attribute_docstrings=True, enable_decoding=False
    )

    kafka: str = "127.0.0.1:9092"
    """Kafka's bootstrap servers, `host:port[,host:port]`."""
    kafka_username: str = ""
    """Name for SASL/PLAIN; empty: no authentication."""
    kafka_password: str = Field(default="", repr=False)
    """The password that goes with it."""
    kafka_tls_ca: str = ""
    """File with the authority that signed Kafka's certificate; empty: no TLS."""
    redis: str = Field(default="redis://127.0.0.1:6379/0", repr=False)
    """Redis' URL, with password; `rediss://` for TLS."""
    redis_replicas: int = Field(default=0, ge=0)
    """So many replicas of Redis, 7.2 or later with `appendonly yes`, have a commit on their disks before
    anything follows from it; 0: Redis is not replicated, or a fail-over may lose the last commits."""
    topics: str = "sluice"
    """What the topics' names begin with: `<topics>.events.v1`, `<topics>.decisions.v1`,
    `<topics>.snapshots.v1`."""
    topic_replicas: int = Field(default=1, ge=1)
    """Replication factor of topics that do not exist yet."""
    cluster: str = "local"
    """The name of the cluster that this service talks to; the cell's home for the scheduler."""
    clusters: tuple[str, ...] = ()
    """Every cluster that the cells span, as JSON: `["earth", "moon"]`; empty: `cluster` alone."""
    cells: dict[Cell, Annotated[int, Field(ge=0)]] = Field(default={DEFAULT_CELL: 0}, min_length=1)
    """Each cell's partition, as JSON: `{"default": 0}`."""
    policy: str = "drf"
    """The name of the policy that orders claims (entry point group `sluice.policies`)."""
    half_life_seconds: int = Field(default=3600, ge=1)
    """After so long a use counts half, under policies that look back (`usage-drf`)."""
    tenure_seconds: int = Field(default=3600, ge=0)
    """So long a pod or gang that lifts its queue above what it deserves is left in place while others deserve
    the room; a Queue may say otherwise."""
    patience_seconds: int = Field(default=300, ge=0)
    """A claim whose turn has come and that has not fitted for so long gets what becomes free kept for it; a
    Queue may say otherwise."""
    reclaim_after_seconds: int = Field(default=1, ge=0)
    """A claim pushes nobody out before it has waited so long."""
    start_deadline_seconds: int = Field(default=600, ge=0)
    """What an application was granted and none of its pods has come for in so long goes to others; 0: never.
    A Queue may say otherwise."""
    termination_seconds: int = Field(default=600, ge=1)
    """A pod that is evicted has no longer than this to end, whatever `terminationGracePeriodSeconds` it has; where
    that is shorter, it holds."""
    validate_ticks: int = Field(default=10, ge=0)
    """Every so many ticks the scheduler compares a piece of what it has derived with what its accounts say, for
    some milliseconds; 0: never. What differs is logged and counted, and stops nothing."""
    snapshot_records: int = Field(default=100_000, ge=0)
    """Behind so many records the scheduler writes down what its ledger holds, for replays to begin with; 0: it
    goes by time alone."""
    snapshot_minutes: int = Field(default=60, ge=0)
    """And after so many minutes; 0: it goes by records alone. Both 0: never."""
    managed_selector: dict[str, str] = Field(default={"sluice.dev/managed": "true"})
    """Labels of managed namespaces, as JSON. The policies in deploy/policies must match the same."""
    pod_selector: LabelSelector = LabelSelector()
    """The pods that go through Sluice, as JSON, in Kubernetes' form of a label selector; others are
    unmanaged. The policies in deploy/policies must match the same."""
    applications: tuple[str, ...] = tuple(APPLICATION_KINDS)
    """The kinds of applications that are admitted as a whole, as JSON: `["Job", "RayCluster"]`. A kind that
    is not installed in the cluster holds nothing up."""
    application_selector: dict[str, str] = Field(default={})
    """Labels of the applications that are admitted as a whole, as JSON; pods of others stand for themselves.
    The policies in deploy/policies must match the same."""
    http: str = "127.0.0.1:0"
    """Where /healthz, /readyz and /metrics are served; port 0 picks a free one."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    @field_validator(
        "clusters",
        "cells",
        "managed_selector",
        "pod_selector",
        "applications",
        "application_selector",
        mode="before",
    )
    @classmethod
    def _read_json(cls, value: Any) -> Any:
        try:
            return json.loads(value) if isinstance(value, str) else value
        except ValueError as error:
            raise ValueError(f"this is no JSON: {error}") from error

    @field_validator("cells")
    @classmethod
    def _share_no_partition(cls, cells: dict[str, int]) -> dict[str, int]:
        if len(set(cells.values())) != len(cells):
            raise ValueError("two cells share a partition; give each its own")
        return cells

    @field_validator("clusters")
    @classmethod
    def _contain_our_own(cls, clusters: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        own = info.data.get("cluster")
        if clusters and own not in clusters:
            raise ValueError(f"must contain this service's own cluster {own!r}")
        return clusters

    @field_validator("applications")
    @classmethod
    def _are_known(cls, applications: tuple[str, ...]) -> tuple[str, ...]:
        unknown = sorted(set(applications) - set(APPLICATION_KINDS))
        if unknown:
            raise ValueError(
                f"{', '.join(unknown)} is no kind that is known; there are {', '.join(APPLICATION_KINDS)}"
            )
        return applications

    @field_validator("http")
    @classmethod
    def _names_a_port(cls, http: str) -> str:
        port = http.rpartition(":")[2]
        if not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65_535:
            raise ValueError("write host:port, with a port from 0 to 65535")
        return http

    @property
    def events_topic(self) -> str:
        return f"{self.topics}.events.v1"

    @property
    def decisions_topic(self) -> str:
        return f"{self.topics}.decisions.v1"

    @property
    def snapshots_topic(self) -> str:
        return f"{self.topics}.snapshots.v1"

    @property
    def all_clusters(self) -> tuple[str, ...]:
        return self.clusters or (self.cluster,)

    def cell_of(self, partition: int) -> str:
        return next(cell for cell, number in self.cells.items() if number == partition)

    @property
    def http_address(self) -> tuple[str, int]:
        host, _, port = self.http.rpartition(":")
        return host.strip("[]") or "127.0.0.1", int(port)


def load() -> Settings:
    """Settings from the environment, or an exit with a sentence for each that is wrong."""
    try:
        return Settings()
    except ValidationError as error:
        for problem in error.errors(include_url=False):
            field = str(problem["loc"][0])
            why = problem.get("ctx", {}).get("error", problem["msg"])
            got = f" (got {problem['input']!r})" if Settings.model_fields[field].repr else ""
            print(f"{_PREFIX}{field.upper()}: {why}{got}", file=sys.stderr)
        raise SystemExit(2) from None


def load_for(program: str, does: str) -> Settings:
    """Settings of a program that takes no arguments; `--help` says what there is to set."""
    parser = argparse.ArgumentParser(
        prog=program,
        description=f"{does} It takes its settings from the environment:",
        epilog="\n".join(_told_of(name, field) for name, field in Settings.model_fields.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    with ends_quietly():
        parser.parse_args()
    return load()


def _told_of(name: str, field: FieldInfo) -> str:
    default = field.default if isinstance(field.default, str) else json.dumps(field.default, default=dict)
    lines = wrap(
        field.description or "", 76, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
    )
    return "\n".join([f"{_PREFIX}{name.upper()}={default}", *lines])
