"""Settings of every service, from the environment: `SLUICE_KAFKA=host:port` and so on."""

from __future__ import annotations

import sys
from typing import Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from sluice.applications import APPLICATION_KINDS
from sluice.vocabulary import DEFAULT_CELL


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="SLUICE_", frozen=True, use_attribute_docstrings=True)

    kafka: str = "127.0.0.1:9092"
    """Kafka's bootstrap servers, `host:port[,host:port]`."""
    kafka_username: str = ""
    """Name for SASL/PLAIN; empty: no authentication."""
    kafka_password: str = Field(default="", repr=False)
    kafka_tls_ca: str = ""
    """File with the authority that signed Kafka's certificate; empty: no TLS."""
    redis: str = Field(default="redis://127.0.0.1:6379/0", repr=False)
    """Redis' URL, with password; `rediss://` for TLS."""
    topics: str = "sluice"
    """What the topics' names begin with: `<topics>.events.v1`, `<topics>.decisions.v1`."""
    topic_replicas: int = Field(default=1, ge=1)
    """Replication factor of topics that do not exist yet."""
    cluster: str = "local"
    """The name of the cluster that this service talks to; the cell's home for the scheduler."""
    clusters: tuple[str, ...] = ()
    """Every cluster that the cells span; default: `cluster` alone."""
    cells: dict[str, int] = Field(default={DEFAULT_CELL: 0})
    """Each cell's partition, as JSON: `{"default": 0}`."""
    policy: str = "drf"
    """The name of the policy that orders claims (entry point group `sluice.policies`)."""
    half_life_seconds: int = Field(default=3600, ge=1)
    """After so long a use counts half, under policies that look back (`usage-drf`)."""
    managed_selector: dict[str, str] = Field(default={"sluice.dev/managed": "true"})
    """Labels of managed namespaces, as JSON. The policies in deploy/policies must match the same."""
    applications: tuple[str, ...] = tuple(APPLICATION_KINDS)
    """The kinds of applications that are admitted as a whole, as JSON: `["Job", "RayCluster"]`. A kind that
    is not installed in the cluster holds nothing up."""
    application_selector: dict[str, str] = Field(default={})
    """Labels of the applications that are admitted as a whole, as JSON; pods of others stand for themselves.
    The policies in deploy/policies must match the same."""
    http: str = "127.0.0.1:0"
    """Where /healthz, /readyz and /metrics are served; port 0 picks a free one."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    @model_validator(mode="after")
    def _check(self) -> Settings:
        if len(set(self.cells.values())) != len(self.cells):
            raise ValueError("cells: two cells share a partition; give each its own")
        if self.clusters and self.cluster not in self.clusters:
            raise ValueError(f"clusters: must contain this service's own cluster {self.cluster!r}")
        unknown = sorted(set(self.applications) - set(APPLICATION_KINDS))
        if unknown:
            raise ValueError(
                f"applications: {', '.join(unknown)} is no kind that is known; "
                f"there are {', '.join(APPLICATION_KINDS)}"
            )
        return self

    @property
    def events_topic(self) -> str:
        return f"{self.topics}.events.v1"

    @property
    def decisions_topic(self) -> str:
        return f"{self.topics}.decisions.v1"

    @property
    def all_clusters(self) -> tuple[str, ...]:
        return self.clusters or (self.cluster,)

    def cell_of(self, partition: int) -> str:
        return next(cell for cell, number in self.cells.items() if number == partition)

    @property
    def http_address(self) -> tuple[str, int]:
        host, _, port = self.http.rpartition(":")
        return host or "127.0.0.1", int(port)


def load() -> Settings:
    """Settings from the environment, or an exit with a sentence for each that is wrong."""
    try:
        return Settings()
    except ValidationError as error:
        for problem in error.errors(include_url=False):
            name = "_".join(["SLUICE", *(str(part).upper() for part in problem["loc"][:1])])
            print(f"{name}: {problem['msg']} (got {problem['input']!r})", file=sys.stderr)
        raise SystemExit(2) from None
