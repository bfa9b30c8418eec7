"""Linear kernels without vectors wider than a language has: each becomes several, taken from its lanes in order."""

from __future__ import annotations

from collections.abc import Sequence

from tg_lazy import Ops

from ..ir.statements import Statements
from ..ir.uop import UOp, UOps, const, is_alu, vectorize


def narrow(uops: Sequence[UOp], widest: int) -> list[UOp]:
    """The kernel with parts of ``widest`` lanes, and one of what is left over, for each vector that is wider.

    Registers become several, numbered ``(number, part)``; loads and stores are of consecutive parts. A kernel without
    such vectors stays as it is.

    >>> from tg_codegen.ir.builder import LinearBuilder
    >>> from tg_dtype import dtypes
    >>> k = LinearBuilder()
    >>> out, a = k.param(0, dtypes.int32), k.param(1, dtypes.int32)
    >>> _ = k.store(out, k.const(0), k.load(a, k.const(0), 6))
    >>> [u.src[2].dtype.name for u in narrow(k.uops, 4) if u.op.name == "STORE"]
    ['int32x4', 'int32x2']
    """
    if all(u.dtype.count <= widest for u in uops):
        return list(uops)
    return _Narrower(widest).run(uops)


class _Narrower:
    def __init__(self, widest: int) -> None:
        self.widest = widest
        self.parts: dict[UOp, list[UOp]] = {}
        self.statements = Statements()

    def run(self, uops: Sequence[UOp]) -> list[UOp]:
        for u in uops:
            self.parts[u] = self.split(u)
        return self.statements.uops

    def add(self, u: UOp) -> UOp:
        return self.statements.add(u)

    def widths(self, count: int) -> list[int]:
        """The lanes of each part of a vector."""
        whole, rest = divmod(count, self.widest)
        return [self.widest] * whole + ([rest] if rest else [])

    def of(self, u: UOp) -> list[UOp]:
        """The parts of an operand."""
        found = self.parts.get(u)
        if found is None:  # a constant that no statement makes
            found = [const(u.arg, u.dtype.scalar().vec(w) if w > 1 else u.dtype.scalar())
                     for w in self.widths(u.dtype.count)] if u.dtype.count > 1 else [u]  # fmt: skip
        return found

    def part(self, u: UOp, number: int) -> UOp:
        """A part of an operand; of a scalar, itself."""
        return self.of(u)[number] if u.dtype.count > 1 else self.of(u)[0]

    def lane(self, u: UOp, number: int) -> UOp:
        """One lane of an operand."""
        part = self.of(u)[number // self.widest]
        return part if part.dtype.count == 1 else self.add(part.gep(number % self.widest))

    def split(self, u: UOp) -> list[UOp]:
        count = u.dtype.count
        wide = count > self.widest or any(s.dtype.count > self.widest for s in u.src)
        if not wide:
            return [self.add(u.replace(tuple(self.of(s)[0] for s in u.src)))]
        starts = [i * self.widest for i in range(len(self.widths(count)))]
        scalar = u.dtype.scalar() if count > 1 else u.dtype
        dtypes = [scalar.vec(w) if w > 1 else scalar for w in self.widths(count)]
        match u.op:
            case UOps.CONST:
                return [self.add(const(u.arg, dtype)) for dtype in dtypes]
            case UOps.BROADCAST:
                return [self.add(self.of(u.src[0])[0].broadcast(dtype.count)) for dtype in dtypes]
            case UOps.VECTORIZE:
                return [self.joined([self.of(s)[0] for s in u.src[at : at + dtype.count]])
                        for at, dtype in zip(starts, dtypes, strict=True)]  # fmt: skip
            case UOps.GEP:
                return [self.taken(u, u.arg[at : at + dtype.count]) for at, dtype in zip(starts, dtypes, strict=True)]
            case UOps.STORE:
                return self.store(u)
            case UOps.ASSIGN:
                register, values = self.of(u.src[0]), self.of(u.src[1])
                # Parts change together: one that takes another's value must have it before that changes.
                values = [self.add(UOp(UOps.READ, v.dtype, (v,))) if v.op is UOps.ACC else v for v in values]
                return [self.add(UOp(u.op, u.dtype, pair)) for pair in zip(register, values, strict=True)]
        made = []
        for i, dtype in enumerate(dtypes):
            src = tuple(self.part(s, i) for s in u.src)
            if u.op is UOps.LOAD:
                made.append(self.add(UOp(UOps.LOAD, dtype, (src[0], self.at(src[1], starts[i]), *src[2:]))))
            elif u.op is UOps.ACC:
                made.append(self.add(UOp(UOps.ACC, dtype, src, (u.arg, i))))
            elif is_alu(u) or u.op is UOps.READ:
                made.append(self.add(UOp(u.op, dtype, src, u.arg)))
            else:
                raise ValueError(f"narrow: {u!r} has no parts")
        return made

    def joined(self, lanes: Sequence[UOp]) -> UOp:
        """A vector of scalars, a single one as it is."""
        return self.add(vectorize(*lanes))

    def taken(self, u: UOp, lanes: Sequence[int]) -> UOp:
        """Lanes of one or two vectors, by one node where they are all in one part."""
        count = u.src[0].dtype.count
        places = [divmod(lane, count) for lane in lanes]
        parts = {(source, lane // self.widest) for source, lane in places}
        if len(parts) == 1:
            source, number = parts.pop()
            part = self.of(u.src[source])[number]
            chosen = [lane % self.widest for _, lane in places]
            if chosen == list(range(part.dtype.count)):
                return part
            return self.add(part.gep(*chosen))
        return self.joined([self.lane(u.src[source], lane) for source, lane in places])

    def at(self, index: UOp, lanes: int) -> UOp:
        """An index that many elements further."""
        if lanes == 0:
            return index
        if index.is_const:
            return self.add(const(index.arg + lanes, index.dtype))
        return self.add(index.alu(Ops.ADD, self.add(const(lanes, index.dtype))))

    def store(self, u: UOp) -> list[UOp]:
        pointer, index, value, *gate = u.src
        return [
            self.add(UOp(UOps.STORE, u.dtype, (
                self.of(pointer)[0], self.at(self.of(index)[0], i * self.widest), part,
                *(self.part(g, i) for g in gate),
            )))
            for i, part in enumerate(self.of(value))
        ]  # fmt: skip
