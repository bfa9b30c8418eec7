"""Run the conformance class and two programs on every device that executes here, and write what came out.

    python -m tools.devices                              # devices of this environment
    python -m tools.devices --opencl PREFIX              # Intel's OpenCL from the environment at PREFIX, too
    python -m tools.devices --cuda PREFIX                # CUDA C++ with the NVRTC of the environment at PREFIX
    python -m tools.devices --only NUMPY --parts matrix  # a part; what else is known stays
    python -m tools.devices --page                       # the page alone, from what is known

The results are kept in ``docs/devices.json``; the tables of ``docs/devices.md`` are written from them. A device that is
not here keeps its column as it was. Groups of tests are those of ``python -m tg_runtime.testing``; the programs are
``examples/mnist.py`` and ``examples/embed.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tg_runtime.testing.conformance import groups
from tg_runtime.testing.report import FAILED, PASSED

from . import opencl

ROOT = Path(__file__).parents[1]
PAGE, RESULTS = ROOT / "docs" / "devices.md", ROOT / "docs" / "devices.json"
STEPS = 40
TOLERANCE = 0.002  # of a cosine


@dataclass(frozen=True)
class Subject:
    """A column of the matrix.

    Attributes:
      label: what it is called.
      dev: the setting of ``DEV``.
      what: what runs it.
      where: the environment that has what it needs: of this process (empty), ``opencl``, ``cuda`` or ``metal``.
      executes: whether programs run on it.
      programs: whether they were run for the page; not on software cards, which take minutes for some steps.
    """

    label: str
    dev: str
    what: str
    where: str = ""
    executes: bool = True
    programs: bool = True


SUBJECTS = (
    Subject("CPU:LLVM", "CPU:LLVM", "the host, through llvmlite"),
    Subject("CPU:CLANG", "CPU:CLANG", "the host, through clang"),
    Subject("CL (PoCL)", "CL", "the host, through PoCL's OpenCL"),
    Subject("CL (Intel)", "CL", "the host, through Intel's OpenCL", "opencl"),
    Subject("CUDA:PTX", "MOCK+CUDA:PTX", "PTX translated to LLVM IR, behind the driver API"),
    Subject("CUDA:CUDA", "MOCK+CUDA:CUDA", "the same with CUDA C++ through NVRTC", "cuda"),
    Subject("WEBGPU (Dawn)", "DAWN+WEBGPU", "lavapipe, through Dawn"),
    Subject("WEBGPU (wgpu)", "WGPU+WEBGPU", "lavapipe, through wgpu-native"),
    Subject("METAL", "METAL", "a stand-in for Apple's runtime that compiles the language as C++", "metal"),
    Subject("HOSTQ", "HOSTQ", "the host, driven by hardware queues"),
    Subject("AMD gfx1030", "MOCKKFD+AMD:LLVM:gfx1030", "a software card that executes RDNA 2", programs=False),
    Subject("AMD gfx1100", "MOCKKFD+AMD:LLVM:gfx1100", "a software card that executes RDNA 3", programs=False),
    Subject("AMD gfx1201", "MOCKKFD+AMD:LLVM:gfx1201", "a software card that executes RDNA 4", programs=False),
    Subject("AMD:HIP", "MOCKKFD+AMD:HIP:gfx1030", "the same card as gfx1030, with HIP C++ by COMGR", programs=False),
    Subject("NUMPY", "NUMPY", "kernels interpreted op by op"),
    Subject("NULL", "NULL", "nothing: kernels are compiled only", executes=False),
)
Json = dict[str, Any]


@dataclass(frozen=True)
class Places:
    """Where environments are: prefixes, or None for what is in this one."""

    opencl: str | None = None
    cuda: str | None = None


@contextmanager
def environment(subject: Subject, places: Places) -> Iterator[tuple[str, dict[str, str]] | None]:
    """The interpreter and the variables under which a device is found; None if what it needs is not here."""
    variables = {**os.environ, "DEV": subject.dev}
    if subject.where == "opencl":
        try:
            found = opencl.environment(Path(places.opencl or sys.prefix))
        except FileNotFoundError:
            yield None
        else:
            yield sys.executable, {**found, "DEV": subject.dev}
    elif subject.where == "cuda":
        yield (f"{places.cuda}/bin/python" if places.cuda else sys.executable), variables
    elif subject.where == "metal":
        with tempfile.TemporaryDirectory() as folder:
            yield sys.executable, {**variables, **metal(Path(folder))}
    else:
        yield sys.executable, variables


def metal(folder: Path) -> dict[str, str]:
    """Builds the stand-in for Metal that the tests use; returns the variables that name it."""
    from tg_codegen.render.c.msl_host import install

    install(str(folder))
    library = folder / "libfakemetal.so"
    sources = sorted(str(source) for source in (ROOT / "packages/tg-runtime/tests/metal").glob("*.c"))
    flags = ["-std=gnu11", "-O1", "-w", "-shared", "-fPIC", "-fvisibility=hidden"]
    subprocess.run(["gcc", *flags, *sources, "-o", str(library), "-ldl", "-lpthread"], check=True)
    return {"METAL_LIBRARY": str(library), "FAKE_METAL_FOLDER": str(folder), "FAKE_METAL_CXX": "g++"}


def conformance(python: str, variables: Mapping[str, str], dev: str) -> Json:
    """What each group says of a device.

    Raises:
      RuntimeError: the device cannot be opened.
    """
    done = subprocess.run(
        [python, "-m", "tg_runtime.testing", "--json", dev], capture_output=True, text=True, env=dict(variables),
        check=False,
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not rows:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    return {row["group"]: {key: row[key] for key in ("status", "tests", "detail")} for row in rows}


def mnist(python: str, variables: Mapping[str, str]) -> Json:
    """Loss before and after, and accuracy, of the training program.

    Raises:
      RuntimeError: it failed.
    """
    text = run(python, variables, "examples/mnist.py", "--steps", str(STEPS))
    loss = re.search(r"^loss +([\d.]+) at first, ([\d.]+) at last", text, re.MULTILINE)
    accuracy = re.search(r"^accuracy +([\d.]+)%", text, re.MULTILINE)
    if loss is None or accuracy is None:
        raise RuntimeError(f"examples/mnist.py printed no summary: {text[-300:]}")
    return {"first": float(loss[1]), "last": float(loss[2]), "accuracy": float(accuracy[1])}


def embed(python: str, variables: Mapping[str, str]) -> Json:
    """The cosines between the sentences of the embedding program.

    Raises:
      RuntimeError: it failed.
    """
    text = run(python, variables, "examples/embed.py")
    rows = [re.findall(r"-?\d\.\d{3}", line) for line in text.splitlines()]
    return {"cosines": [float(v) for row in rows for v in row]}


def run(python: str, variables: Mapping[str, str], *command: str) -> str:
    """What a program of the examples prints.

    Raises:
      RuntimeError: it failed.
    """
    # Other environments lack what the examples import: it is found in this one.
    paths = os.pathsep.join([str(ROOT / "src"), *(p for p in sys.path if p.endswith("site-packages"))])
    done = subprocess.run(
        [python, *command], capture_output=True, text=True, cwd=ROOT, check=False,
        env={**variables, "PYTHONPATH": os.pathsep.join(filter(None, (variables.get("PYTHONPATH", ""), paths)))},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {(done.stderr.strip() or done.stdout).splitlines()[-1][:300]}")
    return done.stdout


PARTS: dict[str, Callable[[str, Mapping[str, str]], Json]] = {"mnist": mnist, "embed": embed}


def collect(subject: Subject, places: Places, parts: Sequence[str], known: Json) -> Json:
    """The results of a device: what is asked for, beside what is known."""
    out = dict(known)
    with environment(subject, places) as found:
        if found is None:
            print(f"{subject.label}: not here", flush=True)
            return out
        if "matrix" in parts:
            try:
                out["matrix"] = conformance(*found, subject.dev)
            except RuntimeError as error:
                print(f"{subject.label}: {error}", flush=True)
                return out
        for name, program in PARTS.items():
            if name in parts and subject.executes and subject.programs:
                try:
                    out[name] = program(*found)
                except RuntimeError as error:
                    out[name] = {"error": str(error)}
    return out


# the page


def cell(outcome: Json | None, notes: list[str]) -> str:
    """A cell of the matrix; what is absent is noted, and the cell refers to the note."""
    if outcome is None:
        return "?"
    if outcome["status"] == FAILED:
        return "**fails**"
    mark = "✓" if outcome["status"] == PASSED else "–"
    if not outcome["detail"]:
        return mark
    what = re.sub(r"^\S+ has no ", "no ", outcome["detail"]).split(": ")[0]
    if what not in notes:
        notes.append(what)
    return f"{mark} {notes.index(what) + 1}"


def matrix(results: Json) -> str:
    """The matrix of groups and devices."""
    shown = [s for s in SUBJECTS if "matrix" in results.get(s.label, {})]
    notes: list[str] = []
    lines = [
        f"| group | {' | '.join(s.label for s in shown)} |",
        f"|---|{':-:|' * len(shown)}",
    ]
    for group in groups():
        cells = [cell(results[s.label]["matrix"].get(group), notes) for s in shown]
        lines.append(f"| {group} | {' | '.join(cells)} |")
    lines += ["", "✓ passed; – the device has none of it; a number says what some or all tests of the group miss:", ""]
    lines += [f"{number}. {note}" for number, note in enumerate(notes, 1)]
    return "\n".join(lines)


def programs(results: Json) -> str:
    """The table of the two programs."""
    shown = [s for s in SUBJECTS if s.executes and "mnist" in results.get(s.label, {})]
    embedded = [results[s.label].get("embed", {}) for s in shown]
    reference: list[float] = next((one["cosines"] for one in embedded if "cosines" in one), [])
    lines = [
        f"| device | loss, {STEPS} steps | held out | cosines |",
        "|---|--:|--:|---|",
    ]
    for subject in shown:
        one, two = results[subject.label]["mnist"], results[subject.label].get("embed", {})
        learnt = ["fails", ""] if "error" in one else [
            f"{one['first']:.4f} → {one['last']:.4f}", f"{one['accuracy']:.1f} %"
        ]
        same = "fails" if two else "?"
        if "cosines" in two:
            close = len(two["cosines"]) == len(reference) and all(
                abs(a - b) <= TOLERANCE for a, b in zip(two["cosines"], reference, strict=True)
            )
            same = "as on the first" if close else "differ"
        lines.append(f"| {subject.label} | {' | '.join(learnt)} | {same} |")
    return "\n".join(lines)


def subjects() -> str:
    """The columns, and what runs each."""
    lines = ["| column | `DEV` | runs on |", "|---|---|---|"]
    lines += [f"| {s.label} | `{s.dev}` | {s.what} |" for s in SUBJECTS]
    return "\n".join(lines)


def page(text: str, results: Json) -> str:
    """The page with its tables written anew; they stand between comments that name them."""
    for name, table in (("subjects", subjects()), ("matrix", matrix(results)), ("programs", programs(results))):
        pattern = re.compile(rf"(<!-- {name} -->).*?(<!-- end of {name} -->)", re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"{PAGE}: has no place for the table {name}")
        text = pattern.sub(lambda found, table=table: f"{found[1]}\n\n{table}\n\n{found[2]}", text)  # type: ignore[misc]
    return text


def failures(results: Json) -> list[str]:
    """What fails, a line each."""
    out = []
    for label, one in results.items():
        failed = [(group, o["detail"]) for group, o in one.get("matrix", {}).items() if o["status"] == FAILED]
        out += [f"{label}: {group}: {detail}" for group, detail in failed]
        out += [f"{label}: {name}: {one[name]['error']}" for name in PARTS if "error" in one.get(name, {})]
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.devices", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--opencl", metavar="PREFIX", help="environment with intel-opencl-rt")
    parser.add_argument("--cuda", metavar="PREFIX", help="environment with nvidia-cuda-nvrtc")
    parser.add_argument("--only", action="append", metavar="LABEL", help="these devices only")
    parser.add_argument("--parts", default="matrix,mnist,embed", help="what to run (default %(default)s)")
    parser.add_argument("--page", action="store_true", help="write the page from what is known")
    chosen = parser.parse_args(arguments)
    results: Json = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    places, parts = Places(chosen.opencl, chosen.cuda), chosen.parts.split(",")
    for subject in () if chosen.page else SUBJECTS:
        if chosen.only and subject.label not in chosen.only:
            continue
        start = time.perf_counter()
        results[subject.label] = collect(subject, places, parts, results.get(subject.label, {}))
        print(f"{subject.label}: {time.perf_counter() - start:.0f} s", flush=True)
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    wrong = failures(results)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
