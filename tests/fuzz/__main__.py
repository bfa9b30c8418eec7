"""The command: every fuzzer in turn, from a new seed unless one is given; a failure is printed with what repeats it.

    hatch run fuzz [--seconds 60] [--seed N] [--device CPU:CLANG] [programs memory records actions]
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import tests.fuzz

HELPERS = ("methods",)
NAMES = tuple(sorted(
    m.name for m in pkgutil.iter_modules(tests.fuzz.__path__) if not m.name.startswith("_") and m.name not in HELPERS
))  # fmt: skip


def fuzzer(name: str) -> Callable[[int, float], list[Any]]:
    """Its function ``run(seed, seconds)``, which returns what goes wrong."""
    run: Callable[[int, float], list[Any]] = importlib.import_module(f"tests.fuzz.{name}").run
    return run


def main() -> int:
    """Runs them; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help=f"some of {', '.join(NAMES)}")
    parser.add_argument("--seconds", type=float, default=60.0, help="in all (default %(default)g)")
    parser.add_argument("--seed", type=int, help="a new one unless given")
    parser.add_argument("--device", help="the setting DEV, such as CPU:CLANG or NUMPY")
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
        began = time.monotonic()
        found = fuzzer(name)(seed, options.seconds / len(options.names))
        for finding in found:
            print(f"\n{name}: {finding}", flush=True)
        count += len(found)
        print(f"{name}: {len(found)} found in {time.monotonic() - began:.0f} s", flush=True)
    if count:
        print(f"to repeat it: hatch run fuzz --seed {seed} --device {device}")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
