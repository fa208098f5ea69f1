"""What keeps the house in order."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FILE_LINES_MAX: Final = 400
FUNCTION_LINES_MAX: Final = 50
#: What was longer when the rule came, by its module's last name and its own. Nothing is added here.
LONG_FROM_BEFORE: Final = frozenset({"statuses.status_of"})


def product_files() -> list[Path]:
    files = [file for part in ("services", "shared", "deploy") for file in (ROOT / part).rglob("*.py")]
    assert files
    return sorted(files)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def test_no_file_of_the_product_is_too_long_to_be_read_from_top_to_bottom() -> None:
    lines = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in product_files()}
    assert {name: count for name, count in lines.items() if count > FILE_LINES_MAX} == {}


def test_a_function_of_the_product_fits_on_a_screen() -> None:
    too_long = {
        f"{file.relative_to(ROOT)}:{function.lineno} {function.name}": lines_of(function)
        for file in product_files()
        for function in functions(ast.parse(file.read_text()))
        if lines_of(function) > FUNCTION_LINES_MAX and f"{file.stem}.{function.name}" not in LONG_FROM_BEFORE
    }
    assert too_long == {}


def test_no_two_test_files_have_one_name() -> None:
    """pytest takes them for one module, and then runs nothing at all."""
    names = Counter(file.name for file in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_all_packages_are_one_version_which_the_changelog_tells_of() -> None:
    places = ("", "shared/", "services/*/", "deploy/*/")
    files = [file for place in places for file in ROOT.glob(f"{place}pyproject.toml")]
    projects = [tomllib.loads(file.read_text())["project"] for file in files]
    versions = {project["name"]: project["version"] for project in projects}
    told = re.findall(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert set(versions.values()) == {told[0]}, versions


#: All that the core may import beside itself: values, no clock, no network, no chance.
CORE_IMPORTS: Final = frozenset(
    {
        "__future__", "bisect", "collections", "collections.abc", "contextlib", "dataclasses", "fractions", "functools",
        "hashlib", "heapq", "itertools", "math", "operator", "typing",
        "sluice.applications", "sluice.decisions", "sluice.events", "sluice.quantities", "sluice.texts",
        "sluice.values", "sluice.vocabulary",
    }
)  # fmt: skip


def test_the_core_imports_what_is_pure() -> None:
    found: dict[str, str] = {}
    for file in (ROOT / "services/scheduler/sluice_scheduler/core").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            found |= {name: file.name for name in names if not name.startswith("sluice_scheduler.core")}
    assert {name: where for name, where in found.items() if name not in CORE_IMPORTS} == {}
