"""The textual tests in ``ir/``: a kernel, the pass that the file is named after, and lines that must come out.

``// CASE: name`` begins a test. ``// CHECK: text`` is found on a line after the last found one, ``// CHECK-NEXT: text``
on the very next, ``// CHECK-NOT: text`` on no line; ``// LACKS: ops and dtypes`` describes the renderer. In
``invalid/``, ``// ERROR: text`` is part of the message.

In ``nests/`` the input is a loop nest or a kernel in parts (:mod:`tg_codegen.nest.text`); ``// ACTIONS: a; b`` are
applied to it, and ``// TARGET: field=value, …`` is the machine. Every action ends the list of a case in ``nests/`` and
of one in ``nests/invalid/``.

In ``kernels/`` the input is a kernel AST, in which a view is a shape and movements of it, such as
``%0 = load[1] via (4, 8).permute((1, 0))``.
"""

from __future__ import annotations

import ast
import re
from ast import literal_eval
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tg_codegen.emit.kernel import emit
from tg_codegen.ir.bounds import Bounds
from tg_codegen.ir.text import parse, parse_constant, print_uops
from tg_codegen.ir.uop import UOp
from tg_codegen.ir.verify import verify
from tg_codegen.linear.linearize import linearize
from tg_codegen.machine.renderer import Renderer
from tg_codegen.machine.target import Target
from tg_codegen.nest.kernel import Kernel as Loops
from tg_codegen.nest.lower import lower
from tg_codegen.nest.parts import stated
from tg_codegen.nest.text import parse_kernel, print_kernel
from tg_codegen.plan.actions import Action, In
from tg_codegen.plan.draft import Draft, in_order
from tg_codegen.plan.heuristic import applied
from tg_codegen.plan.vocabulary import ACTIONS
from tg_codegen.plan.vocabulary import parse_action as parse_action
from tg_codegen.rewrite.engine import graph_rewrite
from tg_codegen.rewrite.rules import full_rewrite, simplify
from tg_codegen.rewrite.rules.decompose import decompose
from tg_codegen.rewrite.rules.legalize import legalize
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

Kernel = UOp | Sequence[UOp]


class Partial(Renderer):
    """A language without some ops and dtypes."""

    name = "PARTIAL"

    def __init__(self, lacks: frozenset[str]) -> None:
        super().__init__(Target())
        self.lacks = lacks

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return print_uops(uops)

    def supports_op(self, op: Ops, dtype: DType) -> bool:
        return op.name.lower() not in self.lacks

    def supports_dtype(self, dtype: DType) -> bool:
        return dtype.name not in self.lacks


def _same(kernel: Kernel, renderer: Renderer) -> Kernel:
    verify(kernel)
    return kernel


def _on_sink(run: Callable[[UOp, Renderer], Kernel]) -> Callable[[Kernel, Renderer], Kernel]:
    def go(kernel: Kernel, renderer: Renderer) -> Kernel:
        return run(kernel if isinstance(kernel, UOp) else kernel[-1], renderer)

    return go


PASSES: dict[str, Callable[[Kernel, Renderer], Kernel]] = {
    "linearize": _on_sink(lambda sink, renderer: linearize(sink)),
    "simplify": _on_sink(lambda sink, renderer: graph_rewrite(sink, simplify, Bounds())),
    "decompose": _on_sink(lambda sink, renderer: graph_rewrite(sink, decompose, renderer)),
    "legalize": _on_sink(legalize),
    "full_rewrite": _on_sink(full_rewrite),
    "parse": _same,
    "verify": _same,
}

FOLDER = Path(__file__).parent / "ir"


def _cases(pattern: str) -> Iterator[object]:
    files = sorted(FOLDER.glob(pattern))
    assert files, f"no textual tests match {pattern}"
    for file in files:
        for text in file.read_text().split("// CASE: ")[1:]:
            name, _, body = text.partition("\n")
            yield pytest.param(file.stem, body, id=f"{file.stem}: {name}")


def _directives(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        word, colon, rest = line.partition(":")
        if line.startswith("// ") and colon and word[3:].replace("-", "").isupper():
            yield word[3:], rest.strip()


def _renderer(text: str) -> Renderer:
    lacks = ",".join(rest for word, rest in _directives(text) if word == "LACKS")
    return Partial(frozenset(part.strip() for part in lacks.split(",")))


def check(output: str, text: str) -> None:
    """Asserts that the CHECK lines of ``text`` hold of ``output``."""
    lines = [line.strip() for line in output.splitlines()]
    at = -1
    for word, wanted in _directives(text):
        if word == "CHECK":
            at = next((n for n in range(at + 1, len(lines)) if wanted in lines[n]), -2)
            assert at != -2, f"not found: {wanted}\n{output}"
        elif word == "CHECK-NEXT":
            at += 1
            assert at < len(lines) and wanted in lines[at], f"not next: {wanted}\n{output}"
        elif word == "CHECK-NOT":
            assert all(wanted not in line for line in lines), f"found: {wanted}\n{output}"
        else:
            assert word in ("LACKS", "ACTIONS", "TARGET"), word


@pytest.mark.parametrize(("name", "text"), list(_cases("*.tgir")))
def test_pass(name: str, text: str) -> None:
    before = parse(text)
    verify(before)
    after = PASSES[name](before, _renderer(text))
    verify(after)
    assert any(word.startswith("CHECK") for word, _ in _directives(text))
    check(print_uops(after), text)
    assert parse(print_uops(after)) == after


@pytest.mark.parametrize(("name", "text"), list(_cases("invalid/*.tgir")))
def test_invalid(name: str, text: str) -> None:
    (wanted,) = [rest for word, rest in _directives(text) if word == "ERROR"]
    with pytest.raises(ValueError) as raised:
        PASSES[name](parse(text), _renderer(text))
    assert wanted in str(raised.value)


def _target(text: str) -> Target:
    fields: dict[str, Any] = {}
    for word, rest in _directives(text):
        for part in rest.split(", ") if word == "TARGET" else ():
            name, _, value = part.partition("=")
            fields[name] = value if name == "kind" else literal_eval(value)
    return Target(**fields)


def _actions(text: str) -> list[Action]:
    lines = [part for word, rest in _directives(text) if word == "ACTIONS" for part in rest.split("; ")]
    return [parse_action(line) for line in lines]


def _kernel(text: str) -> Loops:
    """The kernel of a text: that which a nest states, or one in parts."""
    kernel = parse_kernel(text)
    return stated(kernel.whole) if kernel.single else kernel


def _acted(text: str) -> str:
    found = print_kernel(applied(_kernel(text), in_order(_actions(text))[0]))
    assert print_kernel(parse_kernel(found)) == found
    return found


def _emitted(text: str) -> str:
    draft = Draft(_kernel(text), _target(text), emit)
    draft.take(_actions(text))
    verify(draft.sink)
    verify(linearize(draft.sink))  # there is an order in which everything is computed before it is used
    return print_uops(draft.sink)


NEST_PASSES: dict[str, Callable[[str], str]] = {
    "actions": _acted,
    "emit": _emitted,
    "parse": lambda text: print_kernel(parse_kernel(text)),
}


def _view(node: ast.expr) -> ShapeTracker:
    """A shape, and movements of it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        assert node.func.attr in ("permute", "reshape", "expand", "pad", "shrink", "flip"), ast.unparse(node)
        moved = getattr(_view(node.func.value), node.func.attr)(*map(literal_eval, node.args))
        assert isinstance(moved, ShapeTracker)
        return moved
    return ShapeTracker.from_shape(literal_eval(node))


def _ast(text: str) -> LazyOp:
    """A kernel AST out of its text: buffers, then a node on each line, a store without a name."""
    buffers: list[BufferArg] = []
    nodes: dict[str, LazyOp] = {}
    stores: list[LazyOp] = []
    for line in (line for line in text.splitlines() if line and not line.startswith("//")):
        if found := re.fullmatch(r"buffer (\w+)\*(\d+)( internal)?", line):
            buffers.append(BufferArg(dtypes.from_name(found[1]), int(found[2]), found[3] is not None))
            continue
        found = re.fullmatch(r"(?:(%\w+) = )?(\w+)(?:\[(.*?)\])?(?: \((%.*?)\))?(?: via (.+))?", line)
        assert found is not None, line
        name, op, arg, operands, movements = found.groups()
        src = [nodes[operand] for operand in operands.split(", ")] if operands else []
        view = _view(ast.parse(movements, mode="eval").body) if movements else ShapeTracker.from_shape(())
        if op == "store":
            stores.append(A.store(int(arg), view, src[0]))
        elif op == "load":
            nodes[name] = A.load(int(arg), buffers[int(arg)].dtype, view)
        elif op == "gather":
            nodes[name] = A.gather(int(arg), buffers[int(arg)].dtype, view, src[0])
        elif op == "const":
            constant = parse_constant(arg)
            nodes[name] = A.const(constant.arg, constant.dtype, view.shape)
        elif op == "reduce":
            how, *axes = arg.split(", ")
            nodes[name] = A.reduce(src[0], Ops[how.upper()], tuple(map(int, axes)))
        elif op == "iota":
            nodes[name] = A.iota(view)
        elif op == "view":
            nodes[name] = A.view(src[0], view)
        elif op == "cast":
            nodes[name] = A.cast(src[0], dtypes.from_name(arg))
        else:
            nodes[name] = A.alu(Ops[op.upper()], *src)
    return A.sink(tuple(stores), tuple(buffers))


def _lowered(text: str) -> str:
    return print_kernel(stated(lower(_ast(text))))


@pytest.mark.parametrize(("name", "text"), list(_cases("kernels/*.tgir")))
def test_kernel(name: str, text: str) -> None:
    assert any(word.startswith("CHECK") for word, _ in _directives(text))
    check(_lowered(text), text)


@pytest.mark.parametrize(("name", "text"), list(_cases("kernels/invalid/*.tgir")))
def test_invalid_kernel(name: str, text: str) -> None:
    (wanted,) = [rest for word, rest in _directives(text) if word == "ERROR"]
    with pytest.raises(ValueError) as raised:
        _lowered(text)
    assert wanted in str(raised.value)


@pytest.mark.parametrize(("name", "text"), list(_cases("nests/*.tgir")))
def test_nest(name: str, text: str) -> None:
    assert any(word.startswith("CHECK") for word, _ in _directives(text))
    check(NEST_PASSES[name](text), text)


@pytest.mark.parametrize(("name", "text"), list(_cases("nests/invalid/*.tgir")))
def test_invalid_nest(name: str, text: str) -> None:
    (wanted,) = [rest for word, rest in _directives(text) if word == "ERROR"]
    with pytest.raises(ValueError) as raised:
        NEST_PASSES[name](text)
    assert wanted in str(raised.value)


@pytest.mark.parametrize("folder", ["nests", "nests/invalid"])
def test_every_action_has_its_texts(folder: str) -> None:
    """One that shows what becomes of a kernel, and one in which the action is refused: the last of its case."""
    cases = [text for file in (FOLDER / folder).glob("*.tgir") for text in file.read_text().split("// CASE: ")[1:]]
    last = [actions[-1] for text in cases if (actions := _actions(text))]
    shown = {type(action.action if isinstance(action, In) else action) for action in last}
    assert set(ACTIONS.values()) <= shown, "no text ends in these"
    assert any(isinstance(action, In) for action in last)


def test_the_checker_can_fail() -> None:
    for wrong in ("// CHECK: c", "// CHECK: b\n// CHECK: a", "// CHECK: a\n// CHECK-NEXT: a", "// CHECK-NOT: b"):
        with pytest.raises(AssertionError):
            check("a\nb\n", wrong)
