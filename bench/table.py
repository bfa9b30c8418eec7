"""A record as text for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from . import footprint
from .libraries import OURS
from .measure import Outcome, Row
from .probes import COLD_GOALS, IMPORT_GOAL_S
from .record import Record, best_peer, measured, number, share, time_text, verdicts, workload_of
from .workload import Workload

_MARK = {True: "met", False: "MISSED", None: "-"}


_LIMITS = {
    "fma": "GFLOP/s", "bf16": "GFLOP/s", "copy": "GB/s", "tiles": "GB/s", "read": "GB/s", "read far": "GB/s",
}  # fmt: skip


def cell(workload: Workload, outcome: Outcome | None) -> str:
    """What a library reached, in the workload's unit."""
    if outcome is None:
        return ""
    if outcome.status != "ok" or outcome.seconds is None:
        return {"unsupported": "-", "absent": "absent"}.get(outcome.status, outcome.status.upper())
    return number(workload.rate(outcome.seconds))


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells, the first column to the left, the others to the right."""
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(rows[0]))]
    lines = []
    for cells in rows:
        others = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        lines.append("  ".join([cells[0].ljust(widths[0]), *others]).rstrip())
    return "\n".join(lines)


def libraries_of(record: Record) -> list[str]:
    """The libraries that some row has, in order."""
    return list(dict.fromkeys(name for row in record.rows for name in row.results))


def line(row: Row, libraries: Sequence[str], isa: str = "") -> list[str]:
    """The cells of a workload."""
    workload = workload_of(row)
    ours, peer = measured(row, OURS), best_peer(row)
    ratio = part = ""
    if ours:
        reached = share(workload, row.limit, ours)
        part = "" if reached is None else f"{reached:.0%} {workload.limit}"
        if peer is not None and peer[1].seconds:
            ratio = f"{number(peer[1].seconds / ours)} x {peer[0]}"
    goals = ", ".join(f"{v.wanted} {_MARK[v.met]}" for v in verdicts(row, isa))
    return [row.name, row.unit, *(cell(workload, row.results.get(name)) for name in libraries), ratio, part, goals]


def first_run(record: Record, found: dict[str, float]) -> float:
    """What stands for the first run of a process: its time, or its processor time where the record shows that."""
    return found["first_cpu_s" if record.machine.get("shown") == "processor" else "first_s"]


def cold_lines(record: Record) -> list[list[str]]:
    """Cold starts: each workload and library, with an empty and with a full cache."""
    lines = []
    for name, libraries in record.cold.items():
        for library, found in libraries.items():
            if "cold" not in found:
                status = next(iter(found))
                if status != "absent":
                    lines.append([name, library, "-" if status == "unsupported" else status.upper(), "", "", ""])
                continue
            goals = COLD_GOALS.get(name) if library == OURS else None
            cells = [name, library, time_text(found["cold"]["import_s"])]
            for i, state in enumerate(("cold", "warm")):
                seconds = first_run(record, found[state])
                verdict = f" (≤ {goals[i]} s {_MARK[seconds <= goals[i]]})" if goals else ""
                cells.append(time_text(seconds) + verdict)
            lines.append([*cells, time_text(found["warm"]["second_s"])])
    return lines


def pass_lines(record: Record) -> list[list[str]]:
    """The first runs of workloads pass by pass: a head, then the processor time of each pass, then what was made."""
    runs = [(p["workload"], run) for p in record.passes if "failed" not in p for run in p["runs"]]
    if not runs:
        return []
    head = [f"{name}: {'recording' if i % 2 else 'first run'}" for i, (name, _) in enumerate(runs)]
    lines = [["pass", *head]]
    for name in dict.fromkeys(name for _, run in runs for name in run["passes"]):
        lines.append([name, *(time_text(run["passes"].get(name)) for _, run in runs)])
    lines.append(["all of them", *(time_text(run["cpu_s"]) for _, run in runs)])
    lines.append(["elapsed", *(time_text(run["wall_s"]) for _, run in runs)])
    for key, what in (("nodes", "nodes of graphs"), ("kernels", "kernels run"), ("compiled", "kernels compiled")):
        lines.append([what, *(str(run[key]) for _, run in runs)])
    return lines


def text(record: Record) -> str:
    """The whole record."""
    parts = [f"{record.date}  {record.machine.get('processor', '')}, {record.machine.get('threads')} threads"]
    if record.limits:
        limits = record.limits
        parts.append(
            "limits: " + ", ".join(
                f"{name} {number(limits[key] / 1e9)} {unit}{' on one thread' if key.endswith(' 1') else ''}"
                for name, unit in _LIMITS.items()
                for key in (name, f"{name} 1") if key in limits
            )
        )  # fmt: skip
    if record.rows:
        libraries = libraries_of(record)
        head = ["workload", "unit", *libraries, "against best peer", "of limit", "goals"]
        isa = record.machine.get("isa", "")
        parts.append(aligned([head, *(line(row, libraries, isa) for row in record.rows)]))
    if record.imports:
        found = record.imports
        met = _MARK[found["cpu_s"] <= IMPORT_GOAL_S and not found["heavy"]]
        heavy = f", which imports {' and '.join(found['heavy'])}" if found["heavy"] else ", without numpy or llvmlite"
        parts.append(
            f"import tinytg: {time_text(found['wall_s'])} ({time_text(found['cpu_s'])} of processor time; "
            f"goal {time_text(IMPORT_GOAL_S)}: {met}){heavy}"
        )
    cold = cold_lines(record)
    if cold:
        head = ["first run in a fresh process", "library", "import", "empty cache", "full cache", "second run"]
        parts.append(aligned([head, *cold]))
    passes = pass_lines(record)
    if passes:
        parts.append(aligned(passes))
    parts += [f"{p['workload']}, pass by pass: FAILED: {p['failed']}" for p in record.passes if "failed" in p]
    marks = {met: f"({_MARK[met]})" for met in (True, False)}
    for head, lines in (
        (footprint.TRAINING_HEAD, footprint.training_lines(record, marks)),
        (footprint.STEPS_HEAD, footprint.steps_lines(record, marks)),
    ):
        if lines:
            parts.append(f"memory, MiB\n{aligned([head, *lines])}")
    if record.growth:
        rows = [["graph nodes", "kernels", "schedule", "lower", "schedule + lower per node"]]
        for point in record.growth:
            if "failed" in point:
                rows.append([str(point["wanted"]), "FAILED", point["failed"], "", ""])
                continue
            both = (point["schedule_s"] + point["lower_s"]) / point["nodes"]
            rows.append([
                str(point["nodes"]), str(point["kernels"]), time_text(point["schedule_s"]), time_text(point["lower_s"]),
                time_text(both),
            ])  # fmt: skip
        parts.append(aligned(rows))
    if not record.complete:
        parts.append("(interrupted: not everything was measured)")
    return "\n\n".join(parts)
