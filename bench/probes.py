"""What has to be measured in fresh processes: imports, cold starts, compile time by pass and by size of the graph."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .crew import Crew, WorkerDied, environment
from .workload import Workload

_IMPORT = """
import json, sys, time
wall, cpu = time.perf_counter(), time.process_time()
import tinytg
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
heavy = [name for name in ("numpy", "llvmlite") if name in sys.modules]
print(json.dumps({"wall_s": wall, "cpu_s": cpu, "heavy": heavy, "modules": len(sys.modules)}))
"""
IMPORT_GOAL_S = 0.10
COLD_GOALS = {
    "digits convnet train step, batch 64": (2.0, 0.5),
    "6-layer encoder 8x128x384": (1.5, 0.3),
    "SmolLM2-135M, load": (1.0, 1.0),
}
"""Seconds of the first run with an empty and with a full cache on disk, for tinytg."""


def run_python(code: list[str], crew: Crew, cache: Path, timeout_s: float) -> Any:
    """What a fresh process of this interpreter prints, as JSON.

    Raises:
      RuntimeError: it fails.
    """
    done = subprocess.run(
        [sys.executable, *code], env=environment(crew.threads, cache, isa=crew.isa), cwd=crew.scratch,
        capture_output=True, text=True, timeout=timeout_s, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def imports(crew: Crew, rounds: int) -> dict[str, Any]:
    """Importing tinytg in a fresh process: medians of the time, and whether something heavy came along."""
    found = [run_python(["-c", _IMPORT], crew, crew.scratch / "cache-import", 60) for _ in range(rounds + 1)][1:]
    return {
        "wall_s": statistics.median(x["wall_s"] for x in found),
        "cpu_s": statistics.median(x["cpu_s"] for x in found),
        "heavy": found[0]["heavy"],
        "modules": found[0]["modules"],
    }


def cold(crew: Crew, workload: Workload, library: str, rounds: int, timeout_s: float = 300.0) -> dict[str, Any]:
    """A workload's first run in a fresh process.

    Returns:
      ``cold`` with an empty cache on disk and ``warm`` with a full one, each the medians of ``import_s``, ``build_s``
      and ``first_s``; or a reason under ``absent``, ``unsupported`` or ``failed``.
    """
    found: dict[str, Any] = {"cold": [], "warm": []}
    cache = crew.scratch / f"cold-{library}"
    for _ in range(rounds):
        shutil.rmtree(cache, ignore_errors=True)
        for state in ("cold", "warm"):
            member = crew.launch(library, cache)
            try:
                answer = member.ask("start", timeout_s, workload=workload.name)
            except WorkerDied as death:
                return {"failed": str(death)}
            finally:
                member.close()
            for kind in ("absent", "unsupported", "failed"):
                if kind in answer:
                    return {kind: answer[kind]}
            found[state].append(answer)
    shutil.rmtree(cache, ignore_errors=True)
    return {
        state: {key: statistics.median(x[key] for x in answers) for key in answers[0]}
        for state, answers in found.items()
    }


def growth(crew: Crew, most: int, timeout_s: float = 600.0) -> list[dict[str, Any]]:
    """Scheduling and lowering of graphs of more and more nodes, up to ``most``."""
    points = []
    nodes = 100
    while nodes <= most:
        arguments = ["-m", "bench.growth", str(nodes)]
        try:
            points.append(run_python(arguments, crew, crew.scratch / "cache-growth", timeout_s))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            points.append({"wanted": nodes, "failed": str(error)[:300]})
            break
        nodes *= 10
    return points


def passes(crew: Crew, names: Sequence[str], timeout_s: float = 300.0) -> list[dict[str, Any]]:
    """Where the processor time of the first runs of workloads goes, each in a fresh process with empty caches."""
    found = []
    for name in names:
        cache = crew.scratch / "cache-passes"
        shutil.rmtree(cache, ignore_errors=True)
        try:
            found.append(run_python(["-m", "bench.passes", name], crew, cache, timeout_s))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            found.append({"workload": name, "failed": str(error)[:300]})
    return found


def load() -> float | None:
    """The machine's load over the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None
