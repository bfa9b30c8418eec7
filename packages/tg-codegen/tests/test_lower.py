"""Textual tests of lowering in ``ir/asts/``: a kernel AST in, its loop nest (:mod:`tg_codegen.nest.text`) out.

An AST is read as a nest is: ``buffer`` lines, nodes, stores. How a buffer or a node is seen stands as a shape with the
movements that make the view of it: ``(4, 8).permute((1, 0))``. A constant has the shape of the operand beside it.
"""

from __future__ import annotations

import ast as python
import re
from pathlib import Path
from typing import Any

import pytest

from tg_codegen.ir.text import parse_constant
from tg_codegen.nest.lower import lower
from tg_codegen.nest.text import parse_nest, print_nest
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops, ast
from tg_shape import ShapeTracker

FOLDER = Path(__file__).parent / "ir" / "asts"


def view_of(text: str) -> ShapeTracker:
    """A view out of its shape and movements."""
    steps: list[tuple[str, Any]] = []
    node = python.parse(text, mode="eval").body
    while isinstance(node, python.Call):
        assert isinstance(node.func, python.Attribute)
        steps.append((node.func.attr, python.literal_eval(node.args[0])))
        node = node.func.value
    st = ShapeTracker.from_shape(python.literal_eval(node))
    for name, arg in reversed(steps):
        st = getattr(st, name)(arg)
    return st


def operands_of(names: dict[str, LazyOp], texts: list[str]) -> list[LazyOp]:
    shape = next((names[text].shape for text in texts if text in names), ())
    found = []
    for text in texts:
        if text in names:
            found.append(names[text])
        else:
            constant = parse_constant(text)
            found.append(ast.const(constant.arg, constant.dtype, shape))
    return found


def kernel(text: str) -> LazyOp:
    """A kernel AST out of its text."""
    names: dict[str, LazyOp] = {}
    buffers, stores = [], []
    for line in text.splitlines():
        if not line.strip() or line.startswith("//"):
            continue
        if buffer := re.fullmatch(r"buffer (\w+)\*(\d+)", line):
            buffers.append(BufferArg(dtypes.from_name(buffer[1]), int(buffer[2])))
        elif store := re.fullmatch(r"store\[(\d+), (.+)\] (%\w+)", line):
            stores.append(ast.store(int(store[1]), view_of(store[2]), names[store[3]]))
        else:
            found = re.fullmatch(r"(%\w+) = (\w+)(?:\[(.*?)\])?(?: (\w+))?(?: \(([^()]*)\))?", line)
            assert found is not None, line
            name, op, arg, dtype, operands = found.groups(default="")
            src = operands_of(names, operands.split(", ")) if operands else []
            number, _, view = arg.partition(", ")
            if op == "load":
                names[name] = ast.load(int(number), dtypes.from_name(dtype), view_of(view))
            elif op == "gather":
                names[name] = ast.gather(int(number), dtypes.from_name(dtype), view_of(view), src[0])
            elif op == "iota":
                names[name] = ast.iota(view_of(arg))
            elif op == "view":
                names[name] = ast.view(src[0], view_of(arg))
            elif op == "reduce":
                names[name] = ast.reduce(src[0], Ops[number.upper()], tuple(int(a) for a in view.split(", ")))
            elif op == "cast":
                names[name] = ast.cast(src[0], dtypes.from_name(dtype))
            else:
                names[name] = ast.alu(Ops[op.upper()], *src)
    return ast.sink(tuple(stores), tuple(buffers))


def cases(name: str) -> list[object]:
    parts = [text.partition("\n") for text in (FOLDER / name).read_text().split("// CASE: ")[1:]]
    return [pytest.param(body, id=case) for case, _, body in parts]


def directives(text: str, word: str) -> list[str]:
    return re.findall(rf"^// {word}: (.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("text", cases("lower.tgir"))
def test_lower(text: str) -> None:
    """The lines that are checked are all lines but those of the buffers."""
    nest = print_nest(lower(kernel(text)))
    assert [line for line in nest.splitlines() if not line.startswith("buffer ")] == directives(text, "CHECK")
    assert print_nest(parse_nest(nest)) == nest


@pytest.mark.parametrize("text", cases("invalid/lower.tgir"))
def test_invalid(text: str) -> None:
    (wanted,) = directives(text, "ERROR")
    with pytest.raises(ValueError) as raised:
        lower(kernel(text))
    assert wanted in str(raised.value)
