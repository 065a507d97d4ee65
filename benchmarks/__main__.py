"""Runs benchmarks by name: `python -m benchmarks handoff claims`; without names, lists them."""

import sys
from importlib import import_module
from pathlib import Path


def main() -> int:
    here = Path(__file__).parent
    files = {file.stem for file in here.glob("*.py") if not file.stem.startswith("_")}
    known = sorted(files | {file.parent.name for file in here.glob("*/__init__.py")})
    names = sys.argv[1:2]
    if not names or names[0] not in known:
        print("usage: python3 run.py bench NAME [ARGUMENT...]", file=sys.stderr)
        print("benchmarks: " + ", ".join(known), file=sys.stderr)
        return 2
    code: int = import_module(f"benchmarks.{names[0]}").main(sys.argv[2:])
    return code


if __name__ == "__main__":
    sys.exit(main())
