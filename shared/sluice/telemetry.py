"""What a service shows of itself: structured logs, /healthz, /readyz and Prometheus' /metrics."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from sluice.settings import Settings

#: What a line says it is about; given as `extra={...}`, always present, empty where it doesn't apply.
CONTEXT_FIELDS: Final = ("cell", "epoch", "seq", "event", "object")

_QUIETED: Final = {
    "kafka": logging.CRITICAL,
    "aiokafka": logging.CRITICAL,
    "faust": logging.ERROR,
    "mode": logging.ERROR,
    "aiohttp": logging.ERROR,
    "asyncio": logging.ERROR,
}


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "service": self._service,
            "message": record.getMessage(),
        }
        line |= {name: str(getattr(record, name, "")) for name in CONTEXT_FIELDS}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(line).decode()


def setup_logging(service: str, settings: Settings) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(service))
    logging.basicConfig(level=settings.log_level, handlers=[handler], force=True)
    # What libraries retry is their own business until it fails. Kafka's clients call each try an error,
    # dozens a second while it is away; what comes of it is said at /readyz and by whoever waits for them.
    for library, level in _QUIETED.items():
        logging.getLogger(library).setLevel(level)


@asynccontextmanager
async def serve_health(settings: Settings, unready: Callable[[], str]) -> AsyncIterator[str]:
    """Serve the endpoints; `unready()` says in a sentence what is missing, and nothing when ready.

    Yields the address that was bound.
    """

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        reason = unready()
        return web.Response(text=(reason or "ok") + "\n", status=503 if reason else 200)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    host, port = settings.http_address
    site = web.TCPSite(runner, host, port)
    await site.start()
    bound = runner.addresses[0]
    address = f"{bound[0]}:{bound[1]}"
    logging.getLogger(__name__).info("serving /healthz, /readyz and /metrics on %s", address)
    try:
        yield address
    finally:
        await runner.cleanup()
