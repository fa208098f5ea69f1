"""What happens. Nobody stands in for anybody: what wants pods are Spark's driver and Ray's autoscaler."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

from sluice_local.demo.api import Api
from sluice_local.demo.audit import Account
from sluice_local.demo.observation import Observation
from sluice_local.demo.play import Play, Scene
from sluice_local.demo.real import scenario
from sluice_local.demo.real.results import RayProgram
from sluice_local.demo.real.scenario import ML
from sluice_local.demo.scenario import BATCH, ETL, Tenant


class RealPlay(Play):
    #: Java and Ray start, on cores that others use too.
    within_s = 180.0

    def __init__(
        self,
        api: Api,
        observation: Observation,
        account: Account,
        lock: threading.Lock,
        *,
        ray: RayProgram,
        images: Mapping[str, str],
    ) -> None:
        super().__init__(api, observation, account, lock)
        self._images = images
        self._ray = ray

    def scenes(self) -> Iterator[Scene]:
        yield Scene(
            title="etl's Spark application wants more executors than there is room for",
            begin=lambda: self._come(ETL),
            is_seen=lambda: ETL.name in self.account.partial and self.runs(ETL) > scenario.SPARK_GETS,
            stays_s=3.0,
        )
        yield Scene(
            title="ml comes with a RayCluster, and etl gives up an executor for its head",
            begin=self._ml_comes,
            is_seen=lambda: bool(self.account.reclaimed[ETL.name]) and self.runs(ML) > 0,
            stays_s=0.0,
        )
        yield Scene(
            title="while Ray starts, batch comes with a Job, admitted two pods at once; all of them succeed",
            begin=lambda: self._come(BATCH),
            is_seen=lambda: self.account.succeeded[BATCH.name] >= scenario.JOB_PODS,
            stays_s=0.0,
        )
        yield Scene(
            title="ml's program has Ray's autoscaler ask for more workers than ml is owed",
            begin=lambda: None,
            is_seen=lambda: ML.name in self.account.partial and self.observation.tenants[ML.name].most > 1,
            stays_s=3.0,
        )
        yield Scene(
            title="ml's program ends, and the autoscaler gives its workers back",
            begin=lambda: None,
            is_seen=lambda: not self._ray.is_alive() and self.runs(ML) <= 1,
            stays_s=0.0,
        )
        yield Scene(
            title="the RayCluster is deleted, etl's program ends with its driver: all accounts close",
            begin=lambda: self.api.delete(ML.application_path),
            is_seen=self.is_settled,
            stays_s=1.0,
        )

    def _ml_comes(self) -> None:
        self._come(ML)
        self._ray.start()

    def _come(self, tenant: Tenant) -> None:
        self.create(tenant, scenario.application(tenant, self._images[tenant.name]))
