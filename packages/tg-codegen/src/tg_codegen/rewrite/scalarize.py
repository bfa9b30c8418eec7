"""Linear kernels without vectors, for languages that gain nothing from them: every lane becomes a scalar of its own."""

from __future__ import annotations

from collections.abc import Sequence

from tg_lazy import Ops

from ..ir.statements import Statements
from ..ir.uop import UOp, UOps, const, is_alu


def scalarize(uops: Sequence[UOp]) -> list[UOp]:
    """The kernel with one node for each lane of each vector, in the same order.

    A register of several lanes becomes several, numbered ``(number, lane)``; so do loads and stores, at consecutive
    indices. A kernel without vectors stays as it is.

    >>> from tg_codegen.ir.builder import LinearBuilder
    >>> from tg_dtype import dtypes
    >>> k = LinearBuilder()
    >>> out, a = k.param(0, dtypes.int32), k.param(1, dtypes.int32)
    >>> _ = k.store(out, k.const(0), k.load(a, k.const(0), 2))
    >>> [u.op.name for u in scalarize(k.uops)].count("STORE")
    2
    """
    if all(u.dtype.count == 1 for u in uops):
        return list(uops)
    return _Scalarizer().run(uops)


class _Scalarizer:
    def __init__(self) -> None:
        self.lanes: dict[UOp, list[UOp]] = {}
        self.statements = Statements()

    def run(self, uops: Sequence[UOp]) -> list[UOp]:
        for u in uops:
            self.lanes[u] = self.split(u)
        return self.statements.uops

    def add(self, u: UOp) -> UOp:
        return self.statements.add(u)

    def lane(self, u: UOp, number: int) -> UOp:
        """One lane of an operand; of a scalar, itself."""
        found = self.lanes.get(u)
        if found is None:  # a constant that no statement makes
            return const(u.arg, u.dtype.scalar())
        return found[number] if len(found) > 1 else found[0]

    def split(self, u: UOp) -> list[UOp]:
        count = u.dtype.count
        scalar = u.dtype.scalar() if count > 1 else u.dtype
        match u.op:
            case UOps.CONST:
                return [self.add(const(u.arg, scalar))] * count
            case UOps.VECTORIZE:
                return [self.lane(s, 0) for s in u.src]
            case UOps.BROADCAST:
                return [self.lane(u.src[0], 0)] * count
            case UOps.GEP:
                width = u.src[0].dtype.count
                return [self.lane(u.src[at // width], at % width) for at in u.arg]
            case UOps.STORE:
                return self.store(u)
            case UOps.PREFETCH:
                return []
            case UOps.ASSIGN:
                register, value = u.src
                lanes = range(register.dtype.count)
                values = [self.lane(value, i) for i in lanes]
                if len(lanes) > 1:
                    # Lanes change together: one that takes another's value must have it before that changes.
                    values = [self.add(UOp(UOps.READ, v.dtype, (v,))) if v.op is UOps.ACC else v for v in values]
                return [self.add(UOp(UOps.ASSIGN, u.dtype, (self.lane(register, i), values[i]))) for i in lanes]
        if count == 1 and all(s.dtype.count == 1 for s in u.src) and len(set(map(self.width, u.src))) <= 1:
            return [self.add(u.replace(tuple(self.lane(s, 0) for s in u.src)))]
        made = []
        for i in range(count):
            src = tuple(self.lane(s, i) for s in u.src)
            if u.op is UOps.LOAD:
                made.append(self.add(UOp(UOps.LOAD, scalar, (src[0], self.at(src[1], i), *src[2:]))))
            elif u.op is UOps.ACC:
                made.append(self.add(UOp(UOps.ACC, scalar, src, (u.arg, i) if count > 1 else u.arg)))
            elif is_alu(u) or u.op is UOps.READ or count == 1:
                made.append(self.add(UOp(u.op, scalar, src, u.arg)))
            else:
                raise ValueError(f"scalarize: {u!r} has no lanes of its own")
        return made

    def width(self, u: UOp) -> int:
        return len(self.lanes.get(u, (u,)))

    def at(self, index: UOp, lane: int) -> UOp:
        """The index of a lane."""
        if lane == 0:
            return index
        if index.is_const:
            return self.add(const(index.arg + lane, index.dtype))
        return self.add(index.alu(Ops.ADD, self.add(const(lane, index.dtype))))

    def store(self, u: UOp) -> list[UOp]:
        pointer, index, value, *gate = u.src
        return [
            self.add(UOp(UOps.STORE, u.dtype, (
                self.lane(pointer, 0), self.at(self.lane(index, 0), i), self.lane(value, i),
                *(self.lane(g, i) for g in gate),
            )))
            for i in range(value.dtype.count)
        ]  # fmt: skip
