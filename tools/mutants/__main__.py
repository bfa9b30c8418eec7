"""The command; see the package's docstring."""

from __future__ import annotations

import argparse
import sys
import tempfile
import tomllib
from pathlib import Path

from .cover import Record, measure
from .mutations import Mutant, drawn
from .trial import Court, Verdict, ordered

ROOT = Path(__file__).resolve().parents[2]
KNOWN = Path(__file__).with_name("known.toml")


def known(root: Path) -> list[Mutant]:
    """The changes that once survived.

    Raises:
      SystemExit: the text of one is not in its file, or stands there more than once.
    """
    found = []
    for entry in tomllib.loads(KNOWN.read_text(encoding="utf-8")).get("mutant", []):
        text = (root / entry["path"]).read_text(encoding="utf-8")
        if (times := text.count(entry["before"])) != 1:
            raise SystemExit(f"{KNOWN.name}: {entry['path']} holds {times} times: {entry['before']}")
        line = text[: text.index(entry["before"])].count("\n") + 1
        changed = text.replace(entry["before"], entry["after"])
        found.append(Mutant(entry["path"], line, entry["why"], entry["before"], entry["after"], changed))
    return found


def judge(mutants: list[Mutant], record: Record, options: argparse.Namespace) -> list[Verdict]:
    """Tries each mutant, printing what comes out."""
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        court = Court(ROOT, Path(folder))
        for number, mutant in enumerate(mutants, 1):
            covering = record.tests(mutant.path, mutant.line)
            package = Path(mutant.path).parts[1]
            tests = ordered(covering, record.durations, package, options.budget)
            time_out = max(60.0, 5 * sum(record.durations.get(t, 0.0) for t in tests))
            verdicts.append(court.try_(mutant, tests, len(covering), time_out))
            print(f"[{number}/{len(mutants)}] {verdicts[-1]}  {verdicts[-1].seconds:.0f} s", flush=True)
    return verdicts


def summary(name: str, verdicts: list[Verdict]) -> str:
    """How many were killed, and those that were not."""
    alive = [v for v in verdicts if v.status != "killed"]
    killed = len(verdicts) - len(alive)
    share = killed / len(verdicts) if verdicts else 1.0
    return "\n".join([f"{name}: {killed} of {len(verdicts)} killed ({share:.0%})", *(f"  {v}" for v in alive)])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--record", type=Path, default=ROOT / ".mutants", help="folder of the record (%(default)s)")
    commands = parser.add_subparsers(dest="command", required=True)
    covers = commands.add_parser("cover", help="record which test runs which line")
    covers.add_argument("--jobs", type=int, default=2)
    covers.add_argument("--seconds", type=float, default=float("inf"), help="begin no test later than that")
    covers.add_argument("pytest", nargs="*", help="arguments for pytest")
    for name, what in (("run", "plant changes drawn by a seed"), ("known", "plant the changes that once survived")):
        runs = commands.add_parser(name, help=what)
        runs.add_argument("--budget", type=float, default=90.0, help="seconds of tests a mutant (default %(default)g)")
        if name == "run":
            runs.add_argument("packages", nargs="+", help="tg_shape, tg_lazy …")
            runs.add_argument("--count", type=int, default=50, help="mutants a package (default %(default)d)")
            runs.add_argument("--seed", type=int, default=0)
            runs.add_argument("--least", type=float, default=90.0, help="per cent that must be killed")
    options = parser.parse_args()
    if options.command == "cover":
        return measure(ROOT, options.record, options.jobs, options.seconds, options.pytest)
    record = Record(options.record)
    if options.command == "known":
        verdicts = judge(known(ROOT), record, options)
        print(summary("known", verdicts))
        return int(any(v.status != "killed" for v in verdicts))
    failed, texts = False, []
    for package in options.packages:
        verdicts = judge(drawn(ROOT, package, options.count, options.seed), record, options)
        texts.append(summary(package, verdicts))
        failed = failed or sum(v.status == "killed" for v in verdicts) * 100 < options.least * len(verdicts)
    print("\n".join(["", *texts]))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
