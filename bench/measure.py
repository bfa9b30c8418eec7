"""Measuring: every library's turn after the other's, round after round, and what came out."""

from __future__ import annotations

import datetime
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .case import Array
from .crew import Crew, WorkerDied
from .turns import MACHINE
from .workload import Workload

Say = Callable[[str], None]


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
      rounds: how many turns each library has.
      turn_s: how long a turn lasts at least.
      most_s: a library that needs longer for a single turn has one only.
      pause_s: between turns, so that threads that spin for more work go to sleep.
      timeout_s: after which a worker that does not answer is given up.
      shown: what stands for all runs. The median; or, for a machine that is busy otherwise, the fastest run; or, for
        one thread on such a machine, processor time instead of time.
    """

    rounds: int = 7
    turn_s: float = 0.25
    most_s: float = 2.0
    pause_s: float = 0.03
    timeout_s: float = 400.0
    shown: Literal["median", "fastest", "processor"] = "median"


QUICK = Effort(rounds=3, turn_s=0.05, most_s=0.5, pause_s=0.02, timeout_s=60.0)


@dataclass
class Outcome:
    """One workload in one library.

    Attributes:
      status: ``ok``, ``wrong`` (measured, but the result is not right), ``absent``, ``unsupported``, ``failed``.
      reason: why it is not ``ok``.
      seconds: what is shown: see :class:`Effort`.
      rounds: median of each turn.
      least: the fastest run.
      first_s: the first run in a process where the library was imported already; caches on disk may be empty.
      build_s: making inputs, weights and the model.
      cpu_s: processor time of a run, in all threads: the least of each turn's median.
      cores: processor time over time, the most of any turn.
      peak_bytes: by how much the process grew.
      error: greatest difference from the reference, relative to its greatest value; None where none is there.
      mode: how the library executed it.
    """

    status: str
    reason: str = ""
    seconds: float | None = None
    rounds: list[float] = field(default_factory=list)
    least: float | None = None
    first_s: float | None = None
    build_s: float | None = None
    cpu_s: float | None = None
    cores: float | None = None
    peak_bytes: int | None = None
    error: float | None = None
    mode: str = ""


@dataclass
class Row:
    """One workload in every library.

    Attributes:
      results: an outcome for each library.
      checked_against: the library whose results the others were compared with.
      others: share of the machine that other processes used meanwhile, 0 to 1.
      limit: what the machine did in its turns among the libraries', operations or bytes a second.
      date: when it was measured, in UTC: a record may hold rows of several runs.
      work: the workload's then: some workloads are others each month. None for what it is now.
    """

    name: str
    group: str
    unit: str
    results: dict[str, Outcome] = field(default_factory=dict)
    checked_against: str = ""
    others: float | None = None
    limit: float | None = None
    date: str = ""
    work: float | None = None

    def as_json(self) -> dict[str, Any]:
        """As it is written to the file."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Row:
        """What :meth:`as_json` made."""
        results = {name: Outcome(**outcome) for name, outcome in stored["results"].items()}
        return cls(**{**stored, "results": results})


def now() -> str:
    """The time in UTC, to the minute."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")


def busy_seconds() -> float:
    """Processor time of the whole machine since it started; 0 where the system does not say."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            fields = [int(x) for x in file.readline().split()[1:9]]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


@contextmanager
def noise(crew: Crew, row: Row) -> Iterator[None]:
    """Notes in a row how much of the machine others used in the block."""
    start, busy, mine = time.monotonic(), busy_seconds(), crew.cpu_seconds()
    try:
        yield
    finally:
        wall = time.monotonic() - start
        theirs = busy_seconds() - busy - (crew.cpu_seconds() - mine)
        row.others = min(1.0, max(0.0, theirs / (wall * (os.cpu_count() or 1))))


def open_in(crew: Crew, library: str, workload: Workload, effort: Effort, results: Path) -> Outcome:
    """Builds and warms up a workload in one library, or the machine's limit of it; writes what came out."""
    try:
        answer = crew.member(library).ask("open", effort.timeout_s, workload=workload.name, results=str(results))
    except WorkerDied as death:
        return Outcome("failed", str(death))
    for kind in ("absent", "unsupported", "failed"):
        if kind in answer:
            return Outcome(kind, answer[kind])
    return Outcome(
        "ok", seconds=answer["warm_s"], first_s=answer["first_s"], build_s=answer["build_s"],
        peak_bytes=answer["peak_bytes"], mode=answer["mode"],
    )  # fmt: skip


def load_results(path: Path) -> list[Array]:
    """The values that a worker wrote."""
    with np.load(path) as stored:
        return [stored[name] for name in stored.files]


def difference(found: Sequence[Array], right: Sequence[Array]) -> float:
    """The greatest difference, relative to the greatest value; infinite where shapes differ or a value is no number.

    Examples:
        >>> difference([np.array([1.0, 2.2])], [np.array([1.0, 2.0])])
        0.1
    """
    worst = 0.0
    for ours, theirs in zip(found, right, strict=True):
        if ours.size != theirs.size:
            return float("inf")
        apart = np.abs(ours.reshape(-1).astype(np.promote_types(ours.dtype, np.float64)) - theirs.reshape(-1))
        scale = float(np.abs(theirs).max(initial=0.0)) or 1.0
        worst = max(worst, float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0)) / scale)
    return round(worst, 9)


def check(row: Row, workload: Workload, scratch: Path) -> None:
    """Compares the results in ``scratch`` with those of the first reference that is there."""
    done = [name for name, outcome in row.results.items() if outcome.status == "ok"]
    row.checked_against = next((name for name in workload.reference if name in done), "")
    if not row.checked_against:
        return
    right = load_results(scratch / f"{row.checked_against}.npz")
    for name in done:
        if name == row.checked_against:
            continue
        outcome = row.results[name]
        outcome.error = difference(load_results(scratch / f"{name}.npz"), right)
        if not outcome.error <= workload.tolerance:
            outcome.status = "wrong"
            outcome.reason = f"differs from {row.checked_against} by {outcome.error:.1e} of the greatest value"


def time_all(crew: Crew, results: dict[str, Outcome], effort: Effort) -> None:
    """Takes turns."""
    live = [name for name, outcome in results.items() if outcome.status in ("ok", "wrong")]
    for number in range(effort.rounds):
        order = live[number % len(live) :] + live[: number % len(live)] if live else []
        for name in order:
            outcome = results[name]
            slow = (outcome.seconds or 0.0) > effort.most_s
            if slow and number:
                continue
            time.sleep(effort.pause_s)
            try:
                answer = crew.member(name).ask("time", effort.timeout_s, seconds=effort.turn_s)
            except WorkerDied as death:
                outcome.status, outcome.reason = "failed", str(death)
                live.remove(name)
                continue
            if "failed" in answer:
                outcome.status, outcome.reason = "failed", answer["failed"]
                live.remove(name)
                continue
            samples = answer["samples"]
            outcome.rounds.append(statistics.median(samples))
            outcome.least = min(samples) if outcome.least is None else min(outcome.least, *samples)
            used = statistics.median(answer["processor"])
            outcome.cpu_s = used if outcome.cpu_s is None else min(outcome.cpu_s, used)
            outcome.cores = max(outcome.cores or 0.0, sum(answer["processor"]) / sum(samples))
    for outcome in results.values():
        if outcome.rounds:
            medians = statistics.median(outcome.rounds)
            outcome.seconds = {"median": medians, "fastest": outcome.least, "processor": outcome.cpu_s}[effort.shown]


def measure(
    crew: Crew, workload: Workload, libraries: Sequence[str], absent: dict[str, str], effort: Effort, say: Say
) -> Row:
    """One workload in every library.

    Args:
      crew: the workers.
      workload: what to measure.
      libraries: where.
      absent: libraries that are not there, and why.
      effort: how long.
      say: gets what to print.
    """
    row = Row(workload.name, workload.group, workload.unit, date=now(), work=workload.work)
    scratch = crew.scratch / "results"
    scratch.mkdir(exist_ok=True)
    with noise(crew, row):
        for name in libraries:
            if name in absent:
                row.results[name] = Outcome("absent", absent[name])
                continue
            outcome = row.results[name] = open_in(crew, name, workload, effort, scratch / f"{name}.npz")
            if outcome.status != "ok":
                say(f"  {name}: {outcome.status}: {outcome.reason}")
        check(row, workload, scratch)
        for name, outcome in row.results.items():
            if outcome.status == "wrong":
                say(f"  {name}: wrong: {outcome.reason}")
        turns = dict(row.results)
        if workload.limit:
            turns[MACHINE] = open_in(crew, MACHINE, workload, effort, scratch / f"{MACHINE}.npz")
        time_all(crew, turns, effort)
        machine = turns.get(MACHINE)
        if machine is not None and machine.status == "ok" and machine.seconds:
            row.limit = float(load_results(scratch / f"{MACHINE}.npz")[0]) / machine.seconds
        elif machine is not None and machine.status != "unsupported":
            say(f"  the machine's limit was not measured: {machine.reason}")
    for name, outcome in turns.items():
        if outcome.status in ("ok", "wrong"):
            try:
                crew.member(name).ask("close", effort.timeout_s)
            except WorkerDied:
                pass
        (scratch / f"{name}.npz").unlink(missing_ok=True)
    return row
