"""Everything that one run measured: written as JSON, read back for the page and the picture."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from .isa import goals
from .libraries import OURS
from .measure import Outcome, Row
from .workload import Goal, Workload
from .workloads import WORKLOADS

FORMAT = 1


@dataclass
class Record:
    """One run.

    Attributes:
      date: when, in UTC.
      effort: ``full`` or ``quick``.
      machine: processor, cores, threads used, operating system, Python, load before and after.
      libraries: the version of each, or why it is absent (beginning with ``absent: ``).
      limits: what the machine can do, operations or bytes a second; ``NAME 1`` on one thread.
      rows: the workloads.
      imports: importing tinytg.
      cold: workload, then library: first runs in fresh processes.
      growth: scheduling and lowering of larger and larger graphs.
      passes: the first runs of a workload, pass by pass, each as :mod:`bench.passes` prints it.
      footprint: workload, then library: what training takes in fresh processes.
      steps: workload, then way to run it: our process after many steps.
      hcq: submissions to hardware queues, as :mod:`bench.hcq` prints them.
      engine: instructions of software GPUs, as :mod:`bench.engine` prints them.
      complete: whether the run reached its end.
    """

    date: str = ""
    effort: str = "full"
    machine: dict[str, Any] = field(default_factory=dict)
    libraries: dict[str, str] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    imports: dict[str, Any] = field(default_factory=dict)
    cold: dict[str, dict[str, Any]] = field(default_factory=dict)
    growth: list[dict[str, Any]] = field(default_factory=list)
    passes: list[dict[str, Any]] = field(default_factory=list)
    footprint: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    steps: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    hcq: dict[str, float] = field(default_factory=dict)
    engine: dict[str, float] = field(default_factory=dict)
    complete: bool = False

    def add(self, row: Row) -> None:
        """Puts a row where it belongs in the table, instead of an older one of that name."""
        rows = {other.name: other for other in self.rows} | {row.name: row}
        order = {name: i for i, name in enumerate(WORKLOADS)}
        self.rows = sorted(rows.values(), key=lambda row: order.get(row.name, len(order)))

    def save(self, path: Path) -> None:
        """Writes the record."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Record:
        """Reads a record.

        Raises:
          ValueError: it was written by another version of this program.
        """
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored.pop("format", None) != FORMAT:
            raise ValueError(f"{path} has another format than {FORMAT}: measure again")
        stored["rows"] = [Row.from_json(row) for row in stored["rows"]]
        return cls(**stored)

    @classmethod
    def put(cls, path: Path, name: Literal["hcq", "engine"], figures: dict[str, float]) -> None:
        """Replaces figures of a record that is stored."""
        record = cls.load(path)
        setattr(record, name, figures)
        record.save(path)


@dataclass(frozen=True)
class Verdict:
    """A goal, and what was reached.

    Attributes:
      wanted: the goal as text.
      got: what was measured, as text; empty where nothing was.
      met: None where nothing was measured.
    """

    wanted: str
    got: str
    met: bool | None


def measured(row: Row, library: str) -> float | None:
    """Seconds of a workload in a library; None unless the result is right."""
    outcome = row.results.get(library)
    return outcome.seconds if outcome is not None and outcome.status == "ok" else None


def workload_of(row: Row) -> Workload:
    """A row's workload, with the work that it had when the row was measured."""
    workload = WORKLOADS[row.name]
    return workload if row.work is None else replace(workload, work=row.work)


def best_peer(row: Row) -> tuple[str, Outcome] | None:
    """The fastest of the other libraries."""
    peers = [(n, o) for n, o in row.results.items() if n != OURS and o.status == "ok" and o.seconds]
    return min(peers, key=lambda x: x[1].seconds or 0.0, default=None)


def share(workload: Workload, limit: float | None, seconds: float) -> float | None:
    """Which part of the machine's limit is reached."""
    return workload.work / seconds / limit if limit else None


def verdicts(row: Row, isa: str = "") -> list[Verdict]:
    """What became of a row's goals."""
    workload = workload_of(row)
    ours, torch = measured(row, OURS), measured(row, "torch")
    return [judge(goal, workload, row.limit, ours, torch) for goal in goals(workload, isa)]


def judge(
    goal: Goal, workload: Workload, limit: float | None, seconds: float | None, torch: float | None = None
) -> Verdict:
    """Whether a goal is met.

    Args:
      goal: what is to be reached.
      workload: by what.
      limit: the machine's, operations or bytes a second.
      seconds: what it takes.
      torch: what it takes PyTorch.
    """
    if goal.kind == "torch":
        times = torch / seconds if torch and seconds else None
        met = None if times is None else times >= goal.value
        return Verdict(f"≥ {number(goal.value)} × torch", number(times), met)
    if goal.kind == "share":
        wanted = f"≥ {goal.value:.0%} of {workload.limit}"
        part = share(workload, limit, seconds) if seconds else None
        return Verdict(wanted, "" if part is None else f"{part:.0%}", None if part is None else part >= goal.value)
    if goal.kind == "rate":
        rate = workload.rate(seconds) if seconds else None
        wanted = f"≥ {number(goal.value)} {workload.unit}"
        return Verdict(wanted, "" if rate is None else number(rate), None if rate is None else rate >= goal.value)
    each = seconds / workload.work if seconds else None
    return Verdict(f"≤ {time_text(goal.value)}", time_text(each), None if each is None else each <= goal.value)


def number(value: float | None) -> str:
    """Three digits that matter.

    >>> number(0.5), number(12.345), number(1234.5)
    ('0.5', '12.3', '1234')
    """
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def time_text(seconds: float | None) -> str:
    """Seconds in the unit that suits them.

    >>> time_text(0.0000021), time_text(0.0031), time_text(2.0)
    ('2.1 µs', '3.1 ms', '2 s')
    """
    if seconds is None:
        return ""
    if seconds < 1e-3:
        return f"{number(seconds * 1e6)} µs"
    return f"{number(seconds * 1e3)} ms" if seconds < 1 else f"{number(seconds)} s"
