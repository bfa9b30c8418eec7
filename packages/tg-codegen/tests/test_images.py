"""Kernels on images: texels are written whole, and read by channels."""

from __future__ import annotations

import pytest

from tg_codegen import EmitError, compile_ast
from tg_codegen.ir.builder import LinearBuilder
from tg_codegen.ir.uop import UOps
from tg_codegen.render.c.clang import ClangRenderer
from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_dtype import ImageDType, dtypes
from tg_lazy import LazyOp, Ops, ast
from tg_shape import ShapeTracker

IMAGE = dtypes.imageh((3, 5, 4))
FLOATS = ast.BufferArg(dtypes.float32, 60)
WHOLE = ShapeTracker.from_shape((3, 20))


def argument(image: ImageDType = IMAGE) -> ast.BufferArg:
    return ast.BufferArg(image, image.size)


def copy(st: ShapeTracker, into: ast.BufferArg, source: ast.BufferArg, st_in: ShapeTracker = WHOLE) -> LazyOp:
    sink = ast.sink((ast.store(0, st, ast.load(1, dtypes.float32, st_in)),), (into, source))
    ast.verify(sink)
    return sink


def test_written_by_texels() -> None:
    src = compile_ast(copy(WHOLE, argument(), FLOATS), OpenCLRenderer()).src
    assert "write_only image2d_t data0" in src
    assert src.count("write_imagef(data0, (int2)(") == 1
    assert "vload4(0, data1 +" in src


@pytest.mark.parametrize("image", [0, 1])
def test_a_buffer_beside_an_image_is_written_by_texels_too(image: int) -> None:
    """A kernel that writes an image is planned as one, whatever else it writes."""
    x = ast.load(2, dtypes.float32, WHOLE)
    stores = (ast.store(0, WHOLE, x), ast.store(1, WHOLE, ast.alu(Ops.ADD, x, x)))
    outputs = (argument(), FLOATS) if image == 0 else (FLOATS, argument())
    spec = compile_ast(ast.sink(stores, (*outputs, FLOATS)), OpenCLRenderer())
    assert spec.actions == compile_ast(copy(WHOLE, argument(), FLOATS), OpenCLRenderer()).actions
    assert spec.src.count(f"write_imagef(data{image}, (int2)(") == 1 and "vstore4(" in spec.src


def test_read_by_texels_where_texels_are_wanted() -> None:
    src = compile_ast(copy(WHOLE, argument(), argument()), OpenCLRenderer()).src
    assert "read_only image2d_t data1" in src
    assert "= read_imagef(data1," in src
    assert "tg_channel" not in src


def test_read_by_channels_elsewhere() -> None:
    shifted = ShapeTracker.from_shape((60,)).shrink(((1, 41),)).reshape((2, 20))
    sink = copy(ShapeTracker.from_shape((2, 20)), ast.BufferArg(dtypes.float32, 40), argument(), shifted)
    assert "tg_channel_5(data1," in compile_ast(sink, OpenCLRenderer(), actions=()).src


def test_half_channels_need_no_half_arithmetic() -> None:
    spec = compile_ast(copy(WHOLE, argument(), FLOATS), OpenCLRenderer(half=False))
    assert "half" not in spec.src
    assert [b.dtype for b in spec.buffers] == [IMAGE, dtypes.float32]


def test_actions_are_replayed() -> None:
    from tg_codegen.plan.vocabulary import parse_action

    sink = copy(WHOLE, argument(), FLOATS)
    spec = compile_ast(sink, OpenCLRenderer())
    again = compile_ast(sink, OpenCLRenderer(), actions=[parse_action(line) for line in spec.actions])
    assert again.src == spec.src


@pytest.mark.parametrize(("first", "lanes", "gates", "written"), [
    (0, 4, 0, True), (8, 8, 0, True), (8, 4, 1, True), (2, 4, 0, False), (5, 8, 1, False), (0, 2, 0, False),
    (4, 2, 1, False), (0, 4, 4, False), (2, 2, 2, False),
])  # fmt: skip
def test_only_whole_texels_are_written(first: int, lanes: int, gates: int, written: bool) -> None:
    k = LinearBuilder()
    out, a = k.add(UOps.PARAM, IMAGE, (), 0), k.param(1, dtypes.float32)
    value = k.load(a, k.const(first), lanes)
    gate = k.alu(Ops.CMPLT, k.load(a, k.const(0), gates), k.const(1.0, dtypes.float32.vec(gates))) if gates else None
    k.store(out, k.const(first), value, gate)
    if written:
        text = OpenCLRenderer().render("kernel", k.uops)
        assert text.count("write_imagef(data0, (int2)(") == lanes // 4
        assert text.count("if (") == gates
    else:
        with pytest.raises(ValueError, match=r"imageh\S* is written by whole texels, not by"):
            OpenCLRenderer().render("kernel", k.uops)


def test_refusals() -> None:
    with pytest.raises(EmitError, match="CLANG has no images"):
        compile_ast(copy(WHOLE, argument(), FLOATS), ClangRenderer())
    odd = ShapeTracker.from_shape((60,)).shrink(((0, 42),)).reshape((2, 21))
    with pytest.raises(EmitError, match="by whole texels of 4 channels"):
        small = ast.BufferArg(dtypes.float32, 42)
        compile_ast(copy(odd, argument(), small, ShapeTracker.from_shape((2, 21))), OpenCLRenderer())
    shifted = ShapeTracker.from_shape((60,)).shrink(((2, 42),)).reshape((2, 20))
    with pytest.raises(EmitError, match="by whole texels of 4 channels"):
        small = ast.BufferArg(dtypes.float32, 40)
        compile_ast(copy(shifted, argument(), small, ShapeTracker.from_shape((2, 20))), OpenCLRenderer())
    x = ast.load(0, dtypes.float32, WHOLE)
    both = ast.sink((ast.store(0, WHOLE, ast.alu(Ops.ADD, x, x)),), (argument(),))
    with pytest.raises(EmitError, match="both read and written by one kernel"):
        compile_ast(both, OpenCLRenderer())
    with pytest.raises(ast.InvalidAST, match="reads float16 from a buffer of imageh"):
        store = ast.store(0, WHOLE, ast.load(1, dtypes.float16, WHOLE))
        ast.verify(ast.sink((store,), (ast.BufferArg(dtypes.float16, 60), argument())))
