"""Plans that fail: the plain kernel runs, it is told and counted, and a test in which that happens fails."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tg_codegen import ActionError, ProgramSpec, Renderer, Target, compile_ast, interpret
from tg_codegen.fallback import fallbacks
from tg_codegen.ir.uop import UOp, UOps
from tg_codegen.machine.limits import MAX_STACK_BYTES, broken_limits
from tg_codegen.nest.spec import Kind
from tg_codegen.plan.actions import Action, Mark, Share, Split
from tg_codegen.plan.draft import Draft
from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_codegen.render.wgsl import WGSLRenderer
from tg_dtype import AddrSpace, dtypes
from tg_lazy import BufferArg, Context, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

ST = ShapeTracker.from_shape
F32 = dtypes.float32


def row_sums(rows: int = 6, columns: int = 10) -> LazyOp:
    total = A.reduce(A.load(1, F32, ST((rows, columns))), Ops.ADD, (1,))
    return A.sink((A.store(0, ST((rows, 1)), total),), (BufferArg(F32, rows), BufferArg(F32, rows * columns)))


def runs(spec: ProgramSpec, rows: int = 6, columns: int = 10) -> bool:
    x: np.ndarray[Any, np.dtype[np.float32]] = np.arange(rows * columns, dtype=np.float32)
    out = np.zeros(rows, np.float32)
    interpret(spec.uops, [out.data.cast("B"), x.data.cast("B")], {})
    return bool((out == x.reshape(rows, columns).sum(1)).all())


def plans(monkeypatch: pytest.MonkeyPatch, *actions: Action | Exception) -> None:
    """Makes the heuristic plan these actions, or fail."""
    def heuristic(draft: Draft, target: Target) -> None:
        for action in actions:
            if isinstance(action, Exception):
                raise action
            draft.take([action])

    monkeypatch.setattr("tg_codegen.compile.heuristic", heuristic)


@pytest.mark.fallbacks
@pytest.mark.parametrize("problem", [ActionError("no"), KeyError("i7"), AssertionError(), ZeroDivisionError("0 / 0")])
def test_a_planner_that_fails(
    problem: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plans(monkeypatch, problem)
    before = fallbacks.count
    with Context(FALLBACK=1, DEBUG=0):
        spec = compile_ast(row_sums(), LLVMRenderer())
    assert runs(spec) and spec.actions == ()
    assert spec.fallback.startswith(type(problem).__name__)
    assert fallbacks.count == before + 1
    assert not capsys.readouterr().out


@pytest.mark.fallbacks
def test_it_is_told_with_the_kernel_the_actions_and_the_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plans(monkeypatch, Split("i0", 2, Kind.UPCAST), Split("i9", 2, Kind.VECTOR))
    with Context(FALLBACK=1, DEBUG=1):
        spec = compile_ast(row_sums(), LLVMRenderer())
    assert runs(spec)
    told = capsys.readouterr().out
    assert "ActionError: split(i9, 2, VECTOR): no loop 'i9'" in told
    assert "actions: split(i0, 2, UPCAST); split(i9, 2, VECTOR)" in told
    assert "for[10] r0 of r0" in told and "store[0, i0]" in told
    assert str(fallbacks.latest[-1]) in told


@pytest.mark.fallbacks
def test_a_planner_of_the_package_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    def thread(self: object) -> None:
        raise RuntimeError("no threads today")

    monkeypatch.setattr("tg_codegen.plan.cpu.planner.CPUPlanner.thread", thread)
    with Context(FALLBACK=1):
        spec = compile_ast(row_sums(64, 640), LLVMRenderer(Target(vector_bytes=32)))
    assert "no threads today\nactions: split(r0, 8, LANES)" in spec.fallback


@pytest.mark.fallbacks
def test_the_error_is_raised_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    plans(monkeypatch, ActionError("no such loop"))
    with Context(FALLBACK=0), pytest.raises(ActionError, match="no such loop"):
        compile_ast(row_sums(), LLVMRenderer())


@pytest.mark.fallbacks
@pytest.mark.parametrize(("actions", "problem"), [
    ([Split("i0", 64, Kind.LOCAL)], "a work-group of 64 x 1 x 1 = 64 work-items; it runs at most 16"),
    ([Mark("i0", Kind.GLOBAL)], "80 work-groups along x; it runs at most 8"),
    ([Split("i0", 16, Kind.LOCAL), Split("i0", 5, Kind.LOOP), Mark("i0", Kind.GLOBAL), Share(0, None)], "shared bytes"),
])  # fmt: skip
def test_a_plan_beyond_the_machines_limits(
    actions: list[Action], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target(kind="gpu", local_max=16, shared_bytes=1024, global_max=(8, 8, 8))
    plans(monkeypatch, *actions)
    with Context(FALLBACK=1):
        spec = compile_ast(row_sums(80, 10), OpenCLRenderer(target))
    assert problem in spec.fallback and runs(spec, 80)
    assert not broken_limits(spec, OpenCLRenderer(target))


def test_a_language_that_numbers_groups_takes_as_many_as_there_are() -> None:
    spec = compile_ast(row_sums(1 << 26, 2), WGSLRenderer())
    assert spec.global_size[0] > 1 << 16 and not spec.fallback


def test_scratch_that_a_stack_does_not_hold() -> None:
    spec = compile_ast(row_sums(), LLVMRenderer())
    for size, fits in ((MAX_STACK_BYTES // 4, True), (MAX_STACK_BYTES // 4 + 1, False)):
        scratch = UOp(UOps.SCRATCH, F32.ptr(size, AddrSpace.REG), (), ("stage", size))
        assert (broken_limits(replace(spec, uops=(scratch, *spec.uops)), LLVMRenderer()) == []) is fits


def test_a_kernel_that_cannot_be_rendered_at_all_is_no_fallback() -> None:
    class Silent(LLVMRenderer):
        def render(self, name: str, uops: object) -> str:
            raise ValueError("nothing to say")

    renderer: Renderer = Silent()
    before = fallbacks.count
    with pytest.raises(ValueError, match="nothing to say"):
        compile_ast(row_sums(), renderer)
    assert fallbacks.count == before


def test_a_test_in_which_a_plan_fails_fails(tmp_path: Path) -> None:
    """The hook at the root, on a test that catches the error, and on one that says that it is meant."""
    program = tmp_path / "test_planted.py"
    program.write_text(
        "import pytest\n"
        "from tg_codegen.fallback import fallbacks\n"
        "from tg_codegen.nest.kernel import Kernel\n"
        "from tg_codegen.nest.nest import Nest\n"
        "from tg_lazy import Context\n"
        "def fail():\n"
        "    with Context(FALLBACK=1):\n"
        "        fallbacks.tell(Kernel(Nest((), (), {}, ()), ()), ValueError('planted'))\n"
        "def test_unnoticed(): fail()\n"
        "@pytest.mark.fallbacks\n"
        "def test_on_purpose(): fail()\n"
        "def test_none(): pass\n", encoding="utf-8")
    root = Path(__file__).parents[3]
    options = ["-c", str(root / "pyproject.toml"), "--rootdir", str(root), "-p", "conftest", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", *options, str(program)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120)
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "1 plans of kernels failed; the last: ValueError: planted" in done.stdout
