"""Kernels as text, and back: loop nests, and parts of a kernel.

What a nest consists of stands on lines of its own: buffers by slot, variables, dimensions, loops outermost first,
nodes, stores, and what else was decided::

    buffer float32*64
    buffer float32*64
    dim[64] i0
    for[8] i0 of i0 by 8: loop
    for[8] i0.1 of i0 by 1: vector
    %0 = load[1, i0] float32
    %1 = mul float32 (%0, 2.0)
    store[0, i0] %1 over i0
    stage %0 in i0

A node is ``name = op[arg] dtype (operands)``, as in :mod:`tg_codegen.ir.text`. The condition of a load or of a store,
its last argument, is left out where it always holds. Without any ``for``, each dimension is one serial loop. A line
that begins with ``//`` is a comment.

A kernel in parts has buffers and variables first, then the loops that the parts share, and how much of internal buffers
a block of rows has. Each part is a nest after that, those for the rows that are left over last, and finally the nest of
which the parts are made::

    for[2] i0.block: thread
    block of 4 rows
    scratch 32 of 2
    part 0
    …
    part 2, of the rows that are left over
    …
    whole
    …
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from tg_dtype import dtypes
from tg_lazy import ALU, BufferArg, Ops
from tg_shape import Expr, Variable, sint, upper

from ..ir.text import (
    ParseError,
    parse_constant,
    parse_expression,
    parse_variable,
    print_constant,
    print_variable,
    with_bounds,
)
from ..ir.uop import const
from .kernel import Kernel
from .nest import GATHERED, Axis, Nest, Node, NodeTable, Root, Stage, Store, Update
from .spec import NODES, Kind, NodeArg, NodeOp

_OPS: dict[str, Ops | NodeOp] = {op.name.lower(): op for op in (*NodeOp, *sorted(ALU, key=lambda op: op.name))}


def print_kernel(kernel: Kernel) -> str:
    """A kernel as text: the nest that it is, or the loops that its parts share and the parts."""
    if kernel.single:
        return print_nest(kernel.parts[0])
    shared = {axis.root for axis in kernel.shared}
    nests = (*kernel.every_part, kernel.whole)
    lines = _outside(kernel.whole, set[Variable]().union(*map(_variables, nests)) - shared)
    lines += [f"for[{_expr(a.extent)}] {a.name}: {a.kind.name.lower()}" for a in kernel.shared]
    lines += [f"block of {kernel.block} rows"] if kernel.block > 1 else []
    lines += [f"scratch {size} of {slot}" for slot, size in kernel.scratch.items()]
    for number, part in enumerate(kernel.every_part):
        left = "" if number < len(kernel.parts) else ", of the rows that are left over"
        lines += [f"part {number}{left}", *_inside(part)]
    return "\n".join([*lines, "whole", *_inside(kernel.whole)])


def print_nest(nest: Nest) -> str:
    """A nest as text."""
    return "\n".join([*_outside(nest, _variables(nest)), *_inside(nest)])


def _outside(nest: Nest, variables: Iterable[Variable]) -> list[str]:
    """What a nest is given: buffers and variables."""
    return [
        *(f"buffer {b.dtype.name}*{b.size}{' internal' if b.internal else ''}" for b in nest.buffers),
        *(f"var[{print_variable(v)}]" for v in sorted(variables, key=lambda v: v.name))]


def _inside(nest: Nest) -> list[str]:
    """What a nest is: its dimensions, its loops, what it computes, and what was decided about that."""
    lines = [f"dim[{_expr(r.extent)}] {r.var.name}{' reduced' if r.reduce else ''}" for r in nest.roots.values()]
    lines += [f"for[{_expr(a.extent)}] {a.name} of {a.root.name} by {a.stride}: {a.kind.name.lower()}"
              for a in nest.axes]
    names: dict[Node, str] = {}
    for node in nest.nodes():
        if node.op is NodeOp.CONST:
            names[node] = print_constant(const(node.arg, node.dtype))
            continue
        names[node] = f"%{sum(name.startswith('%') for name in names.values())}"
        operands = f" ({', '.join(names[s] for s in node.src)})" if node.src else ""
        lines.append(f"{names[node]} = {node.op.name.lower()}{_arg(node)} {node.dtype.name}{operands}")
    for s in nest.stores:
        over = f" over {', '.join(v.name for v in s.roots)}" if s.roots else ""
        what = "store" if s.update is None else "update"
        lines.append(f"{what}[{_listed(s.slot, s.index, s.valid)}] {names[s.value]}{_updated(s, names)}{over}")
    lines += [f"stage {names[s.node]}{f' in {s.axis}' if s.axis else ''}{', shared' if s.shared else ''}"
              for s in nest.stages]
    lines += [f"stream {slot}" for slot in sorted(nest.streams)]
    lines += [f"prefetch {names[node]} by {distance}" for node, distance in nest.ahead]
    lines += [f"prefetch indirect {nest.indirect_ahead[1]} of {nest.indirect_ahead[0]}"] if nest.indirect_ahead else []
    lines += [f"partition {name}, copies {copies}" for name, copies in nest.partitions]
    lines += [f"roll {name}" for name in nest.rolled]
    return lines


def _updated(store: Store, names: dict[Node, str]) -> str:
    """How a store updates; empty where it does not."""
    if (update := store.update) is None:
        return ""
    op = "" if update.op is None else f" by {update.op.name.lower()}"
    found = "" if update.found is None else f" found[{_listed(store.slot, *update.found)}]"
    distinct = " distinct" if update.distinct else ""
    return f"{op} at {names[update.place]} of {_expr(update.size)}{distinct}{found}"


def _variables(nest: Nest) -> set[Variable]:
    """The variables that are no dimensions, those in their bounds included."""
    args = [part for node in nest.nodes() for part in node.expressions]
    args += [part for s in nest.stores for access in s.accesses() for part in access]
    args += [s.update.size for s in nest.stores if s.update is not None]
    args += [r.extent for r in nest.roots.values()] + [a.extent for a in nest.axes]
    named = {v for arg in args if isinstance(arg, Expr) for v in arg.variables()} - {*nest.roots, GATHERED}
    return set(with_bounds(named)) - {*nest.roots}


def _expr(expr: sint) -> str:
    return str(expr) if isinstance(expr, int) else expr.render().replace(", ", ",")


def _listed(slot: int, index: sint, valid: sint) -> str:
    return ", ".join([str(slot), _expr(index), *([] if valid == 1 else [_expr(valid)])])


def _arg(node: Node) -> str:
    row = NODES.get(node.op) if isinstance(node.op, NodeOp) else None
    match None if row is None else row.arg:
        case NodeArg.ACCESS:
            return f"[{_listed(*node.arg)}]"
        case NodeArg.PLACE:
            return f"[{', '.join(map(_expr, node.arg))}]"
        case NodeArg.EXPRESSION:
            return f"[{_expr(node.arg)}]"
        case NodeArg.REDUCTION:
            return f"[{', '.join([node.arg[0].name.lower(), *(v.name for v in node.arg[1])])}]"
        case _:
            return ""


@dataclass(slots=True)
class _Reader:
    """What was read so far."""

    buffers: list[BufferArg] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=lambda: {GATHERED.name: GATHERED})
    table: NodeTable = field(default_factory=NodeTable)
    axes: list[Axis] = field(default_factory=list)
    nodes: dict[str, Node] = field(default_factory=dict)
    stores: list[Store] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    streams: set[int] = field(default_factory=set)
    ahead: list[tuple[Node, int]] = field(default_factory=list)
    indirect_ahead: tuple[str, int] | None = None
    partitions: list[tuple[str, int]] = field(default_factory=list)
    rolled: list[str] = field(default_factory=list)

    def read(self, line: str) -> None:
        """Reads one line."""
        forms: tuple[tuple[str, Callable[..., None]], ...] = (
            (r"buffer (\S+)\*(\d+)( internal)?", self.buffer),
            (r"var\[([^\]]+)\]", self.var),
            (r"dim\[([^\]]+)\] ([\w.]+)( reduced)?", self.dim),
            (r"for\[([^\]]+)\] ([\w.]+) of ([\w.]+) by (\d+): (\w+)", self.loop),
            (r"(%\w+) = (\w+)(?:\[([^\]]*)\])? (\w+)(?: \(([^)]*)\))?", self.node),
            (r"store\[([^\]]+)\] (\S+)(?: over (.+))?", self.store),
            (r"update\[([^\]]+)\] (\S+)(?: by (\w+))? at (\S+) of (\S+)( distinct)?"
             r"(?: found\[([^\]]+)\])?(?: over (.+))?", self.update),
            (r"stage (\S+?)(?: in ([\w.]+))?(, shared)?", self.stage),
            (r"stream (\d+)", self.stream),
            (r"prefetch (\S+) by (\d+)", self.prefetch),
            (r"prefetch indirect (\d+) of (\S+)", self.prefetch_indirect),
            (r"partition (\S+), copies (\d+)", self.partition),
            (r"roll (\S+)", self.roll),
        )
        for form, understood in forms:
            found = re.fullmatch(form, line)
            if found is not None:
                understood(*found.groups())
                return
        raise ParseError("not of the form of any line of a nest")

    def buffer(self, dtype: str, size: str, internal: str | None) -> None:
        self.buffers.append(BufferArg(dtypes.from_name(dtype), int(size), internal is not None))

    def var(self, text: str) -> None:
        variable = parse_variable(text, self.variables)
        self.variables[variable.name] = variable

    def dim(self, extent: str, name: str, reduced: str | None) -> None:
        size = self.expr(extent)
        variable = self.variables[name] = Variable(name, 0, size - 1 if upper(size) > 1 else 0)
        self.table.roots[variable] = Root(variable, size, reduced is not None)

    def loop(self, extent: str, name: str, root: str, stride: str, kind: str) -> None:
        self.axes.append(Axis(name, self.root(root), int(stride), self.expr(extent), _kind(kind)))

    def node(self, name: str, op: str, arg: str | None, dtype: str, operands: str | None) -> None:
        if op not in _OPS:
            raise ParseError(f"{op!r} is no op")
        src = tuple(self.value(text) for text in operands.split(", ")) if operands else ()
        self.nodes[name] = self.table.make(_OPS[op], dtypes.from_name(dtype), src, self.arg(_OPS[op], arg or ""))

    def arg(self, op: Ops | NodeOp, text: str) -> object:
        parts = text.split(", ")
        match NODES[op].arg if isinstance(op, NodeOp) else None:
            case NodeArg.ACCESS:
                return self.place(parts)
            case NodeArg.PLACE:
                slot, *rest = parts
                return (self.slot(slot), *map(self.expr, rest))
            case NodeArg.EXPRESSION:
                return self.expr(text)
            case NodeArg.REDUCTION:
                return Ops[parts[0].upper()], tuple(map(self.root, parts[1:]))
            case _:
                return None

    def store(self, arg: str, value: str, over: str | None) -> None:
        slot, index, valid = self.place(arg.split(", "))
        roots = tuple(map(self.root, over.split(", "))) if over else ()
        self.stores.append(Store(slot, index, valid, self.value(value), roots))

    def update(
        self, arg: str, value: str, op: str | None, place: str, size: str, distinct: str | None, found: str | None,
        over: str | None,
    ) -> None:  # fmt: skip
        slot, index, valid = self.place(arg.split(", "))
        roots = tuple(map(self.root, over.split(", "))) if over else ()
        kept = None if found is None else self.place(found.split(", "))[1:]
        by = None if op is None else Ops[op.upper()]
        update = Update(self.value(place), self.expr(size), by, kept, distinct is not None)
        self.stores.append(Store(slot, index, valid, self.value(value), roots, update))

    def stage(self, node: str, axis: str | None, shared: str | None) -> None:
        self.stages.append(Stage(self.value(node), axis, shared is not None))

    def stream(self, slot: str) -> None:
        self.streams.add(self.slot(slot))

    def prefetch(self, node: str, distance: str) -> None:
        self.ahead.append((self.value(node), int(distance)))

    def prefetch_indirect(self, distance: str, axis: str) -> None:
        self.indirect_ahead = axis, int(distance)

    def partition(self, axis: str, copies: str) -> None:
        self.partitions.append((axis, int(copies)))

    def roll(self, axis: str) -> None:
        self.rolled.append(axis)

    def place(self, parts: list[str]) -> tuple[int, sint, sint]:
        if len(parts) not in (2, 3):
            raise ParseError("a slot, an index and perhaps a condition belong here")
        return self.slot(parts[0]), self.expr(parts[1]), self.expr(parts[2]) if len(parts) > 2 else 1

    def slot(self, text: str) -> int:
        if not text.isdigit() or int(text) >= len(self.buffers):
            raise ParseError(f"there is no buffer {text}")
        return int(text)

    def root(self, name: str) -> Variable:
        variable = self.variables.get(name)
        if variable is None or variable not in self.table.roots:
            raise ParseError(f"{name!r} is no dimension")
        return variable

    def expr(self, text: str) -> sint:
        return parse_expression(text, self.variables)

    def value(self, text: str) -> Node:
        if not text.startswith("%"):
            constant = parse_constant(text)
            return self.table.make(NodeOp.CONST, constant.dtype, (), constant.arg)
        if text not in self.nodes:
            raise ParseError(f"{text} is not defined above")
        return self.nodes[text]

    def nest(self) -> Nest:
        roots = self.table.roots
        axes = self.axes or [
            Axis(r.var.name, r.var, 1, r.extent, Kind.REDUCE if r.reduce else Kind.LOOP) for r in roots.values()]
        return Nest(
            tuple(self.stores), tuple(self.buffers), roots, tuple(axes), tuple(self.stages),
            streams=frozenset(self.streams), ahead=tuple(self.ahead), indirect_ahead=self.indirect_ahead,
            partitions=tuple(self.partitions), rolled=tuple(self.rolled))


def _kind(text: str) -> Kind:
    if text.upper() not in Kind.__members__:
        raise ParseError(f"{text!r} is no kind of loop")
    return Kind[text.upper()]


@dataclass(slots=True)
class _KernelReader:
    """What was read so far of a kernel: ``here`` is the nest that the next line belongs to."""

    given: _Reader = field(default_factory=_Reader)
    shared: list[Axis] = field(default_factory=list)
    block: int = 1
    scratch: dict[int, int] = field(default_factory=dict)
    parts: list[_Reader] = field(default_factory=list)
    last: list[_Reader] = field(default_factory=list)
    whole: _Reader | None = None
    here: _Reader = field(init=False)

    def __post_init__(self) -> None:
        self.here = self.given

    def read(self, line: str) -> None:
        """Reads one line."""
        if found := re.fullmatch(r"part (\d+)(, of the rows that are left over)?", line):
            parts = self.last if found[2] else self.parts
            if int(found[1]) != len(self.parts) + len(self.last) or (self.last and not found[2]):
                raise ParseError("parts stand in their order")
            parts.append(self.begun())
        elif line == "whole":
            self.whole = self.begun()
        elif self.here is not self.given:
            self.here.read(line)
        elif found := re.fullmatch(r"for\[(\d+)\] ([\w.]+): (\w+)", line):
            extent, name, kind = int(found[1]), found[2], _kind(found[3])
            variable = self.given.variables[name] = Variable(name, 0, extent - 1)
            self.shared.append(Axis(name, variable, 1, extent, kind))
        elif found := re.fullmatch(r"block of (\d+) rows", line):
            self.block = int(found[1])
        elif found := re.fullmatch(r"scratch (\d+) of (\d+)", line):
            self.scratch[self.given.slot(found[2])] = int(found[1])
        else:
            self.given.read(line)

    def begun(self) -> _Reader:
        """A nest of the kernel, of which nothing was read yet."""
        if self.whole is not None:
            raise ParseError("nothing comes after the whole")
        self.here = _Reader(self.given.buffers, dict(self.given.variables))
        return self.here

    def kernel(self) -> Kernel:
        if self.here is self.given:
            nest = self.given.nest()
            return Kernel(nest, (nest,))
        if self.whole is None or not self.parts:
            raise ParseError("a kernel in parts has at least one, and the whole of which they are made")
        parts, last = (tuple(reader.nest() for reader in readers) for readers in (self.parts, self.last))
        return Kernel(self.whole.nest(), parts, tuple(self.shared), self.block, last, self.scratch)


def parse_nest(text: str) -> Nest:
    """A nest out of its text.

    >>> nest = parse_nest("buffer int32*8\\n dim[8] i0\\n %0 = index[i0] int32\\n store[0, i0] %0 over i0")
    >>> print(print_nest(nest))
    buffer int32*8
    dim[8] i0
    for[8] i0 of i0 by 1: loop
    %0 = index[i0] int32
    store[0, i0] %0 over i0

    Raises:
      ParseError: if a line is not understood; the message has the line.
    """
    reader = _Reader()
    _read(text, reader.read)
    return reader.nest()


def parse_kernel(text: str) -> Kernel:
    """A kernel out of its text: of one nest, which then is the whole as well, or in parts.

    Raises:
      ParseError: if a line is not understood; the message has the line. Or lines of a kernel in parts are missing.
    """
    reader = _KernelReader()
    _read(text, reader.read)
    return reader.kernel()


def _read(text: str, understood: Callable[[str], None]) -> None:
    for number, line in _statements(text):
        try:
            understood(line)
        except ValueError as error:
            raise ParseError(f"line {number}: {line!r}: {error}") from None


def _statements(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.strip().startswith("//"):
            yield number, line.strip()
