"""Whether a change left every kernel as it was: ``python -m tools.replay COMMIT``.

Compiles the kernels of drawn programs (those of :mod:`tools.sweep`, for its machines) with this code and with an
earlier commit's, and compares their text. What a change of structure alone may do is nothing; each kernel that came
out differently is printed as the command of a sweep that plans it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIXED = (
    "softmax/-1/float32/1024x4096", "attention/plain/float32/1x4x509x509x64",
    "attention/causal/float32/1x1x4096x4096x64", "layernorm/forward/float32/1024x768",
    "matmul/NN/float32/1024x1024x1024", "convolution/3s1p1/float32/8x64x64x56x56",
)  # fmt: skip
"""Programs that are replayed beside the drawn ones: those that benches begin with."""


def texts(case: str) -> dict[str, str]:
    """A digest of each kernel of a program on each machine, by ``case machine number``."""
    from tg_codegen import compile_ast
    from tg_lazy import Context
    from tools.sweep.kernels import kernels
    from tools.sweep.machines import MACHINES
    from tools.sweep.programs import Case

    found = {}
    for name, machine in MACHINES.items():
        for number, ast in enumerate(kernels(Case.parse(case), machine)):
            with Context(FALLBACK=1, DEBUG=0):
                try:
                    text = compile_ast(ast, machine.renderer).src
                except Exception as error:
                    text = f"{type(error).__name__}: {error}"
            found[f"{case} {name} {number}"] = hashlib.sha256(text.encode()).hexdigest()
    return found


def dump(cases: Sequence[str]) -> None:
    """Prints the digests of programs' kernels as JSON."""
    found: dict[str, str] = {}
    with ProcessPoolExecutor() as pool:
        for part in pool.map(texts, cases):
            found.update(part)
    json.dump(found, sys.stdout)


def programs(count: int, seed: int) -> Iterator[str]:
    """The programs to replay."""
    from tools.sweep.programs import Case, drawn

    yield from (str(Case.parse(text)) for text in FIXED)
    rng = random.Random(seed)
    yield from (str(drawn(rng)) for _ in range(count))


def compiled_by(tree: Path, cases: Sequence[str]) -> dict[str, str]:
    """The digests as the packages in a folder make them."""
    paths = [str(path) for path in [*tree.glob("packages/*/src"), tree / "src"]]
    done = subprocess.run(
        [sys.executable, "-m", "tools.replay", "--dump", *cases], cwd=ROOT, stdout=subprocess.PIPE, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*paths, str(ROOT)])})  # fmt: skip
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Compares; returns 1 where a kernel differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.replay", description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", default="HEAD", help="the earlier commit (default: %(default)s)")
    parser.add_argument("--programs", type=int, default=60, help="programs to draw (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dump", nargs="+", metavar="CASE", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.dump:
        dump(options.dump)
        return 0
    from bench.earlier import checkout

    cases = list(programs(options.programs, options.seed))
    with tempfile.TemporaryDirectory(prefix="tinytg-replay-") as scratch:
        before, now = compiled_by(checkout(options.commit, Path(scratch)), cases), compiled_by(ROOT, cases)
    changed = [key for key in before.keys() | now.keys() if before.get(key) != now.get(key)]
    for key in sorted(changed):
        case, machine, number = key.rsplit(" ", 2)
        print(f"kernel {number} differs: hatch run sweep --case '{case}' --machine {machine}")
    print(f"{len(now)} kernels, {len(changed)} differ from {options.commit}")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())
