"""BEAM on a real device: what is wrong or fails never wins, and is not kept."""

from __future__ import annotations

import math
import platform
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import tg_codegen.search.beam
from tg_codegen import ProgramSpec, Renderer, Target, compile_ast
from tg_codegen.nest.kernel import Kernel
from tg_codegen.nest.nest import Nest
from tg_codegen.plan.actions import ActionError, KernelAction, LoopAction
from tg_dtype import DType, dtypes
from tg_lazy import Context, LazyOp, Ops, ast
from tg_runtime import BEAM, Buffer, CompiledRunner, Device, get_runner
from tg_runtime.backends.cpu.pool import ir_compiler
from tg_runtime.cache import diskcache
from tg_runtime.kernels import beam, comparison, speccache
from tg_runtime.kernels.comparison import Comparison, WrongResult, difference, pattern, rounding
from tg_runtime.testing.kernels import buffer_with, kernel, unpack
from tg_shape import ShapeTracker, Variable

pytestmark = pytest.mark.skipif(ir_compiler() is None, reason="neither llvmlite nor clang is here")

F32, I32 = dtypes.float32, dtypes.int32
ST = ShapeTracker.from_shape


def row_sums(n: int, m: int, dtype: DType = F32) -> LazyOp:
    x = ast.load(1, dtype, ST((n, m)))
    return kernel([(ast.reduce(x, Ops.ADD, (1,)), n)], [(dtype, n * m)])


@dataclass(frozen=True, slots=True)
class Forget(LoopAction):
    """Leaves out half of a dimension: fast, and wrong."""

    root: str

    def apply(self, nest: Nest) -> Nest:
        root = next(r for r in nest.roots.values() if r.var.name == self.root)
        if root.extent != 4096:
            raise ActionError("nothing to forget")
        axes = [a for a in nest.axes if a.root is root.var]
        outer = max(axes, key=lambda axis: axis.stride)
        kept = tuple(replace(a, extent=2048 // a.stride) if a is outer else a for a in nest.axes)
        return replace(nest, roots={**nest.roots, root.var: replace(root, extent=2048)}, axes=kept)


@dataclass(frozen=True, slots=True)
class Break(LoopAction):
    """Raises what no action may."""

    axis: str

    def apply(self, nest: Nest) -> Nest:
        raise AssertionError("planted")


MORE = [pytest.param(dtype, marks=pytest.mark.slow) for dtype in (dtypes.float16, dtypes.uint8)]


@pytest.mark.parametrize("dtype", [F32, *MORE])
def test_a_planted_wrong_action_never_wins(
    dtype: DType, cache_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = tg_codegen.search.moves.modelled_moves

    def moves(kernel: Kernel, target: Target) -> Iterator[KernelAction]:
        yield Forget("r0")
        yield Break("i0")
        yield from list(real(kernel, target))[:4]

    monkeypatch.setattr(tg_codegen.search.beam, "modelled_moves", moves)
    monkeypatch.setattr("tg_codegen.search.descent.PATIENCE", 5)
    monkeypatch.setattr("tg_codegen.search.beam.MOST_NEIGHBOURS", 12)
    monkeypatch.setattr(beam, "_TURNS_S", 0.1)
    for name in ("TIME_RATIO", "_FAR"):  # however long it takes on a busy machine
        monkeypatch.setattr(beam, name, math.inf)
    sink = row_sums(24, 4096, dtype)
    values = [i % 2 for i in range(24 * 4096)]
    with Context(DEV="CPU", BEAM=1, DEBUG=2):
        device = Device["CPU"]
        device.programs.clear()
        runner = get_runner(device, sink)
    said = capsys.readouterr().out
    assert isinstance(runner, CompiledRunner)
    assert "forget(r0): element 0 is" in said and " dropped, " in said
    assert not any("forget" in action for action in runner.spec.actions)
    stored = diskcache.get("beam", beam.result_key(device, _renderer(), sink, 1))
    assert stored is not None and b"forget" not in stored
    out, source = Buffer("CPU", 24, dtype).allocate(), buffer_with("CPU", values, dtype)
    runner.exec([out, source])
    with np.errstate(over="ignore"):
        want = np.array(values).reshape(24, 4096).sum(1).astype(dtype.name)
    assert unpack(out.as_buffer(), dtype) == want.tolist()
    device.programs.clear()


def _renderer() -> Renderer:
    found = Device["CPU"].renderer
    assert found is not None
    return found


def test_a_search_that_fails_leaves_the_plan(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*arguments: object, **options: object) -> ProgramSpec:
        raise MemoryError("no room")

    monkeypatch.setattr(beam, "beam_search", broken)
    with Context(DEV="CPU", BEAM=1, DEBUG=1):
        runner = get_runner(Device["CPU"], row_sums(3, 77))
        Device["CPU"].programs.clear()
    assert "the search failed: MemoryError: no room" in capsys.readouterr().out
    assert isinstance(runner, CompiledRunner)
    assert BEAM.value == 0


def test_a_plain_kernel_that_takes_long_is_not_waited_for() -> None:
    """One of 2**42 additions, which would take an hour."""
    renderer = _renderer()
    assert not beam.reference(row_sums(64, 1 << 12), renderer).actions
    assert beam.reference(row_sums(64, 1 << 36), renderer).actions


def test_a_program_is_timed_beside_the_best_one_until_it_is_seen_to_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs run; how long they took is what the test says."""
    times: list[float] = []

    class Timed(CompiledRunner):
        def __call__(self, bufs: Sequence[Buffer], var_vals: Mapping[Variable, int], wait: bool = False) -> float:
            assert super().__call__(bufs, var_vals, wait) is not None
            return times.pop(0)

    sink = row_sums(3, 5)
    measure = beam._Measure(Device["CPU"], _renderer(), sink)
    measure.comparison = None  # runs of which no time is wanted
    monkeypatch.setattr(beam, "CompiledRunner", Timed)
    spec = compile_ast(sink, _renderer(), actions=())
    for mine, theirs, fastest, left in (
        ([5.0, 1.0, 0.5, 3.0, 1.0] * 3, [], 1.0, 0),  # nothing to compare with yet
        ([3.5, 0.1, 0.1, 0.1, 0.1], [1.0] * 5, math.inf, 8),  # more than three times what the best one takes
        ([2.9, 1.8, 1.7, 1.6, 1.9], [1.0] * 5, math.inf, 0),  # too slow to go on from
        ([2.9, 1.8, 1.7, 1.6, 1.9] * 3, [2.9, 1.8, 1.7, 1.6, 1.9] * 3, 1.0, 0),  # the machine is: as fast as the best
        ([2.0, 1.9, 0.1, 2.0, 2.1] * 3, [2.0] * 15, 1.0, 0),  # lucky once
        ([3.0, 1.0, 0.9, 1.0, 1.5] * 3, [2.0] * 15, 0.5, 0),  # the new best one
        ([0.7, 0.8, 0.6, 0.9, 0.7], [0.5] * 5, 0.7, 0),
        ([1.6, 0.1, 0.1, 0.1, 0.1], [0.5] * 5, math.inf, 8),
    ):
        times[:] = [time for turn in zip(mine, theirs, strict=True) for time in turn] if theirs else mine
        assert (measure(spec), len(times)) == (fastest, left), (mine, theirs)
    measure.best = measure.reference_s = 1e-3
    untimed = 1e-4  # after the other program
    times[:] = [untimed, 4e-3, untimed, 1e-3, *([untimed, 5e-4, untimed, 1e-3] * 14)]
    assert measure(spec) == 5e-4, "the first run of a short program is slow"


def test_what_was_merely_lucky_gives_way_to_what_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    takes: dict[str, float] = {}

    class Timed(CompiledRunner):
        def __call__(self, bufs: Sequence[Buffer], var_vals: Mapping[Variable, int], wait: bool = False) -> float:
            return takes[self.spec.src]

    sink = row_sums(64, 640)
    measure = beam._Measure(Device["CPU"], _renderer(), sink)
    monkeypatch.setattr(beam, "CompiledRunner", Timed)
    found, planned = compile_ast(sink, _renderer(), actions=()), compile_ast(sink, _renderer())
    for mine, wins in ((2.0, planned), (1.0, found), (0.5, found)):
        takes.update({found.src: mine, planned.src: 1.0})
        assert measure.fastest([found], planned) is wins
    assert measure.fastest([planned, found]) is found, "of what was found, too"


def test_a_machine_that_is_busy_now_and_then_is_so_for_both() -> None:
    """The least times of the two are of different turns: by these one would be twice as fast as the other."""
    assert beam.ratio([0.5, 3.0, 1.0, 3.0, 3.0], [1.0, 3.0, 1.0, 3.0, 3.0]) == 1.0
    assert beam.ratio([1.0, 2.0], [0.0, 0.0]) == 0.0, "a clock that stands still"


def test_those_that_were_about_as_fast_run_again() -> None:
    sink = row_sums(64, 640)
    measure = beam._Measure(Device["CPU"], _renderer(), sink)
    measure.best = 1.0
    measure.measured = [(1.05, ("b",)), (2.0, ("far",)), (1.0, ("a",)), *((1.09, (f"{n}",)) for n in range(5))]
    assert measure.finalists() == [("a",), ("b",), ("0",), ("1",)]
    measure.references = [(2.5, ("first",)), (4.0, ("slow",)), (2.0, ("far",))]
    assert measure.finalists() == [("a",), ("b",), ("0",), ("1",), ("far",)], "and what others were timed beside"


def test_what_a_result_is_kept_for(monkeypatch: pytest.MonkeyPatch) -> None:
    device, renderer = Device["CPU"], _renderer()
    keys = {beam.result_key(device, renderer, row_sums(3, n), width) for n in (5, 6) for width in (1, 2)}
    monkeypatch.setattr(speccache, "generator_identity", lambda: "another version")
    keys.add(beam.result_key(device, renderer, row_sums(3, 5), 1))
    monkeypatch.undo()
    monkeypatch.setattr(device.compiler, "cachekey", "another compiler")
    keys.add(beam.result_key(device, renderer, row_sums(3, 5), 1))
    monkeypatch.undo()
    monkeypatch.setattr(platform, "machine", lambda: "another machine")
    keys.add(beam.result_key(device, renderer, row_sums(3, 5), 1))
    assert len(keys) == 7


def compared(sink: LazyOp, results: list[list[float]], dtype: DType) -> Comparison:
    """A comparison with a program that gives each of ``results`` in turn, for a kernel of one output."""
    buffers = [Buffer("CPU", arg.size, arg.dtype).allocate() for arg in sink.arg]
    return Comparison(sink, buffers, giving(buffers[0], results, dtype))


def giving(out: Buffer, results: list[list[float]], dtype: DType) -> comparison.Run:
    pending = list(results)

    def run(values: Mapping[Variable, int]) -> None:
        data = np.array(pending.pop(0), dtype.name)
        out.copyin(memoryview(data.tobytes()))

    return run


def test_floats_may_differ_by_rounding_alone() -> None:
    sink = row_sums(3, 100)
    bound = rounding(sink)
    assert bound == 4 * 10 * 2.0**-23
    made = compared(sink, [[1.0, 2.0, 4.0]] * 2, F32)
    made.check(giving(made.buffers[0], [[1.0, 2.0, 4.0 * (1 + bound / 2)]] * 2, F32))
    for wrong in ([1.0, 2.0, 4.0 * (1 + 2 * bound)], [1.0, 2.0 + 8 * bound, 4.0], [float("nan"), 2.0, 4.0]):
        with pytest.raises(WrongResult, match="and should be"):
            made.check(giving(made.buffers[0], [[1.0, 2.0, 4.0], wrong], F32))


def test_where_large_terms_cancel_their_size_is_the_measure() -> None:
    sink = row_sums(1, 100)
    made = compared(sink, [[1e-7]] * 2, F32)
    made.check(giving(made.buffers[0], [[-2e-7]] * 2, F32))  # the heuristic's: so it is here
    made.check(giving(made.buffers[0], [[3e-7]] * 2, F32))
    with pytest.raises(WrongResult):
        made.check(giving(made.buffers[0], [[1.0]] * 2, F32))
    strict = compared(sink, [[1e-7]] * 2, F32)
    strict.check(giving(strict.buffers[0], [[1e-7]] * 2, F32))
    with pytest.raises(WrongResult):
        strict.check(giving(strict.buffers[0], [[-2e-7]] * 2, F32))


def test_inputs_are_drawn_once_and_not_for_each_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    made = compared(row_sums(3, 100), [[1.0, 2.0, 4.0]] * 2, F32)
    inputs = made.buffers[1].tobytes()
    monkeypatch.setattr("random.Random", None)
    made.check(giving(made.buffers[0], [[1.0, 2.0, 4.0]] * 2, F32))
    assert made.buffers[1].tobytes() == inputs


@pytest.mark.parametrize("python", [False, True])
def test_differences(python: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if python:
        monkeypatch.setitem(sys.modules, "numpy", None)
    inf, nan = float("inf"), float("nan")

    def apart(a: list[float], b: list[float], relative: float, least: float = 0.0) -> str:
        return difference(F32, struct.pack(f"{len(a)}f", *a), struct.pack(f"{len(b)}f", *b), relative, least)

    assert not apart([1.0, inf, -inf, nan], [1.0, inf, -inf, nan], 0.0)
    assert not apart([1.0, 100.0], [1.5, 100.0], 0.01) and apart([1.0, 100.0], [3.0, 100.0], 0.01)
    assert apart([inf], [1.0], 0.5) and apart([1.0], [inf], 0.5) and apart([nan], [1.0], 0.5)
    assert apart([inf], [-inf], 0.5) and apart([0.1], [0.2], 0.01) and not apart([0.1], [0.2], 0.2, 1.0)
    big = (2**62).to_bytes(8, "little"), (2**62 + 1).to_bytes(8, "little")
    assert "1 of 1 differ" in difference(dtypes.int64, *big, 0.5, 1.0)
    half = dtypes.bfloat16
    assert not difference(half, b"\x80\x3f", b"\x81\x3f", 0.01, 0.0)
    assert difference(half, b"\x80\x3f", b"\x81\x3f", 0.001, 0.0) == (
        "element 0 is 1.0, and should be 1.0078125; 1 of 1 differ")
    assert difference(dtypes.fp8e4m3, b"\x38", b"\x40", 0.1, 0.0)


@pytest.mark.parametrize("dtype", [dtypes.bool, dtypes.int8, dtypes.uint16, dtypes.int64, F32, dtypes.bfloat16])
@pytest.mark.parametrize("signed", [False, True])
def test_inputs_are_small_numbers_that_repeat_late(dtype: DType, signed: bool) -> None:
    data = pattern(dtype, 10000, signed, 3)
    width = dtype.itemsize
    assert len(data) == 10000 * width and data == pattern(dtype, 10000, signed, 3) != pattern(dtype, 10000, signed, 4)
    assert data[: 1000 * width] == data[4099 * width : 5099 * width] != data[4096 * width : 5096 * width]
    assert len({data[at : at + width] for at in range(0, len(data), width)}) >= 2
    assert len(pattern(dtype, 5, signed, 0)) == 5 * width and pattern(dtype, 0, signed, 0) == b""
