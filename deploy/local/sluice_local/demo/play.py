"""What happens, scene by scene. Each goes on until what it is to show was seen, or that has taken too long: a
slow machine makes it longer, and what did not happen is said at the end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from sluice_local.demo import scenario
from sluice_local.demo.api import Api
from sluice_local.demo.audit import Account
from sluice_local.demo.observation import Observation
from sluice_local.demo.operators import Operator, Ray, Spark
from sluice_local.demo.scenario import BATCH, CAPACITY, ETL, ML, TENANTS, Tenant

_EVERY_S: Final = 0.1
_WITHIN_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    title: str
    begin: Callable[[], None]
    is_seen: Callable[[], bool]
    stays_s: float  # once it is seen, for people to see it too


class Play(threading.Thread):
    """`title` says what goes on; `is_over` when there is nothing more to come."""

    def __init__(self, api: Api, observation: Observation, account: Account, lock: threading.Lock) -> None:
        super().__init__(name="play", daemon=True)
        self._api = api
        self._observation = observation
        self._account = account
        self._lock = lock
        self._spark = Spark(api)
        self._ray = Ray(api)
        self._error: Exception | None = None
        self.title = ""
        self.is_over = False
        self.unseen: list[str] = []  # scenes that took too long

    @property
    def operators(self) -> tuple[Operator, ...]:
        return self._spark, self._ray

    @property
    def error(self) -> Exception | None:
        return next((each.error for each in self.operators if each.error), self._error)

    def run(self) -> None:
        try:
            for operator in self.operators:
                operator.start()
            for scene in self._scenes():
                self.title = scene.title
                scene.begin()
                if self._wait(scene.is_seen):
                    time.sleep(scene.stays_s)
                else:
                    self.unseen.append(scene.title)
        except Exception as error:
            self._error = error
        finally:
            for operator in self.operators:
                operator.end()
            self.is_over = True

    def _wait(self, is_seen: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + _WITHIN_S
        while time.monotonic() < deadline:
            with self._lock:
                if is_seen():
                    return True
            time.sleep(_EVERY_S)
        return False

    def _scenes(self) -> Iterator[Scene]:
        yield Scene(
            title="etl's Spark application wants more executors than there is room for",
            begin=self._etl_comes,
            is_seen=lambda: self._is_full() and self._waits(ETL) and ETL.name in self._account.partial,
            stays_s=6.0,
        )
        yield Scene(
            title="ml comes with a RayCluster, and etl gives up what it has too much of",
            begin=self._ml_comes,
            is_seen=lambda: (
                bool(self._account.reclaimed[ETL.name])
                and self._runs(ML) > scenario.RAY_LEAST + 2
                and self._waits(ML)
            ),
            stays_s=6.0,
        )
        yield Scene(
            title="batch comes with a Job of parallel pods, admitted four at once",
            begin=lambda: self._create(BATCH),
            is_seen=lambda: self._runs(BATCH) > scenario.JOB_STARTS_WITH,
            stays_s=5.0,
        )
        yield Scene(
            title="the Job's pods succeed, and the others grow into what they give back",
            begin=lambda: None,
            is_seen=lambda: self._account.succeeded[BATCH.name] >= scenario.JOB_PODS,
            stays_s=5.0,
        )
        yield Scene(
            title="etl's large stage is through: Spark lets executors go, and Ray grows",
            begin=lambda: self._want(self._spark, scenario.SPARK_LEAST),
            is_seen=lambda: (
                self._runs(ETL) == 1 + scenario.SPARK_LEAST and self._runs(ML) == 1 + scenario.RAY_WANTS
            ),
            stays_s=6.0,
        )
        yield Scene(
            title="ml needs fewer workers: its autoscaler gives them back",
            begin=lambda: self._want(self._ray, scenario.RAY_LEAST),
            is_seen=lambda: self._runs(ML) == 1 + scenario.RAY_LEAST,
            stays_s=4.0,
        )
        yield Scene(
            title="the driver ends, the RayCluster is deleted: all accounts close",
            begin=self._end,
            is_seen=self._is_settled,
            stays_s=1.0,
        )

    def _etl_comes(self) -> None:
        self._create(ETL)
        self._want(self._spark, scenario.SPARK_WANTS)

    def _ml_comes(self) -> None:
        self._create(ML)
        self._want(self._ray, scenario.RAY_WANTS)

    def _end(self) -> None:
        self._spark.exit()
        self._api.delete(ML.application_path)

    def _create(self, tenant: Tenant) -> None:
        self._api.create(tenant.applications_path, scenario.application(tenant))

    def _want(self, operator: Operator, pods: int) -> None:
        operator.wants = pods

    def _is_full(self) -> bool:
        return self._observation.held("cpu") >= CAPACITY["cpu"]

    def _waits(self, tenant: Tenant) -> bool:
        return self._observation.tenants[tenant.name].waiting > 0

    def _runs(self, tenant: Tenant) -> int:
        return self._observation.tenants[tenant.name].running

    def _is_settled(self) -> bool:
        """Nothing is left in the cluster, and Sluice has said so."""
        told = all(tenant.name in self._account.reports for tenant in TENANTS)
        phases = [self._observation.phase(tenant) for tenant in TENANTS]
        ended = all(phase in ("Finished", "gone") for phase in phases)
        return self._observation.is_quiet and told and self._account.is_settled and ended
