"""docs/defects.md, its patches and the tests agree."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

import pytest
from defects.__main__ import PATCHES, ROOT, Defect, apply, known

KNOWN = known()
PATCHED = [defect for defect in KNOWN if defect.has_patch]


def test_each_has_a_name_of_its_own_and_a_test() -> None:
    assert [name for name, count in Counter(defect.name for defect in KNOWN).items() if count > 1] == []
    assert [defect.name for defect in KNOWN if not re.fullmatch(r"[a-z0-9-]+", defect.name)] == []
    assert [defect.name for defect in KNOWN if not defect.tests] == []


def test_patches_are_those_of_the_tables() -> None:
    assert {file.stem for file in (ROOT / PATCHES).glob("*.patch")} == {defect.name for defect in PATCHED}


@pytest.mark.parametrize("defect", PATCHED, ids=lambda defect: defect.name)
def test_its_patch_applies_to_the_code_as_it_is(defect: Defect) -> None:
    assert apply(defect.patch, "--check", to=ROOT) == ""


def test_the_tests_that_guard_are_there() -> None:
    named = sorted({test for defect in KNOWN for test in defect.tests})
    collect = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *named)
    found = subprocess.run(collect, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_every_history_that_was_kept_belongs_to_a_defect() -> None:
    guards = {re.sub(r".*\[(.+)\]", r"\1", test) for defect in KNOWN for test in defect.tests}
    assert {file.stem for file in (ROOT / "tests/regressions").glob("*.json")} - guards == set()
