"""BEAM search with measures that are made up, and the programs that compilation gives."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator

import pytest

from tg_codegen import ProgramSpec, SearchState, Split, Target, beam_search, compile_ast, interpret, parse_action
from tg_codegen.compile import render_kernel
from tg_codegen.machine.renderer import Renderer
from tg_codegen.nest.kernel import Kernel
from tg_codegen.nest.lower import lower
from tg_codegen.nest.parts import stated
from tg_codegen.nest.spec import Kind
from tg_codegen.plan.actions import Action, In, KernelAction
from tg_codegen.plan.heuristic import alternatives
from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_codegen.search import beam
from tg_codegen.search.beam import CYCLES_RATIO, ActionList
from tg_codegen.search.cycles import cycles
from tg_codegen.search.descent import LONGEST_MODELLED, cost, descent_from, descents
from tg_codegen.search.moves import alterations, even_walks, loop_moves
from tg_codegen.search.replanned import replanned
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

F32 = dtypes.float32
ST = ShapeTracker.from_shape
CPU = LLVMRenderer(Target(kind="cpu", vector_bytes=32, registers=16, threads=2))


@pytest.fixture(autouse=True)
def looks_at_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer lists are measured, and the cost model is asked of fewer: that shows what these tests are about."""
    monkeypatch.setattr("tg_codegen.search.descent.PATIENCE", 12)
    monkeypatch.setattr("tg_codegen.search.beam.MOST_NEIGHBOURS", 12)


@pytest.fixture(autouse=True, scope="module")
def rendered_once() -> Iterator[None]:
    """Searches of this file go through the same programs: what a kernel and a list of actions give is kept."""
    kept: dict[tuple[ActionList, str | None], list[tuple[Kernel, Renderer, ProgramSpec]]] = {}

    def render(kernel: Kernel, renderer: Renderer, actions: ActionList, name: str | None = None) -> ProgramSpec:
        found = kept.setdefault((actions, name), [])
        for other, language, spec in found:
            if language is renderer and other == kernel:
                return spec
        found.append((kernel, renderer, render_kernel(kernel, renderer, actions, name)))
        return found[-1][-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beam, "render_kernel", render)
        yield


def row_sums(n: int = 64, m: int = 96) -> LazyOp:
    r = A.reduce(A.load(1, F32, ST((n, m))), Ops.ADD, (1,))
    return A.sink((A.store(0, ST((n, 1)), r),), (BufferArg(F32, n), BufferArg(F32, n * m)))


def test_the_search_follows_the_measure() -> None:
    def measure(spec: ProgramSpec) -> float:
        return 1.0 / (1 + sum("UPCAST" in a or "UNROLL" in a for a in spec.actions))

    best = beam_search(row_sums(), CPU, measure, width=1, max_rounds=2)
    assert any("UPCAST" in action for action in best.actions) and any("UNROLL" in action for action in best.actions)


@pytest.mark.parametrize("sizes", [(67, 93), (256, 31)], ids=str)
def test_a_descent_takes_what_gains_most(sizes: tuple[int, int]) -> None:
    kernel = stated(lower(row_sums(*sizes)))
    moves = loop_moves(kernel.parts[0], CPU.target)
    best = descent_from(kernel, (), CPU, LONGEST_MODELLED, 1)
    assert len(best) == 1
    assert cost(kernel, best, CPU) == min(cost(kernel, (move,), CPU) for move in moves)


def test_never_worse_than_the_heuristic() -> None:
    heuristic = compile_ast(row_sums(), CPU)
    best = beam_search(row_sums(), CPU, lambda spec: 1.0 if spec.actions == heuristic.actions else 2.0, width=1)
    assert best.actions == heuristic.actions
    assert best.src == heuristic.src


def test_programs_that_cannot_be_measured_are_passed_over() -> None:
    def measure(spec: ProgramSpec) -> float:
        if any("VECTOR" in a or "LANES" in a for a in spec.actions):
            raise RuntimeError("does not compile")
        return 1.0

    assert not any("LANES" in a for a in beam_search(row_sums(), CPU, measure, width=1, max_rounds=2).actions)


def test_nothing_can_be_measured() -> None:
    def measure(spec: ProgramSpec) -> float:
        raise RuntimeError("no such device")

    with pytest.raises(RuntimeError, match="no such device"):
        beam_search(row_sums(), CPU, measure, width=1, max_rounds=1)


def test_where_the_plain_kernel_alone_can_be_measured_what_is_next_to_it_is_tried() -> None:
    """What was planned takes far fewer cycles by the model, but failed: it does not come again in others' place."""
    measured: list[tuple[str, ...]] = []

    def measure(spec: ProgramSpec) -> float:
        measured.append(spec.actions)
        if () not in measured:
            raise RuntimeError("wrong")
        return 1.0 / (1 + len(spec.actions))

    beam_search(row_sums(24, 4096), CPU, measure, width=1, max_rounds=2)
    assert any(len(actions) == 1 for actions in measured[measured.index(()) + 1 :])
    assert len(measured) == len(set(measured))


def test_an_interrupt_gives_the_best_so_far() -> None:
    tried: list[ProgramSpec] = []

    def measure(spec: ProgramSpec) -> float:
        tried.append(spec)
        if len(tried) == 4:
            raise KeyboardInterrupt
        return float(len(tried))

    name = compile_ast(row_sums(), CPU).name
    assert beam_search(row_sums(), CPU, measure).src == tried[0].src.replace("candidate", name)


def test_progress_is_told() -> None:
    steps: list[SearchState] = []
    beam_search(row_sums(), CPU, lambda spec: 1.0, progress=steps.append, max_rounds=2)
    assert [s.round for s in steps if not s.left] == [0, 1, 2]
    assert [s.left for s in steps if s.round == 1] == sorted((s.left for s in steps if s.round == 1), reverse=True)
    assert steps[-1].tried > 3
    assert math.isclose(steps[-1].best_s, 1.0)


def largest_squares(n: int = 16, m: int = 64) -> LazyOp:
    """A kernel in two parts."""
    shape = ST((n, m))
    squares = A.alu(Ops.MUL, A.load(1, F32, shape), A.load(1, F32, shape))
    stores = (A.store(2, shape, squares), A.store(0, ST((n, 1)), A.reduce(A.load(2, F32, shape), Ops.MAX, (1,))))
    return A.sink(stores, (BufferArg(F32, n), BufferArg(F32, n * m), BufferArg(F32, n * m, internal=True)))


def test_kernels_of_several_parts_are_searched_part_by_part() -> None:
    ast = largest_squares()

    def measure(spec: ProgramSpec) -> float:
        return 1.0 / (1 + sum(line.startswith("1: ") for line in spec.actions))

    most = max(sum(line.startswith("1: ") for line in map(str, found)) for found in descents(stated(lower(ast)), CPU))
    best = beam_search(ast, CPU, measure, width=1, max_rounds=1, planned=False)
    assert sum(line.startswith("1: ") for line in best.actions) > most
    again = compile_ast(ast, CPU, actions=[parse_action(line) for line in best.actions])
    assert again.src == best.src


@pytest.mark.slow
def test_an_action_of_the_heuristic_is_refused_where_that_is_faster() -> None:
    def measure(spec: ProgramSpec) -> float:
        return 1.0 + sum("prefetch" in line or "VECTOR" in line for line in spec.actions)

    planned = compile_ast(row_sums(1024, 512), CPU)
    assert any("prefetch" in line for line in planned.actions)
    best = beam_search(row_sums(1024, 512), CPU, measure, width=1, max_rounds=1)
    assert best.actions == tuple(line for line in planned.actions if "prefetch" not in line)


def test_a_search_may_begin_with_nothing() -> None:
    best = beam_search(
        row_sums(64, 4096), CPU, lambda spec: cycles(spec, CPU.target), width=1, max_rounds=1, planned=False)
    assert cycles(best, CPU.target) <= cycles(compile_ast(row_sums(64, 4096), CPU), CPU.target)


@pytest.mark.parametrize(("ratio", "least"), [(math.inf, False), (CYCLES_RATIO, True)])
def test_the_plain_kernel_is_measured_where_it_is_not_far_off(
    ratio: float, least: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that takes a hundred times as long, and is run some times to be compared, would take most of a search."""
    monkeypatch.setattr(beam, "CYCLES_RATIO", ratio)
    measured: list[tuple[str, ...]] = []

    def measure(spec: ProgramSpec) -> float:
        measured.append(spec.actions)
        return 1.0

    monkeypatch.setattr("tg_codegen.search.descent.PATIENCE", 0)
    beam_search(row_sums(64, 4096), CPU, measure, width=1, max_rounds=1, planned=False)
    assert measured and (() not in measured) is least


def test_the_plain_kernel_is_measured_where_no_other_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tg_codegen.search.descent.PATIENCE", 0)

    def measure(spec: ProgramSpec) -> float:
        if spec.actions:
            raise RuntimeError("a defect")
        return 1.0

    assert beam_search(row_sums(64, 4096), CPU, measure, width=1, planned=False).actions == ()


def test_a_beam_has_a_width() -> None:
    with pytest.raises(ValueError, match="width must be positive, got 0"):
        beam_search(row_sums(), CPU, lambda spec: 1.0, width=0)


def test_a_program_on_a_cpu() -> None:
    spec = compile_ast(row_sums(1024, 512), CPU)
    assert spec.threads == 2
    assert [(b.slot, b.written, b.read) for b in spec.buffers] == [(0, True, False), (1, False, True)]
    assert spec.estimates.mem == 4 * (1024 * 512 + 1024)
    assert (spec.outs, spec.ins) == ((0,), (1,))
    assert spec.name in spec.src


def test_a_program_on_a_gpu() -> None:
    spec = compile_ast(row_sums(1024, 512), OpenCLRenderer())
    # rows of 512 are read by 64 neighbours each, four numbers at a time
    assert math.prod(int(n) for n in spec.global_size) * math.prod(spec.local_size) == 1024 * 64
    assert spec.local_size == (64, 4, 1)
    out, data = bytearray(4 * 8), memoryview(bytearray(4 * 8 * 5)).cast("f")
    data[:] = memoryview(bytearray(memoryview(data))).cast("f")
    small = compile_ast(row_sums(8, 5), OpenCLRenderer())
    for n in range(40):
        data[n] = float(n)
    interpret(small.uops, [out, data.cast("B")])
    assert memoryview(out).cast("f").tolist() == [float(sum(range(5 * r, 5 * r + 5))) for r in range(8)]


def test_actions_are_applied_as_given() -> None:
    spec = compile_ast(row_sums(), CPU, actions=[Split("i0", 4, Kind.UPCAST)], name="mine")
    assert spec.actions == ("split(i0, 4, UPCAST)",)
    assert spec.name == "mine"
    assert compile_ast(row_sums(), CPU, actions=()).actions == ()


def test_programs_are_prepared_in_threads_before_they_are_measured() -> None:
    prepared: dict[str, str] = {}

    def prepare(spec: ProgramSpec) -> None:
        time.sleep(0.002)
        prepared[spec.src] = threading.current_thread().name

    def measure(spec: ProgramSpec) -> float:
        assert spec.src in prepared
        ready.append(len(prepared))
        return 1.0 / (1 + len(spec.actions))

    ready: list[int] = []
    beam_search(row_sums(), CPU, measure, width=1, max_rounds=1, prepare=prepare, workers=2)
    assert len(set(ready)) == 2 < len(ready), "those of a round, and of the next: no compiler runs beside a program"
    assert threading.current_thread().name not in prepared.values()


def test_what_cannot_be_prepared_is_passed_over() -> None:
    def prepare(spec: ProgramSpec) -> None:
        if any("UPCAST" in a for a in spec.actions):
            raise RuntimeError("too large")

    def measure(spec: ProgramSpec) -> float:
        return 1.0 / (1 + len(spec.actions))

    best = beam_search(row_sums(), CPU, measure, width=1, max_rounds=2, prepare=prepare)
    assert not any("UPCAST" in a for a in best.actions)


def test_what_is_far_off_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(ratio: float) -> list[float]:
        monkeypatch.setattr(beam, "CYCLES_RATIO", ratio)
        found: list[float] = []

        def measure(spec: ProgramSpec) -> float:
            found.append(cycles(spec, CPU.target))
            return found[-1]

        beam_search(row_sums(), CPU, measure, width=1, max_rounds=0)
        return found

    planned, *others = measured(CYCLES_RATIO)
    assert max(others) > planned, "there is something to leave out"
    assert max(measured(1.0)) == planned


def test_a_round_measures_so_many_at_the_most() -> None:
    steps: list[SearchState] = []
    beam_search(row_sums(), CPU, lambda spec: cycles(spec, CPU.target), width=1, max_rounds=1, progress=steps.append)
    assert 1 < sum(step.round == 1 for step in steps) <= 2 * beam.MOST_NEIGHBOURS + 1


def test_the_search_goes_on_from_another_list_that_is_faster_than_the_plan() -> None:
    """Its neighbours are tried, too, although none of the plan's is as fast."""
    measured: list[tuple[str, ...]] = []

    def measure(spec: ProgramSpec) -> float:
        measured.append(spec.actions)
        return 0.5 if len(measured) == 2 else 1.0

    beam_search(row_sums(), CPU, measure, width=1, max_rounds=2)
    plan, best = measured[:2]

    def near(actions: tuple[str, ...]) -> int:
        return sum(len(found) > len(actions) and found[: len(actions)] == actions for found in measured)

    assert near(plan) and near(best)


def test_what_is_next_to_the_plan_is_measured_before_the_model_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever ends a search after some seconds has these: the model's own lists take longer to make than to measure."""
    measured: list[tuple[str, ...]] = []
    before: list[int] = []

    def measure(spec: ProgramSpec) -> float:
        measured.append(spec.actions)
        return 1.0

    def led(*arguments: object) -> Iterable[tuple[Action, ...]]:
        before.append(len(measured))
        return ()

    monkeypatch.setattr("tg_codegen.search.beam.descents", led)
    monkeypatch.setattr("tg_codegen.search.beam.MOST_NEIGHBOURS", 24)
    beam_search(row_sums(), CPU, measure, width=1)
    planned = compile_ast(row_sums(), CPU).actions
    refused = {planned[:at] + planned[at + 1 :] for at in range(len(planned))}
    assert len(refused & {*measured[: before[0]]}) > 1


def squares_about_the_mean(n: int, m: int) -> LazyOp:
    x = ST((n, m))
    mean = A.alu(Ops.MUL, A.reduce(A.load(1, F32, x), Ops.ADD, (1,)), A.const(1 / m, F32, (n, 1)))
    apart = A.alu(Ops.SUB, A.load(1, F32, x), A.view(mean, ST((n, 1)).expand((n, m))))
    total = A.reduce(A.alu(Ops.MUL, apart, apart), Ops.ADD, (1,))
    return A.sink((A.store(0, ST((n, 1)), total),), (BufferArg(F32, n), BufferArg(F32, n * m)))


def test_a_plan_for_the_caches_that_runs_a_whole_loop_again_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partial sums of squares, each term of which adds up the row once more, would take minutes to measure."""
    ast = squares_about_the_mean(64, 1024)
    slow = tuple(parse_action(action) for action in ("split(r1, 256, REDUCE)", "split_reduction(1, -)"))
    packed = (parse_action("outermost(i0)"), parse_action("prefetch(0, 256)"))
    measured: list[tuple[str, ...]] = []

    def measure(spec: ProgramSpec) -> float:
        measured.append(spec.actions)
        return 1.0

    nothing: list[Action] = []
    for name, found in (
            ("descents", nothing), ("modelled_moves", nothing), ("alterations", nothing), ("replanned", nothing),
            ("measured_moves", [slow, packed])):
        monkeypatch.setattr(f"tg_codegen.search.beam.{name}", lambda *_, found=found: found)
    beam_search(ast, CPU, measure, planned=False, max_rounds=1)
    assert tuple(map(str, packed)) in measured and tuple(map(str, slow)) not in measured


@pytest.mark.parametrize(("slow", "fast"), [
    ((), ("split(r0, 8, LANES)",)),
    (("split(r0, 8, LANES)",), ("split(r0, 8, LANES)", "split(r0, 4, SPREAD)")),
    (("split(r0, 8, LANES)",), ("split(r0, 8, LANES)", "mark(i0, THREAD)")),
])  # fmt: skip
def test_the_cost_model_orders(slow: tuple[str, ...], fast: tuple[str, ...]) -> None:
    found = [cycles(compile_ast(row_sums(64, 4096), CPU, actions=[parse_action(a) for a in actions]), CPU.target)
             for actions in (slow, fast)]
    assert found[1] < 0.7 * found[0]


def test_accumulators_beyond_the_registers_cost_what_spilling_them_takes() -> None:
    target = Target(vector_bytes=32, registers=16)
    found = {}
    for rows in (8, 64):
        actions = [parse_action(line) for line in (f"split(i0, {rows}, UPCAST)" if rows < 64 else "mark(i0, UPCAST)",)]
        found[rows] = cycles(compile_ast(row_sums(64, 4096), LLVMRenderer(target), actions=actions), target)
    assert found[64] > 1.5 * found[8], "the same work, of which most accumulators are in memory"


def text(actions: Iterable[Action]) -> str:
    """A list of actions in a line."""
    return "; ".join(map(str, actions))


def kernel_actions(*lines: str) -> list[KernelAction]:
    """Actions on a kernel, from their texts."""
    return [action for action in map(parse_action, lines) if isinstance(action, KernelAction)]


def test_tiles_of_other_sides_are_tried_in_one_step() -> None:
    """From 8 by 3 to 6 by 4 neither side alone leads: a tile of 8 by 4 would not fit, and one of 6 by 3 is slower."""
    actions = kernel_actions("split(i1, 16, VECTOR)", "split(i0, 8, UPCAST)", "split(i1, 3, UPCAST)")
    found = {text(changed) for changed in alterations(actions)}
    assert "split(i1, 16, VECTOR); split(i0, 6, UPCAST); split(i1, 4, UPCAST)" in found
    assert "split(i1, 16, VECTOR); split(i0, 12, UPCAST)" in found, "a side of 1 is no split"
    assert "split(i0, 8, UPCAST); split(i1, 3, UPCAST)" in found


def test_walks_of_all_parts_are_made_alike() -> None:
    actions = kernel_actions(
        "0: split(r0, 16, LANES)", "0: split(r0, 9, SPREAD)", "1: split(i1, 8, UPCAST)", "1: split(r1, 6, UNROLL)")
    found = {text(changed) for changed in even_walks(actions)}
    assert "0: split(r0, 16, LANES); 0: split(r0, 4, SPREAD); 1: split(i1, 4, UPCAST); delay_stores()" in found
    assert not any("UNROLL" in line for line in found)
    assert not list(even_walks([action.action for action in actions if isinstance(action, In)])), "there is one part"


@pytest.mark.parametrize("ast", [row_sums(1024, 512), largest_squares(61, 1009), squares_about_the_mean(61, 1009)])
def test_a_search_from_nothing_is_led_to_what_planners_propose(ast: LazyOp, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each way to part the kernel, so that the heuristic's list is among them."""
    monkeypatch.setattr("tg_codegen.search.descent.PATIENCE", 0)
    found = {text(actions) for actions in descents(stated(lower(ast)), CPU)}
    assert "; ".join(compile_ast(ast, CPU).actions) in found


def test_a_planner_is_asked_again_for_one_part_or_for_all() -> None:
    kernel = stated(lower(largest_squares(60, 1009)))
    mine = kernel_actions(
        "row_blocks(4)", "mark(i0.block, THREAD)", "0: split(i1, 4, VECTOR)", "1: split(r0, 4, LANES)")
    found = list(replanned(kernel, mine, CPU.target))
    for actions in found:
        assert actions[:2] == tuple(mine[:2]), "the parts stay, and threads are divided once"
        compile_ast(largest_squares(60, 1009), CPU, actions=actions)
    kept = [{number for number, action in ((0, mine[2]), (1, mine[3])) if action in actions} for actions in found]
    assert kept[0] == set() and {0} in kept and {1} in kept
    one = kernel_actions("split(i0, 5, UPCAST)")
    assert all(one[0] not in actions for actions in replanned(stated(lower(row_sums())), one, CPU.target))


def test_a_planner_that_fails_does_not_end_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> list[Action]:
        raise RuntimeError("a defect")

    for name in ("search.replanned.completed", "search.replanned.loop_actions"):
        monkeypatch.setattr(f"tg_codegen.{name}", fails)
    monkeypatch.setattr("tg_codegen.search.descent.PATIENCE", 50)
    assert beam_search(row_sums(), CPU, lambda spec: 1.0, width=1, max_rounds=1, planned=False).src


def test_a_search_begins_with_whatever_could_be_planned() -> None:
    """Lanes along either dimension of a product: which the heuristic chose is for the measure to judge."""
    x = A.load(1, F32, ST((24, 1, 40)).expand((24, 32, 40)))
    y = A.load(2, F32, ST((1, 40, 32)).permute((0, 2, 1)).expand((24, 32, 40)))
    total = A.reduce(A.alu(Ops.MUL, x, y), Ops.ADD, (2,))
    sizes = tuple(BufferArg(F32, n) for n in (24 * 32, 24 * 40, 32 * 40))
    nest = lower(A.sink((A.store(0, ST((24, 32, 1)), total),), sizes))
    found = list(alternatives(nest, CPU.target))
    assert {str(actions[0]) for actions in found} == {"split(i0, 8, VECTOR)", "split(i1, 8, VECTOR)"}
    assert not list(alternatives(lower(row_sums()), OpenCLRenderer().target))
