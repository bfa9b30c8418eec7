"""Every elementwise op of every dtype, alone in a kernel, has a text in every language.

Alone, because what simplification leaves of a kernel decides which dtypes are legalised: ``x < x`` is False, and no
longer reads ``x``, whose buffer is passed all the same.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest

from tg_codegen import compile_ast
from tg_codegen.machine.renderer import Renderer
from tg_codegen.render.c.clang import ClangRenderer
from tg_codegen.render.c.cuda import CUDARenderer
from tg_codegen.render.c.msl import MSLRenderer
from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_codegen.render.llvm import AMDLLVMRenderer, LLVMRenderer
from tg_codegen.render.ptx import PTXRenderer
from tg_codegen.render.renderers import RENDERERS
from tg_codegen.render.wgsl import WGSLRenderer
from tg_dtype import DType, dtypes
from tg_lazy import ALU, SPEC, LazyOp, Ops, ast, result_dtype
from tg_shape import ShapeTracker

TARGETS: dict[str, Renderer] = {
    "LLVM": LLVMRenderer(), "CLANG": ClangRenderer(), "CL": OpenCLRenderer(), "CL half": OpenCLRenderer(half=True),
    "CL single": OpenCLRenderer(double=False), "CUDA": CUDARenderer(), "CUDA sm_90": CUDARenderer("sm_90"),
    "PTX": PTXRenderer(), "PTX sm_90": PTXRenderer("sm_90"), "MSL": MSLRenderer(), "WGSL": WGSLRenderer(),
    "WGSL half": WGSLRenderer(half=True), "AMD": AMDLLVMRenderer("gfx1100"),
}  # fmt: skip
SIZE = 5
LINE = ShapeTracker.from_shape((SIZE,))


def test_every_language_is_here() -> None:
    assert {type(renderer) for renderer in TARGETS.values()} == {*RENDERERS.values(), AMDLLVMRenderer}


def results(dtype: DType) -> Iterator[tuple[str, LazyOp]]:
    """Values of two buffers of a dtype and one of bools: slots 1, 2 and 3."""
    x, y = (ast.load(slot, dtype, LINE) for slot in (1, 2))
    chosen = ast.load(3, dtypes.bool, LINE)
    constants = [ast.const(dtypes.as_const(value, dtype), dtype, (SIZE,)) for value in (0, 1, 3)]
    for op in sorted(ALU - {Ops.CAST, Ops.BITCAST}, key=lambda o: o.value):
        given = [dtypes.bool, dtype, dtype] if op is Ops.WHERE else [dtype] * SPEC[op].arity
        try:
            result_dtype(op, *given)
        except TypeError:
            continue
        first, rest = ([chosen], 2) if op is Ops.WHERE else ([], len(given))
        for label, operands in [
            ("of two", [x, y, x][:rest]), ("of itself", [x, x, x][:rest]),
            *((f"of {c.arg} first", [c, x, y][:rest]) for c in constants),
            *((f"of {c.arg} last", [y, x, c][-rest:]) for c in constants),
        ]:  # fmt: skip
            yield f"{op.name} {label}", ast.alu(op, *first, *operands)
    for other in dtypes.all:
        if other is not dtype:
            yield f"CAST to {other.name}", ast.cast(x, other)
            yield f"CAST to {other.name} and back", ast.cast(ast.cast(x, other), dtype)
        if other.itemsize == dtype.itemsize and other is not dtype:
            yield f"BITCAST to {other.name}", ast.bitcast(x, other)
    for reduction in (Ops.ADD, Ops.MUL, Ops.MAX):
        yield f"REDUCE {reduction.name}", ast.reduce(x, reduction, (0,))


def has(renderer: Renderer, value: LazyOp) -> bool:
    """Whether the language can hold every value that is computed: nothing stands for float64."""
    return renderer.supports_dtype(dtypes.float64) or all(u.dtype is not dtypes.float64 for u in value.toposort())


def refused(renderer: Renderer, dtype: DType, values: Iterable[tuple[str, LazyOp]] = ()) -> list[str]:
    """The kernels that have no text, and why: of all results of a dtype, or of some."""
    found = []
    for label, value in values or results(dtype):
        store = ast.store(0, ShapeTracker.from_shape(value.shape), value)
        sizes = [(value.dtype, SIZE), (dtype, SIZE), (dtype, SIZE), (dtypes.bool, SIZE)]
        sink = ast.sink((store,), tuple(ast.BufferArg(of, size) for of, size in sizes))
        try:
            compile_ast(sink, renderer, actions=())
        except ValueError as error:
            if has(renderer, value):
                found.append(f"{label} of {dtype.name}: {error}")
    return found


@pytest.mark.drawn(5)
@pytest.mark.parametrize("name", TARGETS)
def test_dtypes_that_are_missing(name: str) -> None:
    """Those that a language computes through others: every op, of one of them and in one form, which are drawn."""
    renderer, seed = TARGETS[name], random.SystemRandom().randrange(1 << 32)
    draw = random.Random(seed)
    missing = [dtype for dtype in dtypes.floats if not renderer.supports_dtype(dtype) and dtype is not dtypes.float64]
    forms: dict[str, list[tuple[DType, str, LazyOp]]] = {}
    for dtype in missing:
        for label, value in results(dtype):
            kind = label if label.startswith(("CAST", "BITCAST", "REDUCE")) else label.partition(" ")[0]
            forms.setdefault(kind, []).append((dtype, label, value))
    assert len(forms) > 60 or not missing
    for dtype, label, value in map(draw.choice, forms.values()):
        assert not refused(renderer, dtype, [(label, value)]), f"drawn with the seed {seed}"


@pytest.mark.dense
@pytest.mark.parametrize("name", TARGETS)
def test_every_dtype(name: str) -> None:
    found = [line for dtype in dtypes.all for line in refused(TARGETS[name], dtype)]
    assert not found, "\n".join(found)
