"""The command: draws programs, checks them in several processes, and prints how to see each failure again."""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from .check import Found, checked, ran, some_machines
from .machines import MACHINES
from .programs import Case, drawn

RUN_WORK = 3e8
"""Multiplications and additions of a program that runs, at the most."""
EVERY_S = 5.0


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="hatch run sweep", description="Plans and verifies kernels of shapes that are drawn, for many machines.")
    parser.add_argument("--shapes", type=int, default=3000, help="programs to plan (default: %(default)s)")
    parser.add_argument("--run", type=int, default=100, help="programs to run on the CPU (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="draws the same programs again; by default a new one each time")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: %(default)s)")
    parser.add_argument("--every", action="store_true", help="plan for every machine, not for some CPUs as drawn")
    parser.add_argument("--case", action="append", default=[], metavar="PROGRAM/VARIANT/DTYPE/SIZES",
                        help="check this program alone; again for more")
    parser.add_argument("--machine", choices=list(MACHINES), help="plan for this machine alone")
    parser.add_argument("--log", type=Path, help="a page that gets a line about this sweep, as tools/sweep/log.md")
    return parser.parse_args(argv)


def one(kind: str, case: Case, seed: int, machine: str | None, every: bool) -> Found:
    """What a process does for one program."""
    if kind == "run":
        return ran(case, seed)
    rng = random.Random(seed)
    chosen = [MACHINES[machine]] if machine else list(MACHINES.values()) if every else some_machines(rng, case.dtype)
    return checked(case, chosen, seed)


def jobs(options: argparse.Namespace, seed: int) -> Iterator[tuple[str, Case, int, str | None, bool]]:
    """What is to be done."""
    rng = random.Random(seed)
    for text in options.case:
        case = Case.parse(text)
        yield "plan", case, seed, options.machine, options.machine is None
        if options.machine is None and case.dtype == "float32" and case.work() <= 4 * RUN_WORK:
            yield "run", case, seed, None, False
    if not options.case:
        for _ in range(options.shapes):
            yield "plan", drawn(rng), rng.getrandbits(32), options.machine, options.every
        for _ in range(options.run):
            yield "run", drawn(rng, RUN_WORK), rng.getrandbits(32), None, False


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a sweep. Returns how many failures it found, at most 1."""
    options = arguments(argv)
    seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    print(f"sweep: --seed {seed}", flush=True)
    work, start, told = list(jobs(options, seed)), time.monotonic(), time.monotonic()
    total, done = Found(), 0
    os.environ["CCACHE"] = "0"  # what runs is planned now, by this planner
    with ProcessPoolExecutor(min(options.jobs, len(work)) or 1) as pool:
        for future in as_completed([pool.submit(one, *job) for job in work]):
            found, done = future.result(), done + 1
            total.plans, total.runs = total.plans + found.plans, total.runs + found.runs
            for failure in found.failures:
                print(f"FAILED {failure}", flush=True)
            total.failures += found.failures
            if time.monotonic() - told > EVERY_S or done == len(work):
                told = time.monotonic()
                print(f"{done} of {len(work)} programs, {total.plans} kernels planned, {total.runs} programs run, "
                      f"{len(total.failures)} failures, {told - start:.0f} s", flush=True)
    if options.log:
        logged(options.log, options, seed, total, time.monotonic() - start)
    return int(bool(total.failures))


def logged(page: Path, options: argparse.Namespace, seed: int, total: Found, seconds: float) -> None:
    """Adds a line about a sweep to a page."""
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    found = "; ".join(dict.fromkeys(f"`{failure.case}` on {failure.machine}" for failure in total.failures))
    cells = (time.strftime("%Y-%m-%d", time.gmtime()), git.stdout.strip() or "unknown", seed, options.shapes,
             options.machine or ("every" if options.every else "drawn"), total.plans, total.runs, f"{seconds:.0f} s",
             found or "nothing")  # fmt: skip
    with page.open("a", encoding="utf-8") as file:
        file.write(f"| {' | '.join(map(str, cells))} |\n")


if __name__ == "__main__":
    sys.exit(main())
