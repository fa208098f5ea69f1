"""The scenes of `make demo`, with stand-ins for the operators."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from sluice_local.demo import scenario
from sluice_local.demo.api import Api
from sluice_local.demo.audit import Account
from sluice_local.demo.observation import Observation
from sluice_local.demo.operators import Operator, Ray, Spark
from sluice_local.demo.play import Play, Scene
from sluice_local.demo.scenario import BATCH, CAPACITY, ETL, ML, Tenant


class Simulated(Play):
    def __init__(self, api: Api, observation: Observation, account: Account, lock: threading.Lock) -> None:
        super().__init__(api, observation, account, lock)
        self._spark = Spark(api)
        self._ray = Ray(api)

    @property
    def operators(self) -> tuple[Operator, ...]:
        return self._spark, self._ray

    @property
    def error(self) -> Exception | None:
        return next((each.error for each in self.operators if each.error), super().error)

    def run(self) -> None:
        for operator in self.operators:
            operator.start()
        super().run()
        for operator in self.operators:
            operator.end()

    def scenes(self) -> Iterator[Scene]:
        yield Scene(
            title="etl's Spark application wants more executors than there is room for",
            begin=self._etl_comes,
            is_seen=lambda: self._is_full() and self._waits(ETL) and ETL.name in self.account.partial,
            stays_s=6.0,
        )
        yield Scene(
            title="ml comes with a RayCluster, and etl gives up what it has too much of",
            begin=self._ml_comes,
            is_seen=lambda: (
                bool(self.account.reclaimed[ETL.name])
                and self.runs(ML) > scenario.RAY_LEAST + 2
                and self._waits(ML)
            ),
            stays_s=6.0,
        )
        yield Scene(
            title="batch comes with a Job of parallel pods, admitted four at once",
            begin=lambda: self._come(BATCH),
            is_seen=lambda: self.runs(BATCH) > scenario.JOB_STARTS_WITH,
            stays_s=5.0,
        )
        yield Scene(
            title="the Job's pods succeed, and the others grow into what they give back",
            begin=lambda: None,
            is_seen=lambda: self.account.succeeded[BATCH.name] >= scenario.JOB_PODS,
            stays_s=5.0,
        )
        yield Scene(
            title="etl's large stage is through: Spark lets executors go, and Ray grows",
            begin=lambda: self._want(self._spark, scenario.SPARK_LEAST),
            is_seen=lambda: (
                self.runs(ETL) == 1 + scenario.SPARK_LEAST and self.runs(ML) == 1 + scenario.RAY_WANTS
            ),
            stays_s=6.0,
        )
        yield Scene(
            title="ml needs fewer workers: its autoscaler gives them back",
            begin=lambda: self._want(self._ray, scenario.RAY_LEAST),
            is_seen=lambda: self.runs(ML) == 1 + scenario.RAY_LEAST,
            stays_s=4.0,
        )
        yield Scene(
            title="the driver ends, the RayCluster is deleted: all accounts close",
            begin=self._end,
            is_seen=self.is_settled,
            stays_s=1.0,
        )

    def _etl_comes(self) -> None:
        self._come(ETL)
        self._want(self._spark, scenario.SPARK_WANTS)

    def _ml_comes(self) -> None:
        self._come(ML)
        self._want(self._ray, scenario.RAY_WANTS)

    def _end(self) -> None:
        self._spark.exit()
        self.api.delete(ML.application_path)

    def _come(self, tenant: Tenant) -> None:
        self.create(tenant, scenario.application(tenant))

    def _want(self, operator: Operator, pods: int) -> None:
        operator.wants = pods

    def _is_full(self) -> bool:
        return self.observation.held("cpu") >= CAPACITY["cpu"]

    def _waits(self, tenant: Tenant) -> bool:
        return self.observation.tenants[tenant.name].waiting > 0
