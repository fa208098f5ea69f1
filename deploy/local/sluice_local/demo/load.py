"""Creates the pods, each when its time has come: several at a time, for a busy API server answers slowly."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from sluice_local.demo import scenario
from sluice_local.demo.api import Api
from sluice_local.demo.scenario import Arrival

_AT_A_TIME: Final = 6


class Load(threading.Thread):
    def __init__(self, api: Api, created: Callable[[str, float], None]) -> None:
        """`created` is told the pod's name and when the API server had it."""
        super().__init__(name="load", daemon=True)
        self._api = api
        self._created = created
        self.error: Exception | None = None

    def run(self) -> None:
        began = time.monotonic()

        def create(arrival: Arrival) -> None:
            time.sleep(max(0.0, began + arrival.after_s - time.monotonic()))
            manifest = scenario.pod(arrival)
            self._api.create(arrival.tenant.pods_path, manifest)
            self._created(manifest["metadata"]["name"], time.monotonic())

        try:
            with ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="load") as pool:
                list(pool.map(create, scenario.arrivals()))
        except Exception as error:
            self.error = error
