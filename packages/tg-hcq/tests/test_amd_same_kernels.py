"""The same kernels on five architectures of AMD, on the processor and as PTX: every bit of what they store.

The first are software cards that execute machine code, the second is the host, the third runs PTX on the host. Kernels
are drawn; they have no operation whose result a device may choose.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tg_dtype import ConstType, DType, dtypes
from tg_lazy import Context, LazyOp, Ops
from tg_lazy import ast as A
from tg_runtime.backends.cuda.device import CUDADevice
from tg_runtime.device.dev import DevEntry
from tg_runtime.testing.kernels import buffer_with, kernel, run
from tg_shape import ShapeTracker

pytest.importorskip("llvmlite", reason="LLVM compiles the kernels")

ARCHS = ("gfx1030", "gfx1100", "gfx1201", "gfx942", "gfx950")
PLACES = [("CPU:LLVM", "CPU"), *((f"MOCKKFD+AMD:LLVM:{arch}", "AMD") for arch in ARCHS)]
if CUDADevice.unavailable(DevEntry("CUDA", renderer="PTX", iface="MOCK")) is None:
    PLACES.append(("MOCK+CUDA:PTX", "CUDA"))
COUNT = 131
FLOATS: dict[DType, tuple[float, ...]] = {
    dtypes.float32: (0.0, -0.0, 1.0, -1.5, 3.0e38, -1.0e-38, 1.0e-44, float("inf"), float("nan"), 16777217.0, 0.1),
    dtypes.float64: (0.0, -0.0, 1.0, -2.5, 1.7e308, 4.9e-324, float("inf"), float("nan"), 0.1),
    dtypes.float16: (0.0, -0.0, 1.0, 65504.0, -6.1e-5, 5.96e-8, float("inf"), float("nan"), 0.1),
}
INTEGERS = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int32, dtypes.uint32, dtypes.int64,
            dtypes.uint64)  # fmt: skip
VIEW = ShapeTracker.from_shape((COUNT,))


def values(dtype: DType, rng: random.Random) -> list[ConstType]:
    """Special ones among others."""
    if dtype in FLOATS:
        return [rng.choice(FLOATS[dtype]) if rng.random() < 0.4 else rng.uniform(-100, 100) for _ in range(COUNT)]
    low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
    return [rng.choice((0, 1, low, high)) if rng.random() < 0.3 else rng.randint(low, high) for _ in range(COUNT)]


def expression(dtype: DType, depth: int, rng: random.Random, leaf: Callable[[], LazyOp]) -> LazyOp:
    """A tree of operations of one dtype, with comparisons and choices inside."""
    if depth == 0:
        return leaf()

    def part() -> LazyOp:
        return expression(dtype, depth - 1, rng, leaf)

    floats = dtype in FLOATS
    # which zero is the greater one, a device may choose
    others = [Ops.FDIV, Ops.SQRT, Ops.TRUNC] if floats else [Ops.MAX, Ops.AND, Ops.OR, Ops.XOR]
    op = rng.choice([Ops.ADD, Ops.SUB, Ops.MUL, Ops.WHERE, Ops.NEG, *others])
    if op in (Ops.NEG, Ops.SQRT, Ops.TRUNC):
        return A.alu(op, part())
    if op is Ops.WHERE:
        return A.alu(op, A.alu(rng.choice([Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE]), part(), part()), part(), part())
    return A.alu(op, part(), part())


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=lambda dtype: dtype.name)
def test_the_same_kernels(dtype: DType) -> None:
    rng = random.Random(dtype.name)
    for _ in range(2):
        inputs = [values(dtype, rng) for _ in range(3)]
        tree = expression(dtype, 3, rng, lambda: A.load(1 + rng.randrange(3), dtype, VIEW))
        sink = kernel([(tree, COUNT)], [(dtype, COUNT)] * 3)
        found = {}
        for dev, device in PLACES:
            with Context(DEV=dev):
                found[dev] = run(device, sink, [buffer_with(device, v, dtype) for v in inputs])[0]
        first = found["CPU:LLVM"]
        for dev, got in found.items():
            wrong = [(i, a, b) for i, (a, b) in enumerate(zip(got, first, strict=True))
                     if repr(a) != repr(b)]  # fmt: skip
            assert wrong == [], f"{dev}: {wrong[:3]} of {tree}"
