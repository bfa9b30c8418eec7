"""The command: every fuzzer in turn, from a new seed unless one is given; a failure is printed with what repeats it.

    hatch run fuzz [--seconds 60] [--seed N] [--device CPU:CLANG] [--log tests/fuzz/log.md] [programs memory …]
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tests.fuzz

HELPERS = ("lines", "methods")
NAMES = tuple(sorted(
    m.name for m in pkgutil.iter_modules(tests.fuzz.__path__) if not m.name.startswith("_") and m.name not in HELPERS
))  # fmt: skip


@dataclass
class Tried:
    """What a fuzzer did: how many programs it drew, in how many seconds, and what is wrong."""

    programs: int = 0
    seconds: float = 0.0
    findings: list[Any] = field(default_factory=list)


def tried(name: str, seed: int, seconds: float) -> Tried:
    """Tries the programs of one fuzzer from ``seed`` on for some seconds; what is wrong is printed at once."""
    attempt: Callable[[int], Any] = importlib.import_module(f"tests.fuzz.{name}").attempt
    found, began = Tried(), time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        finding = attempt(seed + found.programs)
        found.programs += 1
        if finding is not None:
            found.findings.append(finding)
            print(f"\n{name}: {finding}", flush=True)
    found.seconds = passed
    print(f"{name}: {found.programs} programs in {passed:.0f} s, {len(found.findings)} went wrong", flush=True)
    return found


def logged(page: Path, name: str, device: str, seed: int, found: Tried) -> None:
    """Adds a line about a fuzzer to a page."""
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    seeds = ", ".join(str(finding.seed) for finding in found.findings)
    cells = (time.strftime("%Y-%m-%d", time.gmtime()), git.stdout.strip() or "unknown", device, name, seed,
             found.programs, f"{found.seconds:.0f} s", seeds or "nothing")  # fmt: skip
    with page.open("a", encoding="utf-8") as file:
        file.write(f"| {' | '.join(map(str, cells))} |\n")


def main() -> int:
    """Runs them; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help=f"some of {', '.join(NAMES)}")
    parser.add_argument("--seconds", type=float, default=60.0, help="in all (default %(default)g)")
    parser.add_argument("--seed", type=int, help="a new one unless given")
    parser.add_argument("--device", help="the setting DEV, such as CPU:CLANG or NUMPY")
    parser.add_argument("--log", type=Path, help="a page that gets a line about each fuzzer, as tests/fuzz/log.md")
    options = parser.parse_args()
    for name in options.names:
        if name not in NAMES:
            parser.error(f"no fuzzer is called {name!r}; there are {', '.join(NAMES)}")
    if options.device:
        os.environ["DEV"] = options.device
    seed = random.SystemRandom().randrange(1 << 30) if options.seed is None else options.seed
    device = os.environ.get("DEV", "the default device")
    print(f"seed {seed} on {device}", flush=True)
    count = 0
    for name in options.names:
        found = tried(name, seed, options.seconds / len(options.names))
        count += len(found.findings)
        if options.log:
            logged(options.log, name, device, seed, found)
    if count:
        print(f"to repeat it: hatch run fuzz --seed {seed} --device {device}")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
