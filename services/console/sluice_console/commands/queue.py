"""`sluice queue`: who holds what, asks for what and is entitled to what."""

from __future__ import annotations

from difflib import get_close_matches

from sluice_console import tables, views
from sluice_console.commands import Context
from sluice_console.errors import OK, ConsoleError
from sluice_console.views import QueueView


def show_list(context: Context) -> int:
    found = _queues(context)
    if context.options.json:
        context.print_json([views.as_json(view) for view in found])
    else:
        tables.show_list(context.out, found)
    return OK


def show_tree(context: Context) -> int:
    found = _queues(context)
    if context.options.json:
        shown = [views.as_json(view) | {"depth": depth} for depth, view in views.roots_first(found)]
        context.print_json(shown)
    else:
        tables.show_tree(context.out, found)
    return OK


def show_one(context: Context) -> int:
    name = context.options.name
    snapshots = context.snapshots({*views.KINDS, views.NAMESPACES})
    found = {view.name: view for view in views.queue_views(snapshots)}
    if name not in found:
        similar = get_close_matches(name, found, n=3)
        raise ConsoleError(
            f"there is no queue {name}",
            remedy=f"did you mean {' or '.join(similar)}?" if similar else "`sluice queue list` shows all",
        )
    view = found[name]
    below = [other.name for other in found.values() if other.parent == name]
    namespaces = views.namespaces_of(name, snapshots)
    if context.options.json:
        spec = {"spec": view.facts, "inForce": views.in_force(view)}
        context.print_json(views.as_json(view) | spec | {"children": below, "boundNamespaces": namespaces})
    else:
        tables.show_queue(
            context.out,
            view,
            below=below,
            namespaces=namespaces,
            capacity=views.capacity_of(snapshots),
            supplies=views.supplies_of(snapshots),
        )
    return OK


def _queues(context: Context) -> list[QueueView]:
    found = views.queue_views(context.snapshots(views.KINDS))
    if context.options.cell is not None:
        found = [view for view in found if view.cell == context.options.cell]
    if not found:
        raise ConsoleError(
            "there are no queues yet",
            remedy="create a ResourcePool and a Queue (README, “A first queue”), or run `make demo`",
        )
    return found
