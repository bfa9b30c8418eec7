"""What compilers make of plans for machines that are not at hand: inner loops keep their values in registers.

``tests/test_other_machines.py`` of tg-codegen counts accumulators in kernels, and the operands beside them are the
compiler's to place. So this reads what LLVM writes for each processor: in loops that multiply and add, and have no loop
inside, what goes to the stack and comes back was planned for more registers than there are.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tg_codegen import compile_ast
from tg_codegen.linear import scheduling
from tg_codegen.render.llvm import LLVMRenderer
from tg_lazy import Context, Ops
from tg_runtime.compilers.llvm import LLVMCompiler, available
from tg_runtime.host.arch import CPUArch
from tinytg import Tensor, fft

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is not installed")

PROCESSORS = {
    "NEON, 4 threads": ("aarch64,cortex-a76", 4),
    "SVE, 4 threads": ("aarch64,neoverse-v1", 4),
    "AVX2, 8 threads": ("x86_64,haswell", 8),
    "no vectors": ("riscv64,-v", 1),
}
MOST = {"NEON, 4 threads": 0.17, "SVE, 4 threads": 0.05, "AVX2, 8 threads": 0.08, "no vectors": 0.25}
"""Of a loop's instructions, those that may move values to and from the stack.

On NEON it is a softmax's exponential, whose constants have no register left in LLVM's schedule for that core; without
vectors LLVM unrolls a window by itself."""

LABEL = re.compile(r"^(\.LBB\w+):")
BRANCH = re.compile(r"^\s+(?:b|j|cb|tb)\S*\s.*?(\.LBB\w+)\s*$")
MULTIPLY_ADD = re.compile(r"^\s+(?:vfn?m(?:add|sub)\d+|fml[as]|fn?m(?:add|sub))")
ON_STACK = re.compile(
    r"\(%rsp.*%[xyz]mm\d+|%[xyz]mm\d+.*\(%rsp|^\s+(?:ld|st)[rpu]+\s+[qdsvz]\d+.*\[sp|^\s+f[ls][wd]\s.*\(sp\)"
)


def product(r: random.Random) -> Tensor:
    m, n, k = (r.randint(90, 400) for _ in range(3))
    right = Tensor.empty(n, k).T if r.random() < 0.5 else Tensor.empty(k, n)
    return Tensor.empty(m, k) @ right


def convolution(r: random.Random) -> Tensor:
    channels, side = r.choice((3, 16, 37)), r.randint(9, 40)
    weights = Tensor.empty(r.randint(16, 70), channels, 3, 3)
    return Tensor.empty(r.randint(1, 9), channels, side, side).conv2d(weights, padding=1)


def attention(r: random.Random) -> Tensor:
    heads, rows, width = r.randint(1, 9), r.randint(60, 300), r.choice((33, 64))
    q, k, v = (Tensor.empty(1, heads, rows, width) for _ in range(3))
    return q.scaled_dot_product_attention(k, v)


PROGRAMS: dict[str, Callable[[random.Random], Tensor]] = {
    "product": product, "convolution": convolution, "attention": attention,
}  # fmt: skip


def assembly(program: str, processor: str) -> Iterator[str]:
    """What LLVM writes for the kernels of some draws of a program, planned for a processor."""
    name, threads = PROCESSORS[processor]
    arch, rng = CPUArch.parse(name), random.Random(program)
    renderer, compiler = LLVMRenderer(arch.target(threads)), LLVMCompiler(arch, tuned=True)
    for _ in range(2):
        for item in (item for item in PROGRAMS[program](rng).schedule() if item.ast.op is Ops.SINK):
            spec = compile_ast(item.ast, renderer)
            assert not spec.fallback
            yield compiler.assembly(spec.src)


def inner_loops(text: str) -> list[list[str]]:
    """The instructions of loops that have no loop inside."""
    lines = text.splitlines()
    labels = {found[1]: number for number, line in enumerate(lines) if (found := LABEL.match(line))}
    ends: dict[int, int] = {}
    for number, line in enumerate(lines):
        found = BRANCH.match(line)
        if found and labels.get(found[1], number) < number:
            ends[labels[found[1]]] = number
    inner = [(a, b) for a, b in ends.items() if not any(a < start and end <= b for start, end in ends.items())]
    return [[line for line in lines[a : b + 1] if line.startswith("\t") and line[1:2] != "."] for a, b in inner]


def on_stack(loop: list[str]) -> float:
    """The part of a loop's instructions that move values of floating point to or from the stack."""
    return sum(ON_STACK.search(line) is not None for line in loop) / len(loop)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_inner_loops_keep_their_values_in_registers(program: str, processor: str) -> None:
    loops = [loop for text in assembly(program, processor) for loop in inner_loops(text)]
    multiplying = [loop for loop in loops if any(map(MULTIPLY_ADD.match, loop))]
    assert multiplying, "no loop was found that multiplies and adds"
    worst = max(multiplying, key=on_stack)
    assert on_stack(worst) <= MOST[processor], "\n".join(worst)


def test_a_plan_for_more_registers_than_there_are_is_noticed() -> None:
    (arch, threads), rng = (CPUArch.parse("x86_64,haswell"), 8), random.Random("product")
    renderer = LLVMRenderer(replace(arch.target(threads), registers=40))
    item = next(item for item in product(rng).schedule() if item.ast.op is Ops.SINK)
    text = LLVMCompiler(arch, tuned=True).assembly(compile_ast(item.ast, renderer).src)
    assert max(map(on_stack, inner_loops(text))) > max(MOST.values())


def butterflies_on_stack() -> float:
    """Of the instructions of all inner loops of a Fourier transform with AVX2, those that go to the stack."""
    arch = CPUArch.parse("x86_64,haswell")
    renderer, compiler = LLVMRenderer(arch.target(2)), LLVMCompiler(arch, tuned=True)
    with Context(DEV="CPU"):  # what is one kernel there is several on a device that interprets
        items = fft.fft(Tensor.empty(64, 4096, dtype="complex64")).schedule()
    specs = [compile_ast(item.ast, renderer) for item in items if item.ast.op is Ops.SINK]
    largest = max(specs, key=lambda spec: len(spec.uops))
    loops = inner_loops(compiler.assembly(largest.src))
    lines = [line for loop in loops for line in loop]
    return sum("(%rsp)" in line for line in lines) / len(lines)  # rows in scratch are read at an index


def test_butterflies_keep_their_numbers_in_registers() -> None:
    """What is left are roots that a loop reads from the stack, and rows that are turned."""
    assert butterflies_on_stack() <= 0.16


@pytest.mark.parametrize("step", ["_kept_so", "few_alive"])
def test_butterflies_in_another_order_are_noticed(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without barriers LLVM chooses the order, and without an order that is chosen it is that of the results."""
    monkeypatch.setattr(scheduling, step, lambda block, *_: block)
    assert butterflies_on_stack() > 0.2
