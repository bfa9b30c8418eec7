"""The way back from a bad element of a kernel's output to the operation that made it.

What the way asks for is computed on the kernel's own device, from the kernel's own inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from tg_dtype import dtypes
from tg_lazy import ALU, LazyOp, Ops, ast
from tg_lazy.scheduler.anomaly import Part
from tg_lazy.trackers import contiguous
from tg_shape import ShapeTracker, prod, sym_eval

from ..memory.buffer import Buffer
from ..steps.runner import Vars
from .probe import MEMORY, Probe, only, unflat

_MOST_LOADS = 6
"""Buffers that a question reads, if it can be cut in two: some targets have eight in a kernel."""
_MOST_FOUND = 8
"""Operations that are looked for before the earliest of them is told."""


def _sources(node: LazyOp) -> list[LazyOp]:
    """The floats that an elementwise node is computed of at the same place, through integers that are their bits."""
    found: dict[LazyOp, None] = {}
    stack = list(reversed(node.src))
    while stack:
        src = stack.pop()
        if dtypes.is_float(src.dtype):
            found[src] = None
        elif node.op is Ops.BITCAST and src.op in ALU:
            stack.extend(reversed(src.src))
    return list(found)


def _or(one: LazyOp, other: LazyOp) -> LazyOp:
    return ast.alu(Ops.OR, one, other)


class Found(NamedTuple):
    """An operation that made something bad.

    Attributes:
      node: the operation.
      part: what it is in the lazy graph; None if that is not known.
      shape: the shape of its result.
      at: the first bad element.
      bad: how many there are.
      total: of how many.
      operands: what it was made of, for a message.
      made: what was made there, for a message.
    """

    node: LazyOp
    part: Part | None
    shape: tuple[int, ...]
    at: tuple[int, ...]
    bad: int
    total: int
    operands: str
    made: str = ""


class Walk:
    """The way back in a kernel's AST. All variables in it are replaced by their values.

    Reductions, and what one part of the kernel hands to the next, are computed into memory as they are come to: what is
    asked for is then a chain of elementwise operations, or one reduction of such a chain.

    Args:
      kernel: the AST.
      values: the values of the variables.
      bufs: the kernel's buffers, as they were before it ran.
      parts: what nodes of the AST are in the lazy graph.
      infinite: whether infinities are bad.
    """

    def __init__(
        self, kernel: LazyOp, values: Vars, bufs: Sequence[Buffer], parts: dict[LazyOp, Part], infinite: bool
    ) -> None:
        self._values, self._parts = values, parts
        device = bufs[0].device
        outside = [argument for argument in kernel.arg if not argument.internal]
        self._probe = Probe(bufs, outside, device, infinite)
        self._of: dict[LazyOp, LazyOp] = {}  # nodes of the AST, as they are computed here
        self._inside: dict[int, tuple[LazyOp, int]] = {}  # internal buffers: the store, and the memory in their place
        self._known: set[LazyOp] = set()  # operations that are known to make something bad
        self._old: dict[LazyOp, LazyOp] = {}  # where a node is bad because of memory, or of what is known
        for store in kernel.src:
            for node in store.toposort():
                if node not in self._of and node.op not in (Ops.STORE, Ops.UPDATE):
                    self._of[node] = self._computed(node)
            slot, st = store.arg[:2]
            if kernel.arg[slot].internal:
                value = self._of[store.src[0]]
                memory = self._probe.keep(value, st.at(values), kernel.arg[slot].size)
                self._inside[slot] = store, memory

    def _computed(self, node: LazyOp) -> LazyOp:
        values, arg = self._values, node.arg
        shape = tuple(int(sym_eval(dim, dict(values))) for dim in node.shape)
        src = tuple(self._of[s] for s in node.src)
        if isinstance(arg, ShapeTracker):
            arg = arg.at(values)
        elif node.op in MEMORY:
            slot = self._inside[arg[0]][1] if arg[0] in self._inside else arg[0]
            arg = slot, arg[1].at(values)
        elif node.op is Ops.SYM:
            return ast.const(sym_eval(arg, dict(values)), node.dtype, shape)
        made = LazyOp(node.op, node.dtype, shape, src, arg)
        if node.op is Ops.REDUCE:
            return ast.load(self._probe.keep(made), made.dtype, contiguous(shape))
        return made

    def back(self, store: LazyOp, position: int) -> Found | None:
        """Walks back from an element of an output; None if it comes from memory, or from a constant."""
        probe, node = self._probe, store.src[0]
        index = unflat(position, self._of[node].shape)
        part, at = self._parts.get(node), index
        while True:
            if node in self._parts:
                part, at = self._parts[node], index
            here = self._of[node]
            if node.op is Ops.WHERE:
                node = node.src[1 if probe.number(ast.cast(only(self._of[node.src[0]], index), dtypes.int32)) else 2]
            elif node.op is Ops.VIEW:
                inner = self._of[node.src[0]].shape
                index = unflat(int(here.arg.index(index)[0]), inner)
                node = node.src[0]
            elif node.op is Ops.LOAD and node.arg[0] in self._inside:
                made = self._inside[node.arg[0]][0]
                if not made.arg[1].at(self._values).contiguous:
                    return None
                index = unflat(int(here.arg[1].index(index)[0]), self._of[made.src[0]].shape)
                node = made.src[0]
            elif node.op is Ops.REDUCE:
                of = self._of[node.src[0]]
                bounds = [(0, dim) if a in node.arg[1] else (index[a], index[a] + 1) for a, dim in enumerate(of.shape)]
                row = ast.view(of, contiguous(of.shape).shrink(bounds))
                position_ = probe.first(probe.bad(row))
                if position_ is None:
                    return self._found(node, index, part, at)
                inside = unflat(position_, row.shape)
                index = tuple(i + low for i, (low, _) in zip(inside, bounds, strict=True))
                node = node.src[0]
            elif node.op in ALU:
                sources = [s for s in _sources(node) if not self._known_number(s)]
                culprit = next((s for s in sources if self._is_bad(s, index)), None)
                if culprit is None:
                    return None if node.op is Ops.BITCAST and not sources else self._found(node, index, part, at)
                node = culprit
            else:
                return None

    def _known_number(self, node: LazyOp) -> bool:
        return node.op is Ops.CONST and abs(node.arg) < math.inf

    def _is_bad(self, node: LazyOp, index: tuple[int, ...]) -> bool:
        probe = self._probe
        return bool(probe.number(ast.cast(probe.bad(only(self._of[node], index)), dtypes.int32)))

    def earliest(self, store: LazyOp, position: int) -> Found | None:
        """The earliest operation that made something bad in an output; None if none did.

        Args:
          store: the output.
          position: the first bad element of it.
        """
        found: list[Found] = []
        one = self.back(store, position) or self._fresh(store)
        while one is not None and len(found) < _MOST_FOUND:
            found.append(one)
            self._known.add(one.node)
            one = self._fresh(store)
        order = {node: n for n, node in enumerate(self._of)}
        return min(found, key=lambda each: order[each.node], default=None)

    def _fresh(self, store: LazyOp) -> Found | None:
        """Walks back from the first element of an output that is not bad for a known reason; None if there is none."""
        self._old.clear()
        for node in self._of:  # operands first
            if dtypes.is_float(node.dtype):
                self._old[node] = self._small(self._for_known_reason(node))
        value = self._of[store.src[0]]
        rest = ast.alu(Ops.NOT, self._old[store.src[0]])
        position = self._probe.first(ast.alu(Ops.AND, self._probe.bad(value), rest))
        return None if position is None else self.back(store, position)

    def _small(self, where: LazyOp) -> LazyOp:
        """A condition, in memory where it is computed of many buffers."""
        if len({node.arg[0] for node in where.toposort() if node.op in MEMORY}) <= _MOST_LOADS:
            return where
        return self._kept(ast.cast(where, dtypes.int32))

    def _kept(self, number: LazyOp) -> LazyOp:
        """Where a number, which is computed into memory, is not 0."""
        kept = ast.load(self._probe.keep(number), dtypes.int32, contiguous(number.shape))
        return ast.alu(Ops.CMPNE, kept, ast.const(0, dtypes.int32, kept.shape))

    def _for_known_reason(self, node: LazyOp) -> LazyOp:
        """Where a node is bad because of something bad in memory, a constant that is, or an operation that is known."""
        here, old = self._of[node], self._old
        if node.op is Ops.VIEW:
            return ast.view(old[node.src[0]], here.arg)
        if node.op is Ops.WHERE:
            return ast.alu(Ops.WHERE, self._of[node.src[0]], old[node.src[1]], old[node.src[2]])
        bad = self._probe.bad(here)
        if node.op is Ops.REDUCE:
            inner = ast.reduce(ast.cast(old[node.src[0]], dtypes.int32), Ops.MAX, node.arg[1])
            reasons = [self._kept(inner)]
        else:
            reasons = [old[source] for source in _sources(node)] if node.op in ALU else []
        if node in self._known:
            reasons.append(self._made(node))
        if node.op is Ops.LOAD and node.arg[0] in self._inside:
            store, _ = self._inside[node.arg[0]]
            st = store.arg[1].at(self._values)
            if st.contiguous:
                return ast.view(old[store.src[0]], here.arg[1])
        return ast.alu(Ops.AND, bad, reduce(_or, reasons)) if reasons else bad

    def _made(self, node: LazyOp) -> LazyOp:
        """Where an operation is bad and none of its operands is."""
        probe, made = self._probe, self._probe.bad(self._of[node])
        if node.op is Ops.REDUCE:
            inner = probe.bad(self._of[node.src[0]])
            operands = [self._kept(ast.reduce(ast.cast(inner, dtypes.int32), Ops.MAX, node.arg[1]))]
        else:
            operands = [probe.bad(self._of[source]) for source in _sources(node)]
        return ast.alu(Ops.AND, made, ast.alu(Ops.NOT, reduce(_or, operands))) if operands else made

    def _found(self, node: LazyOp, index: tuple[int, ...], part: Part | None, at: tuple[int, ...]) -> Found:
        """Describes the operation.

        Args:
          node: the operation.
          index: the element of it that is bad.
          part: what it, or the nearest node on the way to it, is in the lazy graph.
          at: the element of that.
        """
        probe, here = self._probe, self._of[node]
        made, operands = self._made(node), ""
        if node.op is not Ops.REDUCE:
            numbers = [s for s in node.src if dtypes.is_float(s.dtype)]
            shown = [f"{s.arg:g}" if s.op is Ops.CONST else probe.shown(self._of[s], index) for s in numbers]
            operands = f" of {' and '.join(shown)}" if shown else ""
        seen = self._parts[node].seen if node in self._parts else None
        if seen is not None and len(seen.views) == 1:  # what is repeated counts once
            strides = seen.at(self._values).views[0].strides
            once = [(0, 1 if stride == 0 else dim) for stride, dim in zip(strides, made.shape, strict=True)]
            made = ast.view(made, contiguous(made.shape).shrink(once))
        total, count, value = int(prod(made.shape)), probe.count(made), probe.shown(here, index)
        shape = tuple(int(sym_eval(dim, dict(self._values))) for dim in (here.shape if part is None else part.shape))
        if part is not None:
            if part.seen is not None:
                at = unflat(int(part.seen.at(self._values).index(at)[0]), shape)
        return Found(node, part, shape, at, count, total, operands, value)
