"""What keeps the house in order."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
LINES_MAX: Final = 400


def test_no_file_of_the_product_is_too_long_to_be_read_from_top_to_bottom() -> None:
    files = [file for part in ("services", "shared", "deploy/local") for file in (ROOT / part).rglob("*.py")]
    assert files
    lines = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in files}
    assert {name: count for name, count in lines.items() if count > LINES_MAX} == {}
