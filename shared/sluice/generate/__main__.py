"""`python -m sluice.generate`: write the files; `--check`: only say which are stale."""

import argparse
import sys
from pathlib import Path

from sluice.generate.files import generated_files

REPOSITORY = Path(__file__).resolve().parents[3]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m sluice.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is stale")
    parser.add_argument("--root", type=Path, default=REPOSITORY, help="the checkout (default: this one)")
    arguments = parser.parse_args()

    stale = {
        path: text
        for path, text in generated_files().items()
        if not (arguments.root / path).exists() or (arguments.root / path).read_text() != text
    }
    for path, text in stale.items():
        if not arguments.check:
            (arguments.root / path).parent.mkdir(parents=True, exist_ok=True)
            (arguments.root / path).write_text(text)
        print(f"{'stale' if arguments.check else 'written'}: {path}")
    if stale and arguments.check:
        print("run `python -m sluice.generate` and commit the result", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
