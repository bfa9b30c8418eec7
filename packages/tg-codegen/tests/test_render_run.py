"""Every conformance case in every language that can be run or checked with no device, against the op table."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tg_codegen.builder import LinearBuilder
from tg_codegen.conformance import Case, cases, encode, thread_case
from tg_codegen.render_c import ClangRenderer
from tg_codegen.render_cuda import CUDARenderer
from tg_codegen.render_llvm import LLVMRenderer
from tg_codegen.render_opencl import OpenCLRenderer
from tg_codegen.renderer import Renderer
from tg_dtype import AddrSpace, dtypes
from tg_lazy import Ops

Compile = Callable[[str, str], Callable[..., None]]
RENDERERS: dict[str, Renderer] = {
    "llvm": LLVMRenderer(), "clang": ClangRenderer(), "gcc": ClangRenderer(), "cuda": CUDARenderer(),
}  # fmt: skip
STRICT: dict[str, Renderer] = {
    "llvm": LLVMRenderer(strict=True), "clang": ClangRenderer(strict=True), "gcc": ClangRenderer(strict=True),
    "cuda": CUDARenderer(strict=True),
}  # fmt: skip


SAMPLE = {"alu_float32x8", "alu_float16x8", "alu_int8x8", "alu_uint32", "alu_boolx8", "cast_float64x8", "cast_int16"}


def every_case() -> list[object]:
    found: list[object] = []
    for backend, renderer in RENDERERS.items():
        chosen = list(cases(renderer, lanes=4 if backend == "cuda" else 8))
        if backend == "gcc":  # our C is written for clang: a sample shows that gcc takes it too
            chosen = [case for case in chosen if not case.name.startswith(("alu_", "cast_")) or case.name in SAMPLE]
        if renderer.target.kind == "cpu":
            chosen.append(thread_case())
        if backend in ("llvm", "clang"):
            chosen += [case for case in cases(renderer, lanes=3) if case.name in ("gated_lanes", "lanes", "argmax")]
        found += [pytest.param(backend, case, id=f"{backend}-{case.name}") for case in chosen]
    return found


def run(backend: str, renderer: Renderer, case: Case, request: pytest.FixtureRequest) -> list[bytearray]:
    build: Compile = request.getfixturevalue(backend)
    launch = build(renderer.render(case.name, case.uops), case.name)
    buffers = case.buffers()
    launch(*buffers, vals=case.vals)
    return buffers


@pytest.mark.parametrize(("backend", "case"), every_case())
def test_conformance(backend: str, case: Case, request: pytest.FixtureRequest) -> None:
    case.check(run(backend, RENDERERS[backend], case, request))


OPENCL = OpenCLRenderer(half=True)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in cases(OPENCL) if c.name[-2:] != "16"])
def test_opencl_is_well_formed(case: Case, opencl_syntax: Callable[[str], None]) -> None:
    opencl_syntax(OPENCL.render(case.name, case.uops))


def test_opencl_work_group(opencl_syntax: Callable[[str], None]) -> None:
    """Work-items share an array; the launch must agree with the stated size."""
    k = LinearBuilder()
    out, a = k.param(0, dtypes.float32), k.param(1, dtypes.float32)
    group, item = k.special("gidx0", 4), k.special("lidx0", 16)
    tile = k.scratch("tile", dtypes.float32, 16, AddrSpace.LOCAL)
    at = k.alu(Ops.ADD, k.alu(Ops.MUL, group, k.const(16)), item)
    k.store(tile, item, k.load(a, at))
    k.barrier()
    ready = k.after(tile)
    k.store(out, at, k.load(ready, k.alu(Ops.SUB, k.const(15), item)))
    text = OPENCL.render("turn", k.uops)
    assert "reqd_work_group_size(16, 1, 1)" in text
    assert "__local float tile[16];" in text
    opencl_syntax(text)


@pytest.mark.parametrize("backend", RENDERERS)
def test_strict_does_not_contract(backend: str, request: pytest.FixtureRequest) -> None:
    """x*x - y with y = round(x*x) is 0 unless the product is fused; MULACC may be fused either way."""
    f32 = dtypes.float32
    for lanes in (1, 4):
        k = LinearBuilder()
        out, a, b = (k.param(slot, f32) for slot in range(3))
        with k.range(8, step=lanes) as i:
            x = k.load(a, i, lanes)
            k.store(out, i, k.alu(Ops.SUB, k.alu(Ops.MUL, x, x), k.load(b, i, lanes)))
        values = [1.0 + n / 8191 for n in range(8)]
        raw = encode(values, f32)
        squares = bytearray(32)
        build: Compile = request.getfixturevalue(backend)
        square = LinearBuilder()
        to, of = square.param(0, f32), square.param(1, f32)
        with square.range(8) as i:
            x = square.load(of, i)
            square.store(to, i, square.alu(Ops.MUL, x, x))
        build(STRICT[backend].render("square", square.uops), "square")(squares, raw)
        result = bytearray(b"\xff" * 32)
        build(STRICT[backend].render("difference", k.uops), "difference")(result, raw, squares)
        assert result == bytes(32)
