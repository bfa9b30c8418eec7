"""This code's speed beside an earlier commit's: the same workloads, in turns, on this machine.

    python -m bench earlier COMMIT [--only NAME] [--rounds N]

Both run in workers of their own, with the bench of this checkout and the packages of either; rounds are pairs, so a
machine whose speed drifts does so for both. A row's ratio is the earlier commit's time by this one's: below one, this
code is slower. It fails where the geometric mean is below 0.97, or where a row is surely below 0.95: where all of the
interval that holds the median of its rounds with 95 % is.
"""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

from .crew import ROOT, Crew
from .libraries import OURS
from .measure import Effort, measure
from .table import aligned
from .workload import Workload

LEAST_MEAN, LEAST_ROW = 0.97, 0.95
PATIENCE_S = 60.0
"""After which a worker that does not answer is given up: an earlier commit may take minutes for what takes a second."""
EARLIER = f"{OURS}@earlier"


@dataclasses.dataclass(frozen=True)
class Compared:
    """One workload's ratio: the earlier commit's seconds by this one's.

    Attributes:
      name: the workload's.
      seconds: of the earlier commit, of this one.
      ratio: the median of the rounds' ratios; NaN where it could not be compared.
      low, high: between which the median of any number of rounds is, with 95 %.
      reason: why it could not be compared; empty where it could.
    """

    name: str
    seconds: tuple[float, float] = (math.nan, math.nan)
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
    reason: str = ""


def interval(values: Sequence[float], sure: float = 0.95) -> tuple[float, float]:
    """Between which of the values the median of what they are drawn from lies, at least that surely.

    The order statistics of a binomial distribution: no shape is assumed. Too few values bound nothing.

    >>> interval(range(11))
    (1, 9)
    >>> interval([1, 2, 3])
    (-inf, inf)
    """
    ordered, n = sorted(values), len(values)
    cut, outside = -1, 0.0
    while cut + 1 < (n + 1) // 2 and outside + 2 * math.comb(n, cut + 1) * 0.5**n <= 1 - sure:
        cut += 1
        outside += 2 * math.comb(n, cut) * 0.5**n
    return (-math.inf, math.inf) if cut < 0 else (ordered[cut], ordered[n - 1 - cut])


def compare(crew: Crew, workload: Workload, effort: Effort, say: Callable[[str], None]) -> Compared:
    """One workload in both."""
    results = measure(crew, workload, [EARLIER, OURS], {}, effort, say).results
    for name, outcome in results.items():
        if outcome.status != "ok" or not outcome.rounds:
            return Compared(workload.name, reason=f"{name}: {outcome.reason or outcome.status}")
    before, now = results[EARLIER].rounds, results[OURS].rounds
    ratios = [a / b for a, b in zip(before, now, strict=False)]
    seconds = statistics.median(before), statistics.median(now)
    return Compared(workload.name, seconds, statistics.median(ratios), *interval(ratios))


def verdict(compared: Sequence[Compared]) -> tuple[float, list[str]]:
    """The geometric mean of the ratios, and what is not as before, in words."""
    rows = [row for row in compared if not row.reason]
    mean = math.exp(statistics.fmean(math.log(row.ratio) for row in rows)) if rows else math.nan
    wrong = [
        f"{row.name}: surely below {LEAST_ROW} ({row.low:.3f} to {row.high:.3f})"
        for row in rows
        if row.high < LEAST_ROW
    ]
    wrong += [f"{row.name}: {row.reason}" for row in compared if row.reason.startswith(f"{OURS}:")]
    if not mean >= LEAST_MEAN:
        wrong.append(f"the geometric mean is {mean:.3f}, below {LEAST_MEAN}")
    return mean, wrong


def checkout(commit: str, folder: Path) -> Path:
    """The files of a commit of this repository, in a folder.

    Raises:
      SystemExit: git does not know the commit.
    """
    packed = folder / "earlier.tar"
    pack = ["git", "-C", str(ROOT), "archive", "--output", str(packed), commit]
    done = subprocess.run(pack, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"git has no commit {commit!r}: {done.stderr.strip()[-300:]}")
    tree = folder / "earlier"
    tree.mkdir()
    subprocess.run(["tar", "-xf", str(packed), "-C", str(tree)], check=True)
    for project in sorted(tree.glob("packages/*/pyproject.toml")):
        installed(project)
    return tree


def installed(project: Path) -> None:
    """Writes beside a package what installing it would: its entry points, which may name other modules than today's."""
    facts = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    folder = project.parent / "src" / f"{facts['name'].replace('-', '_')}-{facts['version']}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {facts['name']}\nVersion: {facts['version']}\n", encoding="utf-8")
    lines = [line for group, points in facts.get("entry-points", {}).items()
             for line in (f"[{group}]", *(f"{name} = {where}" for name, where in points.items()))]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(
    commit: str, workloads: Sequence[Workload], rounds: int, threads: int, keep: str, say: Callable[[str], None]
) -> int:
    """Compares, prints, and says by its exit status whether speed is as before."""
    compared: list[Compared] = []
    with tempfile.TemporaryDirectory(prefix="tinytg-bench-") as scratch:
        crew = Crew(threads, "", Path(scratch), {EARLIER: checkout(commit, Path(scratch))})
        effort = dataclasses.replace(Effort(), rounds=rounds, timeout_s=PATIENCE_S)
        try:
            for number, workload in enumerate(workloads, 1):
                row = compare(crew, workload, effort, say)
                compared.append(row)
                found = row.reason or f"{row.ratio:.3f} ({row.low:.3f} to {row.high:.3f})"
                say(f"[{number}/{len(workloads)}] {row.name}: {found}")
                if keep:
                    stored = {"commit": commit, "rows": [dataclasses.asdict(one) for one in compared]}
                    Path(keep).write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
        finally:
            crew.close()
    cells = [
        [row.name, row.reason] if row.reason else
        [row.name, *(f"{s * 1e3:.4g}" for s in row.seconds), f"{row.ratio:.3f}", f"{row.low:.3f} to {row.high:.3f}"]
        for row in sorted(compared, key=lambda row: row.ratio)
    ]  # fmt: skip
    head = ["workload", f"{commit[:12]}, ms", "this code, ms", "ratio", "95 %"]
    say(aligned([head, *([*line, *[""] * (len(head) - len(line))] for line in cells)]))
    mean, wrong = verdict(compared)
    say(f"geometric mean of {sum(not row.reason for row in compared)} rows: {mean:.3f}")
    for line in wrong:
        say(f"NOT AS BEFORE {line}")
    return int(bool(wrong))
