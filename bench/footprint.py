"""What training takes of memory: whole processes and tensors, in fresh processes, and what many steps add.

How much a worker grows in a row's first runs depends on what earlier rows left in it. A process that does nothing but
train can be compared, as a whole and by the tensors in it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from .crew import Crew, WorkerDied
from .libraries import OURS
from .record import Record, number
from .workload import Workload

GOAL = 1.2
"""How many times torch's memory a training step may take."""
STEPS = 20
MOST_S = 30.0
"""A library that needs longer for these has fewer."""
MANY = (100, 1000)
MANY_S = 60.0
"""What takes longer is not run so often."""
GROWTH_GOAL = 1 << 20
"""Bytes that the resident size may grow by between these steps: a byte for each would be seen."""
YARDSTICK = "torch"
WAYS = {"TinyJit": {}, "eager": {"JIT": "0"}}
"""How our steps are run, and the settings for it."""
_REASONS = ("absent", "unsupported", "failed")

Found = dict[str, Any]


def probe(crew: Crew, workload: Workload, library: str, timeout_s: float = 400.0) -> Found:
    """A training in fresh processes.

    Returns:
      ``cold``, with an empty cache on disk, and ``warm``, with a full one: ``imported_bytes``, the resident size after
      the import, ``peak_bytes``, the most that it was in :data:`STEPS` steps, and ``last_s``, seconds of the last one;
      ``tensors_bytes``, the most that tensors took, None where the library does not tell; or a reason under ``absent``,
      ``unsupported`` or ``failed``.
    """
    shutil.rmtree(_cache(crew, library), ignore_errors=True)
    found: Found = {}
    for state in ("cold", "warm"):
        answer = _asked(crew, library, {}, "train", timeout_s, workload=workload.name, steps=[STEPS], most_s=MOST_S)
        if any(reason in answer for reason in _REASONS):
            return answer
        found[state] = {key: answer[key] for key in ("imported_bytes", "peak_bytes", "last_s")}
    answer = _asked(crew, library, {}, "tensors", timeout_s, workload=workload.name)
    found["tensors_bytes"] = answer.get("tensors_bytes")
    return found


def many_steps(crew: Crew, workload: Workload, way: str, timeout_s: float = 600.0) -> Found:
    """Our process after many steps: ``resident_bytes`` after each number of :data:`MANY`, or why there are none."""
    arguments = {"workload": workload.name, "steps": list(MANY), "most_s": timeout_s}
    return _asked(crew, OURS, WAYS[way], "train", timeout_s, **arguments)


def worth_many_steps(found: Found) -> bool:
    """Whether what :func:`probe` found says that so many steps are made within a minute."""
    return "warm" in found and found["warm"]["last_s"] * MANY[-1] < MANY_S


def _cache(crew: Crew, library: str) -> Path:
    return crew.scratch / f"footprint-{library}"


def _asked(
    crew: Crew, library: str, settings: dict[str, str], do: str, timeout_s: float, **arguments: Any
) -> Found:
    member = crew.launch(library, _cache(crew, library), settings)
    try:
        return member.ask(do, timeout_s, **arguments)
    except WorkerDied as death:
        return {"failed": str(death)}
    finally:
        member.close()


def ratios(libraries: dict[str, Found]) -> dict[str, float]:
    """How many times torch's memory ours is: ``cold`` and ``warm`` of whole processes, ``tensors``; what is known."""
    ours, torch = libraries.get(OURS, {}), libraries.get(YARDSTICK, {})
    found: dict[str, float] = {}
    for state in ("cold", "warm"):
        if state in ours and state in torch and torch[state]["peak_bytes"] and ours[state]["peak_bytes"]:
            found[state] = ours[state]["peak_bytes"] / torch[state]["peak_bytes"]
    if ours.get("tensors_bytes") and torch.get("tensors_bytes"):
        found["tensors"] = ours["tensors_bytes"] / torch["tensors_bytes"]
    return found


TRAINING_HEAD = ["training in a fresh process", "library", "imported", "empty cache", "full cache", "tensors"]


def training_lines(record: Record, marks: dict[bool, str]) -> list[list[str]]:
    """Each workload and library, in MiB, ours with its ratio to torch's."""
    lines = []
    for name, libraries in record.footprint.items():
        beside = ratios(libraries)
        for library, found in libraries.items():
            if "cold" not in found:
                if "absent" not in found:
                    lines.append([name, library, "-" if "unsupported" in found else "FAILED", "", "", ""])
                continue

            def told(count: int | None, kind: str, library: str = library, beside: dict[str, float] = beside) -> str:
                text = "" if count is None else mebibytes(count)
                if library != OURS or kind not in beside:
                    return text
                return f"{text} ({number(beside[kind])} × {YARDSTICK} {marks[beside[kind] <= GOAL]})"

            lines.append([
                name, library, told(found["cold"]["imported_bytes"], ""), told(found["cold"]["peak_bytes"], "cold"),
                told(found["warm"]["peak_bytes"], "warm"), told(found["tensors_bytes"], "tensors"),
            ])  # fmt: skip
    return lines


STEPS_HEAD = ["many steps", "how", *(f"after {count:,} steps" for count in MANY), "growth"]


def steps_lines(record: Record, marks: dict[bool, str]) -> list[list[str]]:
    """Our resident size after many steps, in MiB."""
    lines = []
    for name, ways in record.steps.items():
        for way, found in ways.items():
            sizes = found.get("resident_bytes")
            if sizes is None:
                lines.append([name, way, "FAILED", *[""] * len(MANY)])
                continue
            grown = sizes[-1] - sizes[0]
            cells = [mebibytes(size) for size in sizes]
            lines.append([name, way, *cells, f"{grown / 2**20:.2f} {marks[grown <= GROWTH_GOAL]}"])
    return lines


def missed(record: Record, name: str) -> list[str]:
    """Goals of a workload's memory that are not met, as text."""
    what = {
        "cold": "memory as a whole process with an empty cache", "warm": "memory as a whole process",
        "tensors": "memory for tensors",
    }  # fmt: skip
    beside = ratios(record.footprint.get(name, {}))
    found = [f"{number(r)} times torch's {what[k]} instead of ≤ {GOAL}" for k, r in beside.items() if r > GOAL]
    for way, sizes in record.steps.get(name, {}).items():
        if "resident_bytes" in sizes:
            grown = sizes["resident_bytes"][-1] - sizes["resident_bytes"][0]
            if grown > GROWTH_GOAL:
                found.append(f"{mebibytes(grown)} MiB more after {MANY[-1]:,} steps than after {MANY[0]:,} ({way})")
    return found


def mebibytes(count: int) -> str:
    """Bytes as MiB, with a digit behind the point where there are few.

    >>> mebibytes(3 << 19), mebibytes(300 << 20)
    ('1.5', '300')
    """
    return f"{count / 2**20:.1f}" if count < 100 << 20 else f"{count / 2**20:.0f}"
