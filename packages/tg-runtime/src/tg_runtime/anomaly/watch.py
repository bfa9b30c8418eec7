"""Looks at what a kernel wrote; where that is no number, names the operation that made it.

A kernel fuses many operations, and not all that it computes comes out: a ``where`` drops one of two branches. So the
outputs are looked at first. If a bad element is found there, the way back from it is walked in the kernel's AST: from
an operation to an operand that is bad at the same place, until one is bad of operands that are not. What the walk asks
for is computed on the kernel's own device, from the kernel's own inputs, by kernels made for the purpose.

*Bad* is NaN, or with ``ANOMALY=2`` an infinity too.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence

from tg_dtype import dtypes
from tg_lazy import ANOMALY, BufferArg, LazyOp, Ops, ast
from tg_lazy.graph.origin import UNKNOWN, Told
from tg_lazy.scheduler.anomaly import Parts
from tg_lazy.trackers import contiguous
from tg_shape import prod

from ..errors import AnomalyError
from ..memory.buffer import Buffer
from ..steps.runner import Vars
from .culprit import Found, Walk
from .probe import MEMORY, Probe, unflat

_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "neg": "-", "radd": "+", "rsub": "-", "rmul": "*", "rtruediv": "/", "rpow": "**",
    "iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=",
}  # fmt: skip


def _unknown(bufs: Sequence[Buffer]) -> LazyOp:
    """What stands for the AST of a caller's function on whole buffers: its result, of its operands."""
    arguments = tuple(BufferArg(b.dtype.base, b.size) for b in bufs)
    loads = tuple(ast.load(n, a.dtype, contiguous((a.size,))) for n, a in enumerate(arguments))
    result = LazyOp(Ops.CUSTOM, loads[0].dtype, loads[0].shape, loads[1:])
    return ast.sink((ast.store(0, contiguous(result.shape), result),), arguments)


class Watch:
    """Keeps what a kernel reads and overwrites, until it has run and its results were looked at.

    Args:
      name: its name.
      kernel: its AST; None for a caller's function, of which only the memory is known.
      bufs: its buffers.
      values: the values of the variables.
      origin: the line that it comes from; :class:`~tg_lazy.scheduler.anomaly.Parts` where more is known.
    """

    def __init__(self, name: str, kernel: LazyOp | None, bufs: Sequence[Buffer], values: Vars, origin: object) -> None:
        if kernel is None:
            kernel = _unknown(bufs)
        self._origin, self._values = origin, values
        self._kernel, self._name, self._bufs = kernel, name, bufs
        self._infinite = ANOMALY.value > 1
        nodes = kernel.toposort()
        written = [self._bufs[s.arg[0]] for s in kernel.src if not kernel.arg[s.arg[0]].internal]
        read = {n.arg[0] for n in nodes if n.op in MEMORY and not kernel.arg[n.arg[0]].internal}
        self._kept = {
            slot: self._bufs[slot].tobytes() for slot in read
            if self._bufs[slot].is_allocated and any(_overlap(self._bufs[slot], out) for out in written)
        }  # fmt: skip

    def check(self) -> None:
        """Looks at what the kernel wrote.

        Raises:
          AnomalyError: if there is a bad element that an operation made of operands that are not.
        """
        for store in self._kernel.src:
            slot, st = store.arg
            dtype = store.src[0].dtype
            if self._kernel.arg[slot].internal or not dtypes.is_float(dtype):
                continue
            buffer, st = self._bufs[slot], st.at(self._values)
            if prod(st.shape) == 0:
                continue
            probe = Probe([buffer], [self._kernel.arg[slot]], buffer.device, self._infinite)
            written = ast.load(0, dtype, st)
            position = probe.first(probe.bad(written))
            if position is None:
                continue
            explain = self._function if store.src[0].op is Ops.CUSTOM else self._explained
            found = explain(store, position)
            if found is not None:
                raise self._error(found, probe.shown(written, unflat(position, st.shape)))

    def _function(self, store: LazyOp, position: int) -> Found | None:
        """A caller's function, if it made a bad element of operands without any."""
        result = store.src[0]
        probe = Probe(self._bufs, self._kernel.arg, self._bufs[0].device, self._infinite)
        operands = [probe.bad(load) for load in result.src if dtypes.is_float(load.dtype)]
        if any(probe.first(bad) is not None for bad in operands):
            return None
        written = probe.bad(ast.load(0, result.dtype, contiguous(result.shape)))
        index = unflat(position, result.shape)
        shape = tuple(int(dim) for dim in result.shape)
        return Found(result, None, shape, index, probe.count(written), int(prod(shape)), "")

    def _explained(self, store: LazyOp, position: int) -> Found | None:
        """The operation that made a bad element of an output, if one did.

        Args:
          store: the output.
          position: which element of the stored value is the first bad one.
        """
        bufs = [
            Buffer(b.device, b.size, b.dtype).copyin(memoryview(self._kept[n])) if n in self._kept else b
            for n, b in enumerate(self._bufs)
        ]
        parts = self._origin.parts if isinstance(self._origin, Parts) else {}
        walk = Walk(self._kernel, self._values, bufs, parts, self._infinite)
        return walk.earliest(store, position)

    def _error(self, found: Found, written: str) -> AnomalyError:
        node, part = found.node, found.part
        origin = part.origin if part is not None else self._origin
        line = (origin[0], origin[1]) if isinstance(origin, tuple) else UNKNOWN
        method, gradient_of = (origin.method, origin.gradient_of) if isinstance(origin, Told) else ("", None)
        op = node.arg[0].name if node.op is Ops.REDUCE else node.op.name
        what = f"the reduction {op}" if node.op is Ops.REDUCE else op if node.op is not Ops.CUSTOM else self._name
        where = f"shape {found.shape}, {node.dtype.name} on {self._bufs[0].device}"
        number = f"{found.bad} of {found.total} elements, the first at {found.at}"
        says = [f"{what}{found.operands} made {found.made or written}: {number}, {where}"]
        says.append(f"  {_at(line)}{f', in {_spelled(method)}' if method else ''}{_text(line)}")
        if gradient_of is not None:
            function, applied = gradient_of
            says.append(f"  as the gradient of {function}, which was applied at {_at(applied)}{_text(applied)}")
        if not isinstance(self._origin, Parts) and node.op is not Ops.CUSTOM:
            says.append("  (the line is that of the kernel's result: it was made before anomaly mode was on)")
        return AnomalyError("\n".join(says), op, method, line, gradient_of, found.shape, found.at, found.bad)


def _at(line: tuple[str, int]) -> str:
    return f"{line[0]}:{line[1]}"


def _text(line: tuple[str, int]) -> str:
    text = linecache.getline(*line).strip()
    return f": {text}" if text else ""


def _spelled(method: str) -> str:
    owner, _, name = method.partition(".")
    symbol = _SYMBOLS.get(name.strip("_")) if name.startswith("__") else None
    return f"{owner} {symbol}" if symbol else method


def _overlap(one: Buffer, other: Buffer) -> bool:
    """Whether two buffers share bytes."""
    if one.base is not other.base:
        return False
    starts = [0 if b.base is b else b.offset for b in (one, other)]
    return starts[0] < starts[1] + other.nbytes and starts[1] < starts[0] + one.nbytes
