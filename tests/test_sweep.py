"""The sweep over drawn shapes: that it draws what it says, and that it finds what is planted."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tools.sweep.__main__ import main
from tools.sweep.check import Found, checked, compared, difference, planned, ran, some_machines
from tools.sweep.machines import CPUS, GPUS, MACHINES
from tools.sweep.programs import PROGRAMS, SIDE, Case, drawn, neighbours

from tg_codegen import ActionError
from tg_codegen.machine.target import Target
from tg_codegen.nest.nest import Nest
from tg_codegen.nest.spec import Kind
from tg_codegen.plan.actions import LoopAction, Split
from tg_codegen.plan.cpu.planner import CPUPlanner
from tg_codegen.plan.heuristic import loop_actions
from tg_codegen.rewrite.narrow import narrow

SMALL = {
    "matmul": (13, 17, 19), "batched": (2, 7, 11, 5), "matmul-gradient": (9, 14, 23), "batched-gradient": (3, 5, 7, 6),
    "convolution": (2, 3, 3, 9, 8), "convolution-gradient": (2, 3, 3, 9, 8), "reduction": (5, 17, 9),
    "softmax": (7, 33), "layernorm": (6, 19), "attention": (2, 2, 7, 7, 5),
    "update": (7, 5, 23), "order": (3, 141),
    "gather": (9, 11, 23), "concatenation": (7, 5, 20, 3), "cumulative": (6, 21), "rows": (5, 33),
}  # fmt: skip

UNLIKE = {"gather", "update", "order", "concatenation", "cumulative", "rows"}
"""Programs whose variants differ in more than a number: each runs."""


def test_machines_are_those_that_differ() -> None:
    cpus = {(m.renderer.target.vector_bytes, m.renderer.target.threads) for m in CPUS}
    assert cpus >= {(width, threads) for width in (16, 32, 64) for threads in (1, 2, 4, 8)}
    assert {m.name for m in GPUS} == {"CL", "CUDA", "PTX", "MSL", "WGSL", "gfx1100", "gfx942"}
    drawn_ones = [some_machines(random.Random(seed), "float32") for seed in range(60)]
    assert {m.name for machines in drawn_ones for m in machines} == set(MACHINES)
    for machines in drawn_ones:
        assert len({m.renderer.target.vector_bytes for m in machines if m in CPUS}) == 2 and len(machines) == 4


def test_sizes_are_drawn_evenly_and_again_by_the_seed() -> None:
    cases = [drawn(random.Random(seed)) for seed in range(400)]
    assert {case.program for case in cases} == set(PROGRAMS)
    sides = [side for case in cases if case.program.startswith("matmul") for side in case.sizes]
    assert SIDE * 0.45 < sum(sides) / len(sides) < SIDE * 0.55 and 0.4 < sum(s % 2 for s in sides) / len(sides) < 0.6
    assert [str(drawn(random.Random(seed))) for seed in range(20)] == [str(case) for case in cases[:20]]
    assert all(str(Case.parse(str(case))) == str(case) for case in cases)
    assert all(drawn(random.Random(seed), 1e6).work() <= 1e6 for seed in range(50))


def test_what_takes_no_kernel_is_compared_with_nothing() -> None:
    found = checked(Case.parse("reduction/sum0/float32/1x5x7"), [MACHINES["CLANG-512x2"]], seed=1)
    assert (found.plans, found.failures) == (0, [])


@pytest.mark.parametrize("text", ["matmul/XX/float32/1x2x3", "product/NN/float32/1x2x3", "matmul/NN/float32/1x2", ""])
def test_cases_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"names no program|do not fit|invalid literal"):
        Case.parse(text)


def test_neighbours_differ_by_one() -> None:
    case = Case.parse("matmul/NN/float32/601x7x600")
    for seed in range(10):
        found = neighbours(case, random.Random(seed))
        assert [sum(abs(a - b) for a, b in zip(case.sizes, other.sizes, strict=True)) for other in found] == [1, 1]
        assert all(other.sizes[1] == 7 for other in found), "small sizes stay"
    assert not neighbours(replace(case, sizes=(9, 7, 8)), random.Random(0))


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_and_agree_with_their_oracles(name: str) -> None:
    program = PROGRAMS[name]
    for variant in program.variants[0 if name in UNLIKE else -2 :]:
        found = ran(Case(name, variant, "float32", program.fit(variant, SMALL[name])), 0)
        assert found.runs == 1 and not found.failures, list(map(str, found.failures))


def test_a_wrong_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    program = PROGRAMS["softmax"]
    monkeypatch.setitem(
        PROGRAMS, "softmax", replace(program, compute=lambda v, s, x: [program.compute(v, s, x)[0] * 1.001]))
    (failure,) = ran(Case("softmax", "-1", "float32", (7, 33)), 0).failures
    assert "times what rounding explains" in str(failure)


@pytest.mark.fallbacks
@pytest.mark.parametrize("name", ["LLVM-512x2", "CL"])
def test_a_planner_that_fails_on_primes_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the line that is printed shows it again."""
    def failing(nest: Nest, target: Target) -> list[LoopAction]:
        for root in nest.roots.values():
            if root.extent == 101:
                raise ActionError("nobody has planned for 101")
        return loop_actions(nest, target)

    monkeypatch.setattr("tg_codegen.plan.heuristic.loop_actions", failing)
    found = Found()
    planned(Case.parse("matmul/NN/float32/100x102x64"), MACHINES[name], found)
    assert found.plans and not found.failures
    planned(Case.parse("matmul/NN/float32/100x101x64"), MACHINES[name], found)
    (failure,) = found.failures
    assert "the plan failed: ActionError: nobody has planned for 101" in str(failure)
    command = re.search(r"hatch run sweep --case '(\S+)' --machine (\S+)", str(failure))
    assert command is not None and command.groups() == ("matmul/NN/float32/100x101x64", name)


def test_a_stage_after_which_a_kernel_breaks_a_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found, case = Found(), Case.parse("rows/normal/float32/100x64")
    monkeypatch.setattr("tools.sweep.check.rewrites", lambda sink, renderer: iter([("simplify", sink.src[0])]))
    planned(case, MACHINES["LLVM-256x2"], found)
    assert "after simplify: InvalidIR: the structured form ends in SINK" in str(found.failures[0])
    monkeypatch.undo()
    monkeypatch.setattr("tg_codegen.render.c.msl.narrow", lambda uops, widest: [*narrow(uops, widest), uops[0]])
    planned(case, MACHINES["MSL"], found := Found())
    assert "after render: InvalidIR" in str(found.failures[0]) and "stands twice" in str(found.failures[0])


@pytest.mark.fallbacks
def test_a_plan_beyond_a_limit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    actions = [Split("i0", 512, Kind.LOCAL)]
    monkeypatch.setattr("tg_codegen.compile.heuristic", lambda draft, target: draft.take(actions))
    found = Found()
    planned(Case.parse("matmul/NN/float32/1000x9x8"), MACHINES["WGSL"], found)
    assert "512 work-items; it runs at most 256" in str(found.failures[0])


def test_too_many_accumulators_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    actions = [Split("i1", 4, Kind.VECTOR), Split("i0", 5, Kind.UPCAST), Split("i1", 4, Kind.UPCAST)]
    monkeypatch.setattr("tg_codegen.compile.heuristic", lambda draft, target: draft.take(actions))
    found = Found()
    planned(Case.parse("matmul/NN/float32/100x100x100"), MACHINES["LLVM-128x1"], found)
    assert "20 registers are accumulators of one loop; there are 16" in str(found.failures[0])


def test_threads_that_have_nothing_to_do_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CPUPlanner, "thread", lambda planner: None)
    found = Found()
    planned(Case.parse("matmul/NN/float32/700x300x500"), MACHINES["LLVM-256x4"], found)
    assert "cycles on 1 of 4 threads, with 700 outputs in a row" in str(found.failures[0])


def test_a_size_that_is_slow_beside_its_neighbours_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that knows no vectors where nothing divides evenly: each size works, one is slow."""
    def cautious(nest: Nest, target: Target) -> list[LoopAction]:
        even = all(isinstance(r.extent, int) and r.extent % 8 == 0 for r in nest.roots.values())
        return CPUPlanner(nest, target).plan() if even else []

    monkeypatch.setattr("tg_codegen.plan.heuristic.loop_actions", cautious)
    case, machine, found = Case.parse("matmul/NN/float32/320x320x320"), MACHINES["LLVM-256x1"], Found()
    compared(case, machine, planned(case, machine, found), random.Random(0), found)
    assert len(found.failures) == 2 and "times as long as in matmul/NN/float32/320x320x320" in str(found.failures[0])
    assert "320x320x320 " not in str(found.failures[0]).splitlines()[1]


@pytest.mark.drawn(6)
@pytest.mark.parametrize("text, machine, other", [
    ("convolution/5s1p2/bfloat16/55x218x94x106x93", "LLVM-256x8", ""),
    ("attention/causal/float32/2x2x2573x2573x5", "LLVM-256x1", "attention/causal/float32/2x2x2574x2574x5"),
    ("convolution-gradient/5s2p2g/float16/33x6x6x93x65", "CLANG-256x2",
     "convolution-gradient/5s2p2g/float16/33x6x6x93x64"),
    ("batched-gradient/TN/float32/5x1300x2464x1868", "LLVM-128x8", ""),
    ("convolution/3s1p1/float32/35x187x256x30x118", "LLVM-512x8", ""),
    ("convolution/3s2p1/float32/40x137x173x118x129", "LLVM-128x8", "convolution/3s2p1/float32/40x137x172x118x129"),
    ("matmul/TN/bfloat16/2647x2136x2251", "CLANG-512x2", "matmul/TN/bfloat16/2640x2136x2252"),
    ("reduction/var012/float32/1889x69x39", "CUDA", "reduction/var012/float32/1888x69x39"),
    ("reduction/sum012/float32/2152x329x287", "PTX", "reduction/sum012/float32/2153x329x287"),
    ("reduction/var012/float32/862x647x441", "LLVM-128x4", "reduction/var012/float32/864x647x441"),
    ("reduction/dev0/float32/1000x1003x1", "LLVM-256x1", "reduction/dev1/float32/1000x1003x1"),
    ("reduction/var02/float32/64x50x211", "CUDA", "reduction/var02/float32/64x50x256"),
    ("convolution/3s1p1/bfloat16/56x256x170x129x53", "LLVM-256x8", "convolution/3s1p1/bfloat16/56x256x171x129x53"),
    ("convolution-gradient/3s2p1/float32/39x156x187x79x116", "LLVM-512x8",
     "convolution-gradient/3s2p1/float32/39x156x188x79x116"),
    ("convolution/5s1p2/bfloat16/39x134x241x19x18", "LLVM-256x4", "convolution/5s1p2/bfloat16/39x134x242x19x18"),
    ("convolution/5s1p2/float32/40x293x69x25x1", "LLVM-128x8", "convolution/5s1p2/float32/40x293x68x25x1"),
])  # fmt: skip
def test_what_was_once_found(text: str, machine: str, other: str) -> None:
    """Kernels that were too long or slow: the first is held to the limits, and against its neighbour if it has one."""
    case, found = Case.parse(text), Found()
    total = planned(case, MACHINES[machine], found)
    assert not found.failures, list(map(str, found.failures))
    if other:
        theirs = planned(Case.parse(other), MACHINES[machine], found)
        assert total / case.work() < 2 * theirs / Case.parse(other).work()


@pytest.mark.parametrize("text, machine, before", [
    ("batched/NT/float32/5x21x145x1497", "LLVM-256x8", 0.0215),
    ("batched/TN/float32/4x103x128x2442", "LLVM-512x8", 0.0084),
])  # fmt: skip
def test_the_longest_of_short_loops_is_divided_among_threads(text: str, machine: str, before: float) -> None:
    """Fewer batches than threads: they were outermost all the same, and took so many cycles for each operation."""
    case, found = Case.parse(text), Found()
    assert planned(case, MACHINES[machine], found) / case.work() < 0.6 * before
    assert not found.failures, list(map(str, found.failures))


TEXTS = """
import random
from hashlib import sha256
from tools.sweep.kernels import kernels
from tools.sweep.machines import MACHINES
from tools.sweep.programs import Case, drawn
from tg_codegen import compile_ast
rng = random.Random(5)
cases = [(Case.parse("attention/plain/float32/6x3x1229x631x11"), "MSL")]
cases += [(drawn(rng), rng.choice(sorted(MACHINES))) for _ in range(8)]
for case, name in cases:
    for ast in kernels(case, MACHINES[name]):
        print(case, name, sha256(compile_ast(ast, MACHINES[name].renderer).src.encode()).hexdigest())
"""


def test_a_kernel_has_the_same_text_in_every_process() -> None:
    """Places in memory and hashes of strings differ from one to the other: no order may follow them."""
    root = Path(__file__).parents[1]
    seeds = random.SystemRandom().sample(range(1 << 32), 2)
    running = [
        subprocess.Popen([sys.executable, "-c", TEXTS], cwd=root, stdout=subprocess.PIPE, text=True,
                         env={**os.environ, "PYTHONHASHSEED": str(seed)}) for seed in seeds
    ]  # fmt: skip
    first, other = [process.communicate(timeout=200)[0].splitlines() for process in running]
    assert len(first) > 10 and first == other, seeds


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    case = ["--case", "reduction/sum01/float32/7x67x9", "--machine", "LLVM-256x2"]
    page = tmp_path / "log.md"
    assert main([*case, "--jobs", "1", "--seed", "3", "--log", str(page)]) == 0
    date, _, seed, *_, machines, kernels, runs, _, found = page.read_text(encoding="utf-8").strip("| \n").split(" | ")
    assert date.startswith("20") and [seed, machines, kernels, runs, found] == ["3", "LLVM-256x2", "3", "0", "nothing"]
    told = capsys.readouterr().out
    assert "--seed 3" in told and "1 of 1 programs, 3 kernels planned, 0 programs run, 0 failures" in told


def test_drawn_shapes_are_planned() -> None:
    for seed in range(2):
        rng = random.Random(seed)
        case = drawn(rng)
        gpu = MACHINES["WGSL" if case.dtype == "float32" else "PTX"]
        found = checked(case, [rng.choice(CPUS), gpu], seed)
        assert found.plans and not found.failures, list(map(str, found.failures))


def test_sums_of_any_length_have_one_bound() -> None:
    want = np.ones(3)
    assert difference(want * (1 + 6e-5), want) > 1 > difference(want * (1 + 4e-5), want)


@pytest.mark.slow
def test_a_long_serial_sum_is_exact() -> None:
    """In one accumulator for all terms it was off by 6e-5."""
    found = ran(Case.parse("reduction/var01/float32/2237x82x1026"), 1)
    assert found.runs and not found.failures, list(map(str, found.failures))
