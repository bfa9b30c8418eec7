"""Handlers of arithmetic of lanes: the plain form in line, every modified one by way of a routine that all share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....engine import I32, I64, MASK, Emitter, InstructionSet, Operand, Type, Value, either
from ....engine.emitter import STRIP, Where
from ....engine.handlers import Semantics, VectorHandler, symbol
from ...architecture import Architecture
from ...isa import table
from ...modifiers import SOURCES, Kind
from ...registers import FLOATS


class Alu(VectorHandler):
    """An instruction of lanes whose operands may have modifiers.

    Args:
      name: unique in its instruction set.
      semantics: of the plain instruction.
      results: kinds of what it writes.
      sources: kinds of what it reads.
      floats: whether the denormal and rounding modes apply.
      keeps: whether a result of 16 bits leaves the upper half of its register as it is.
      fixed: whether it rounds as it says, whatever the mode.
    """

    def __init__(
        self, name: str, semantics: Semantics, results: Sequence[Kind], sources: Sequence[Kind], *,
        floats: bool, keeps: bool, fixed: bool = False,
    ) -> None:  # fmt: skip
        self.result_kinds, self.source_kinds = tuple(results), tuple(sources)
        self.floats, self.keeps, self.fixed = floats, keeps, fixed
        super().__init__(
            name, semantics,
            [MASK if k is Kind.MASK else Operand(Where.VECTOR, k.type, keeps and k.is_half) for k in results],
            [MASK if k is Kind.MASK else either(k.type) for k in sources],
        )  # fmt: skip

    def meta(self) -> int:
        """What the routine must know: counts, kinds, and which mode applies; see ``modified``."""
        kinds = [self.result_kinds[0], *self.source_kinds[:3]]
        kinds += [Kind.B32] * (4 - len(kinds))
        found = len(self.result_kinds) | min(len(self.source_kinds), 3) << 2
        for position, kind in enumerate(kinds):
            found |= int(kind) << 4 + 4 * position
        double = self.result_kinds[0] in (Kind.F16, Kind.F64, Kind.PACKED_F16) or Kind.F64 in self.source_kinds
        twice = Kind.MIXED in self.source_kinds and double
        rounding = 0 if not self.floats or self.fixed else 3 if twice else 2 if double else 1
        return found | rounding << 20 | self.keeps << 22 | self.floats << 23

    def emit(self, e: Emitter) -> None:
        """Writes the choice between the plain instruction and the routine."""
        odd = e.slot(SOURCES)
        if self.floats:
            odd = odd | ((mode(e) & 0xFF) ^ FLOATS)
        test = e.compare("ne", odd, 0)
        e.do(f"br i1 {test.text}, label %modified, label %plain")
        e.label("modified")
        call = f'call ptr @modified(ptr %w, ptr %r, ptr @"{symbol(self.name)}", i64 {self.meta()})'
        e.do(f"ret ptr {e.emit(I64, call).text}")
        e.label("plain")
        super().emit(e)


def mode(e: Emitter) -> Value:
    """The MODE register."""
    return e.field(e.layout.scalar("mode"), I32)


def lanes_of(e: Emitter) -> Value:
    """The number of each lane of the strip."""
    kind = Type("i", 32, STRIP)
    e.declarations[f"declare {kind} @llvm.stepvector.{kind.mangled}()"] = None
    steps = e.emit(kind, f"call {kind} @llvm.stepvector.{kind.mangled}()")
    return steps + e.value(kind, e.convert("trunc", e.lane, I32))


class Lanes:
    """Adds the instructions of lanes of an architecture.

    Args:
      to: the instruction set.
      arch: only instructions that its table has are added.
    """

    def __init__(self, to: InstructionSet, arch: Architecture) -> None:
        self.to, self.arch = to, arch
        self.there = {half.replace("v_dual_", "v_") for row in table(arch.name) for half in row.name.split(" :: ")}

    def op(
        self, names: str | Iterable[str], semantics: Semantics, results: Sequence[Kind], sources: Sequence[Kind], *,
        floats: bool | None = None, keeps: bool | None = None, fixed: bool = False,
    ) -> None:  # fmt: skip
        """Adds an instruction under those of its names that the architecture has.

        Args:
          names: what the generations call it, separated by spaces; after a dot follows a form of it.
          semantics: what a lane does.
          results: kinds of what it writes.
          sources: kinds of what it reads.
          floats: whether modes of floats apply; by default if a result or source is a float.
          keeps: whether the upper half stays; by default from RDNA on (LLVM, ``zeroesHigh16BitsOfDest``).
          fixed: whether it rounds as it says, whatever the mode.
        """
        if floats is None:
            floats = any(kind.is_float for kind in (*results, *sources))
        if keeps is None:
            keeps = self.arch.generation >= 10
        for name in names.split() if isinstance(names, str) else names:
            if name.partition(".")[0] in self.there:
                self.to.add(Alu(name, semantics, results, sources, floats=floats, keeps=keeps, fixed=fixed))
