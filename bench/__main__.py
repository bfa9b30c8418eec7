"""The command: ``python -m bench [run|report|guard|earlier|search|engine|hcq|list]``; see ``bench/README.md``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from . import earlier, footprint, guard, probes
from .crew import ROOT, Crew, environment
from .isa import HELD
from .libraries import DEFAULT, IMPORTS, MODULES, OURS
from .measure import QUICK, Effort, measure, now
from .page import page
from .passes import TRACED
from .picture import svg
from .processor import processor
from .record import Record
from .record import number as number_text
from .table import cell, text
from .workload import Workload
from .workloads import WORKLOADS

RESULTS = Path(__file__).with_name("results")
REFERENCE = RESULTS / "reference.json"
PAGE, PICTURE = ROOT / "docs" / "performance.md", ROOT / "docs" / "performance.svg"
PROBES = ("limits", "import", "cold", "passes", "growth", "footprint")
IDLE = 0.5


def say(line: str) -> None:
    """Prints a line of progress."""
    print(line, flush=True)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def detect(libraries: Sequence[str], crew: Crew) -> dict[str, str]:
    """The version of each library, or ``absent: `` and why; found without importing them."""
    code = (
        "import json, sys; from importlib.util import find_spec\n"
        "from importlib.metadata import packages_distributions, version\n"
        "of = packages_distributions()\n"
        "print(json.dumps({n: (version(of.get(m, [m])[0]) if find_spec(m) else '')"
        " for n, m in json.loads(sys.argv[1]).items()}))"
    )
    found: dict[str, str] = {}
    for python in dict.fromkeys(crew.python(name) for name in libraries):
        wanted = {name: IMPORTS[name] for name in libraries if crew.python(name) == python}
        done = subprocess.run(
            [python, "-c", code, json.dumps(wanted)], env=environment(crew.threads, crew.scratch),
            cwd=tempfile.gettempdir(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"{python} does not run: {done.stderr.strip()[-300:]}")
        versions = json.loads(done.stdout)
        found |= {n: versions[n] or f"absent: {python} has no module {IMPORTS[n]}" for n in wanted}
    return {name: found[name] for name in libraries}


def chosen(only: Sequence[str], quick: bool) -> tuple[list[Workload], list[str]]:
    """The workloads and probes that were asked for.

    Raises:
      SystemExit: a name is none of them.
    """
    if not only:
        every = [w for w in WORKLOADS.values() if w.quick or not quick]
        return every, [probe for probe in PROBES if probe != "footprint" or not quick]
    names: set[str] = set()
    wanted: list[str] = []
    for name in only:
        hits = [w for w in WORKLOADS.values() if name.lower() in w.name.lower() or name.lower() == w.group]
        if name in WORKLOADS:
            hits = [WORKLOADS[name]]
        hit_probes = [p for p in PROBES if p == name.lower()]
        if not hits and not hit_probes:
            raise SystemExit(f"nothing is called {name!r}; `python -m bench list` shows what there is")
        names.update(w.name for w in hits)
        wanted += hit_probes
    workloads = [w for w in WORKLOADS.values() if w.name in names]
    return workloads, ["limits", *wanted] if any(w.limit for w in workloads) and "limits" not in wanted else wanted


def wait_until_idle(most_s: float) -> None:
    """Waits until the machine's load is low, for a while at most."""
    end = time.monotonic() + most_s
    while (load := probes.load()) is not None and load >= IDLE and time.monotonic() < end:
        say(f"waiting for an idle machine: load {load:.2f}")
        time.sleep(min(10.0, max(0.0, end - time.monotonic())))


def run(options: argparse.Namespace) -> int:
    """Measures, prints and writes."""
    quick: bool = options.quick
    workloads, wanted = chosen(options.only, quick)
    libraries = [name.strip() for name in options.libraries.split(",")] if options.libraries else list(DEFAULT)
    for name in libraries:
        if name not in MODULES:
            raise SystemExit(f"no library is called {name!r}; there are {', '.join(MODULES)}")
    if options.no_cold:
        wanted = [probe for probe in wanted if probe not in ("cold", "passes", "growth", "footprint")]
    if options.wait_idle:
        wait_until_idle(options.wait_idle)
    path = Path(options.json) if options.json else RESULTS / ("quick.json" if quick else "latest.json")
    record = Record.load(path) if options.add and path.exists() else Record(effort="quick" if quick else "full")
    effort = QUICK if quick else Effort()
    with tempfile.TemporaryDirectory(prefix="tinytg-bench-") as scratch:
        crew = Crew(options.threads or cores(), options.peers_python, Path(scratch), isa=options.isa)
        try:
            effort = dataclasses.replace(effort, shown=options.shown)
            fill(record, crew, workloads, wanted, libraries, effort, lambda: record.save(path))
            record.complete = not options.add or len(record.rows) == len(WORKLOADS)
        except KeyboardInterrupt:
            say("interrupted")
        finally:
            crew.close()
            record.machine["load_after"] = probes.load()
            say("")
            say(text(record))
            record.save(path)
            path.with_suffix(".svg").write_text(svg(record), encoding="utf-8")
            say(f"\nwritten: {path} and {path.with_suffix('.svg').name}")
    ours = [row.results[OURS] for row in record.rows if OURS in row.results]
    finished = record.complete or options.add
    return int(not finished or any(outcome.status in ("wrong", "failed") for outcome in ours))


def fill(
    record: Record, crew: Crew, workloads: Sequence[Workload], wanted: Sequence[str], libraries: Sequence[str],
    effort: Effort, keep: Callable[[], None],
) -> None:
    """Measures what is wanted, in order, into a record; calls ``keep`` after each row."""
    quick = record.effort == "quick"
    record.date = now()
    record.machine |= {
        "processor": processor(), "cores": os.cpu_count(), "threads": crew.threads, "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}", "load_before": probes.load(),
        "shown": effort.shown, "isa": crew.isa,
    }  # fmt: skip
    every = list(dict.fromkeys([*libraries, *(n for w in workloads for n in w.libraries if not quick)]))
    record.libraries |= detect(every, crew)
    absent = {n: v for n, v in record.libraries.items() if v.startswith("absent")}
    say(", ".join(f"{n} {v}" for n, v in record.libraries.items()))
    if "limits" in wanted:
        say("the machine's limits")
        arguments = ["-m", "bench.limits", str(1 << 27), "0.05" if quick else "0.2", effort.shown]
        try:
            record.limits = probes.run_python(arguments, crew, crew.scratch / "cache-limits", 120)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            say(f"  failed: {error}")

    if "import" in wanted:
        say("import of tinytg")
        try:
            record.imports = probes.imports(crew, 3 if quick else 7)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            say(f"  failed: {error}")
    for number, workload in enumerate(workloads, 1):
        say(f"[{number}/{len(workloads)}] {workload.name}")
        extra = [n for n in workload.libraries if n not in libraries and not quick]
        row = measure(crew, workload, [*libraries, *extra], absent, effort, say)
        record.add(row)
        keep()
        cells = [f"{n} {cell(workload, o)}" for n, o in row.results.items() if o.status != "absent"]
        noise = f", others used {row.others:.0%}" if row.others is not None else ""
        limit = f", limit {number_text(row.limit / 1e9)} G/s" if row.limit else ""
        say(f"  {', '.join(cells)} {workload.unit}{limit}{noise}")
    crew.close()
    if "cold" in wanted:
        # a picked workload has its cold start measured when it is picked with the word; else those that are marked
        for workload in [w for w in workloads if w.cold] or [w for w in WORKLOADS.values() if w.cold]:
            found = record.cold.setdefault(workload.name, {})
            for name in dict.fromkeys([*libraries, *(() if quick else workload.libraries)]):
                if name == "numpy" or name in absent or (quick and name != OURS):
                    continue
                say(f"cold start: {workload.name}, {name}")
                found[name] = probes.cold(crew, workload, name, 1 if quick else 3)
    if "passes" in wanted:
        say("first runs, pass by pass")
        record.passes = probes.passes(crew, TRACED[:1] if quick else TRACED)
    if "footprint" in wanted:
        trained = [w for w in workloads if w.group == "training"] or [
            w for w in WORKLOADS.values() if w.group == "training" and (w.quick or not quick)
        ]
        for workload in trained:
            remember(record, crew, workload, [n for n in libraries if n != "numpy" and n not in absent])
            keep()
    if "growth" in wanted:
        say("growth of scheduling and lowering")
        record.growth = probes.growth(crew, 10_000 if quick else 100_000)


def remember(record: Record, crew: Crew, workload: Workload, libraries: Sequence[str]) -> None:
    """Measures what training takes of memory."""
    for name in libraries:
        say(f"memory: {workload.name}, {name}")
        record.footprint.setdefault(workload.name, {})[name] = footprint.probe(crew, workload, name)
    if footprint.worth_many_steps(record.footprint[workload.name].get(OURS, {})):
        for way in footprint.WAYS:
            say(f"memory: {workload.name}, many steps, {way}")
            record.steps.setdefault(workload.name, {})[way] = footprint.many_steps(crew, workload, way)


def report(options: argparse.Namespace) -> int:
    """Writes the page and its picture, or says whether they are up to date."""
    path = Path(options.json)
    if not path.exists():
        raise SystemExit(f"{path} is not there: `python -m bench --json {path}` makes it")
    record = Record.load(path)
    stale = []
    held = [Record.load(found) for found in (RESULTS / f"{isa}.json" for isa in HELD) if found.exists()]
    for target, content in ((PAGE, page(record, held)), (PICTURE, svg(record))):
        if target.exists() and target.read_text(encoding="utf-8") == content:
            continue
        stale.append(str(target.relative_to(ROOT)))
        if not options.check:
            target.write_text(content, encoding="utf-8")
    if options.check and stale:
        say(f"not what `python -m bench report` makes: {', '.join(stale)}")
    elif stale:
        say(f"written: {', '.join(stale)}")
    return int(options.check and bool(stale))


def compare(options: argparse.Namespace) -> int:
    """Measures beside an earlier commit."""
    workloads = chosen(options.only, quick=False)[0]
    return earlier.main(options.commit, workloads, options.rounds, options.threads or cores(), options.json, say)


def beam_search(options: argparse.Namespace) -> int:
    """Searches for faster kernels than the heuristic plans."""
    from . import search  # and the library itself, which other commands run in processes of their own

    return search.main(say, options.only)


def software_gpu(options: argparse.Namespace) -> int:
    """Measures the engine of software GPUs."""
    from . import engine  # and what it measures, which other commands run in processes of their own

    return engine.main(say, options.add)


def hardware_queues(options: argparse.Namespace) -> int:
    """Measures submissions to hardware queues."""
    from . import hcq  # as above

    return hcq.main(say, options.add)


def show(options: argparse.Namespace) -> int:
    """Prints the workloads."""
    for workload in WORKLOADS.values():
        marks = [mark for mark, on in (("quick", workload.quick), ("cold", workload.cold)) if on]
        say(f"{workload.group:18s} {workload.name:42s} {workload.unit:8s} {', '.join(marks)}".rstrip())
    say(f"and the probes {', '.join(PROBES)}")
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m bench", description="tinytg's speed beside other libraries.")
    commands = top.add_subparsers(dest="command")
    runs = commands.add_parser("run", help="measure (the default)")
    runs.add_argument("--quick", action="store_true", help="less than a minute: fewer workloads and rounds")
    only = "a workload, a part of its name, a group or a probe; may be given again"
    runs.add_argument("--only", action="append", default=[], metavar="NAME", help=only)
    runs.add_argument("--libraries", metavar="A,B", help=f"which of {', '.join(MODULES)}")
    runs.add_argument("--threads", type=int, default=0, help="threads for every library; all cores by default")
    runs.add_argument(
        "--peers-python", metavar="PATH", default=os.environ.get("PEERS_PYTHON") or sys.executable,
        help="the interpreter that has torch, jax and tinygrad (or PEERS_PYTHON); by default this one",
    )  # fmt: skip
    runs.add_argument(
        "--isa", choices=sorted(HELD), default="", help="hold every library to an older instruction set"
    )
    runs.add_argument("--json", metavar="PATH", help="where the figures go; the picture goes beside them")
    runs.add_argument("--add", action="store_true", help="keep what that file has, and replace what is measured now")
    runs.add_argument("--no-cold", action="store_true", help="no cold starts, no compile times, no memory")
    runs.add_argument(
        "--shown", choices=("median", "fastest", "processor"), default="median",
        help="on a busy machine: the fastest run, or, with one thread, processor time; by default the median",
    )  # fmt: skip
    runs.add_argument("--wait-idle", type=float, default=0.0, metavar="SECONDS", help=f"wait for a load below {IDLE}")
    runs.set_defaults(action=run)
    reports = commands.add_parser("report", help="write docs/performance.md and its picture")
    reports.add_argument("json", nargs="?", default=str(REFERENCE), help="the figures")
    reports.add_argument("--check", action="store_true", help="only say whether they are up to date")
    reports.set_defaults(action=report)
    guards = commands.add_parser("guard", help=f"fails where a workload takes {guard.MOST} times what it should")
    guards.add_argument("--record", action="store_true", help="write what each should take, on a quiet machine")
    guards.add_argument(
        "--most", type=float, default=guard.MOST, metavar="TIMES",
        help="how many times what it should a workload may take; on a host that others share, 2",
    )  # fmt: skip
    guards.set_defaults(action=lambda options: guard.main(options.record, options.most))
    earliers = commands.add_parser("earlier", help="this code's speed beside an earlier commit's, in turns")
    earliers.add_argument("commit", help="which")
    earliers.add_argument("--only", action="append", default=[], metavar="NAME", help=only)
    earliers.add_argument("--rounds", type=int, default=11, help="pairs of turns for each workload")
    earliers.add_argument("--threads", type=int, default=0, help="threads for both; all cores by default")
    earliers.add_argument("--json", default="", metavar="PATH", help="where the figures go")
    earliers.set_defaults(action=compare)
    searches = commands.add_parser("search", help="what BEAM search finds beside the heuristic, in some 20 minutes")
    part = "a part of the name of a workload or of a kernel of ResNet-50; may be given again"
    searches.add_argument("--only", action="append", default=[], metavar="NAME", help=part)
    searches.set_defaults(action=beam_search)
    kept = "also put the figures in this record, for the page"
    engines = commands.add_parser("engine", help="what an instruction of a software GPU costs, as JSON")
    engines.add_argument("--add", default="", metavar="PATH", help=kept)
    engines.set_defaults(action=software_gpu)
    queues = commands.add_parser("hcq", help="what a submission to a hardware queue costs, as JSON")
    queues.add_argument("--add", default="", metavar="PATH", help=kept)
    queues.set_defaults(action=hardware_queues)
    commands.add_parser("list", help="what can be measured").set_defaults(action=show)
    return top


def main(arguments: Sequence[str]) -> int:
    """Runs a command; without one, ``run``."""
    names = ("run", "report", "guard", "earlier", "search", "engine", "hcq", "list")
    given = list(arguments)
    if not any(a in (*names, "-h", "--help") for a in given[:1]):
        given.insert(0, "run")
    options = parser().parse_args(given)
    return int(options.action(options))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
