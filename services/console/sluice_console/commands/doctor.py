"""`sluice doctor workloads`: what would end a workload while it only waits."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import yaml

from sluice_console.commands import Context
from sluice_console.errors import OK, PROBLEM, ConsoleError
from sluice_console.timeouts import Object, time_outs

_STDIN: Final = "-"


def show_workloads(context: Context) -> int:
    objects = [each for name in context.options.files for each in _objects(name)]
    found = list(time_outs(objects))
    if context.options.json:
        context.print_json({"objects": len(objects), "timeOuts": [asdict(each) for each in found]})
        return PROBLEM if found else OK
    for each in found:
        context.out.print(f"{each.subject}: {each.what}", markup=False)
        context.out.print(f"  remedy: {each.remedy}", markup=False)
    count = f"{len(objects)} object{'s' if len(objects) != 1 else ''}"
    context.out.print(f"{count} looked at; {len(found) or 'no'} time-out{'s' if len(found) != 1 else ''}")
    return PROBLEM if found else OK


def _objects(name: str) -> Iterator[Object]:
    """Of a file of manifests, or what kubectl prints as YAML or JSON, which is YAML too."""
    try:
        text = sys.stdin.read() if name == _STDIN else Path(name).read_text()
        documents = list(yaml.load_all(text, Loader=yaml.CSafeLoader))
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        raise ConsoleError(
            f"{name} can't be read: {error}",
            remedy="give files of manifests, or what `kubectl get pods,jobs -A -o json` printed",
        ) from error
    for document in documents:
        yield from _unpacked(name, document)


def _unpacked(name: str, document: Any) -> Iterator[Object]:
    if isinstance(document, dict) and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _unpacked(name, item)
    elif isinstance(document, dict) and isinstance(document.get("kind"), str):
        yield document
    elif document is not None:
        raise ConsoleError(
            f"{name} holds something that is no Kubernetes object: {str(document)[:60]}",
            remedy="each document needs a kind",
        )
