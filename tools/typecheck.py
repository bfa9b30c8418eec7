"""Run mypy over the sources together, then over each package's tests and their configuration on their own.

    python -m tools.typecheck

Folders of tests are no packages, and several hold a ``conftest.py``: in one run mypy would take those for one module.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def targets(root: Path) -> list[list[str]]:
    """The arguments of each run of mypy; none for the first, which the configuration describes."""
    packages = root / "packages"
    tests = [*sorted(packages.glob("*/conftest.py")), *sorted(packages.glob("*/tests")), root / "tests"]
    return [[], *([str(path.relative_to(root))] for path in tests if path.is_file() or any(path.rglob("*.py")))]


def main() -> int:
    failed = False
    for arguments in targets(ROOT):
        print("mypy", *arguments, flush=True)
        done = subprocess.run([sys.executable, "-m", "mypy", "--no-error-summary", *arguments], cwd=ROOT, check=False)
        failed = failed or done.returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
