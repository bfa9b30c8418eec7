"""The command; see the package's docstring."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from .cover import Record, measure
from .mutations import Mutant, drawn
from .trial import Court, Verdict, ordered

ROOT = Path(__file__).resolve().parents[2]
KNOWN = Path(__file__).with_name("known.toml")
HARMLESS = Path(__file__).with_name("harmless.toml")


def known(root: Path) -> list[Mutant]:
    """The changes that once survived.

    Raises:
      SystemExit: the text of one is not in its file, or stands there more than once; or there is none.
    """
    found = []
    for entry in tomllib.loads(KNOWN.read_text(encoding="utf-8")).get("mutant", []):
        text = (root / entry["path"]).read_text(encoding="utf-8")
        if (times := text.count(entry["before"])) != 1:
            raise SystemExit(f"{KNOWN.name}: {entry['path']} holds {times} times: {entry['before']}")
        line = text[: text.index(entry["before"])].count("\n") + 1
        changed = text.replace(entry["before"], entry["after"])
        found.append(Mutant(entry["path"], line, entry["why"], entry["before"], entry["after"], changed))
    if not found:
        raise SystemExit(f"{KNOWN.name} names no change")
    return found


def harmless(root: Path) -> dict[tuple[str, str, str, str], str]:
    """Why no test can notice a change, by the path, the text of the line, and what becomes of what.

    Raises:
      SystemExit: the line of one is not in its file.
    """
    found = {}
    for entry in tomllib.loads(HARMLESS.read_text(encoding="utf-8")).get("mutant", []):
        lines = [line.strip() for line in (root / entry["path"]).read_text(encoding="utf-8").splitlines()]
        if entry["line"] not in lines:
            raise SystemExit(f"{HARMLESS.name}: {entry['path']} has no line: {entry['line']}")
        found[entry["path"], entry["line"], entry["before"], entry["after"]] = entry["why"]
    return found


def judge(mutants: list[Mutant], record: Record, options: argparse.Namespace) -> list[Verdict]:
    """Tries the mutants, as many at once as there are jobs, each job with a tree of its own; prints what comes out."""
    judged = harmless(ROOT)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(options.jobs) as threads:
        courts = SimpleQueue[Court]()
        for job in range(options.jobs):
            courts.put(Court(ROOT, Path(folder) / str(job)))

        def verdict(number: int, mutant: Mutant) -> Verdict:
            text = (ROOT / mutant.path).read_text(encoding="utf-8").splitlines()[mutant.line - 1].strip()
            if why := judged.get((mutant.path, text, mutant.before, mutant.after)):
                found = Verdict(mutant, "harmless", why)
            else:
                covering = record.tests(mutant.path, mutant.line)
                package = Path(mutant.path).parts[1]
                tests = ordered(covering, record.durations, package, options.budget)
                time_out = max(60.0, 3 * sum(record.durations.get(t, 0.0) for t in tests))
                court = courts.get()
                try:
                    found = court.try_(mutant, tests, len(covering), time_out)
                finally:
                    courts.put(court)
            print(f"[{number}/{len(mutants)}] {found}  {found.seconds:.0f} s", flush=True)
            return found

        return list(threads.map(verdict, range(1, len(mutants) + 1), mutants))


def summary(name: str, verdicts: list[Verdict]) -> str:
    """How many were killed of those that could be, and those that were not."""
    alive = [v for v in verdicts if v.status != "killed"]
    told = f"{name}: {killed(verdicts):.0%} of {len(verdicts)} killed, less those that no test can notice"
    return "\n".join([told, *(f"  {v}" for v in alive)])


def killed(verdicts: list[Verdict]) -> float:
    """The share of mutants that were killed, of those that a test could notice."""
    real = [v for v in verdicts if v.status != "harmless"]
    return sum(v.status == "killed" for v in real) / len(real) if real else 1.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--record", type=Path, default=ROOT / ".mutants", help="folder of the record (%(default)s)")
    commands = parser.add_subparsers(dest="command", required=True)
    covers = commands.add_parser("cover", help="record which test runs which line")
    covers.add_argument("--jobs", type=int, default=2)
    covers.add_argument("--seconds", type=float, default=float("inf"), help="begin no test later than that")
    covers.epilog = "Other arguments are pytest's."
    for name, what in (("run", "plant changes drawn by a seed"), ("known", "plant the changes that once survived")):
        runs = commands.add_parser(name, help=what)
        runs.add_argument("--jobs", type=int, default=2, help="mutants at once (default %(default)d)")
        runs.add_argument("--budget", type=float, default=90.0, help="seconds of tests a mutant (default %(default)g)")
        if name == "run":
            runs.add_argument("packages", nargs="+", help="tg_shape, tg_lazy …")
            runs.add_argument("--count", type=int, default=50, help="mutants a package (default %(default)d)")
            runs.add_argument("--seed", type=int, default=0)
            runs.add_argument("--only", type=int, nargs="+", metavar="N", help="of those drawn, try the Nth alone")
            runs.add_argument("--least", type=float, default=90.0, help="per cent that must be killed")
    options, others = parser.parse_known_args()
    if others and options.command != "cover":
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    if options.command == "cover":
        return measure(ROOT, options.record, options.jobs, options.seconds, others)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has it in the background; tests interrupt
        signal.signal(signal.SIGINT, signal.default_int_handler)
    record = Record(options.record)
    if options.command == "known":
        verdicts = judge(known(ROOT), record, options)
        print(summary("known", verdicts))
        return int(killed(verdicts) < 1)
    failed, texts = False, []
    for package in options.packages:
        mutants = drawn(ROOT, package, options.count, options.seed)
        verdicts = judge([mutants[n - 1] for n in options.only or range(1, len(mutants) + 1)], record, options)
        texts.append(summary(package, verdicts))
        failed = failed or killed(verdicts) * 100 < options.least
    print("\n".join(["", *texts]))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
