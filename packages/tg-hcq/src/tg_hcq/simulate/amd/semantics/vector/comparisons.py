"""Comparisons of lanes, into a mask or into EXEC.

Source: AMD, "RDNA3 Instruction Set Architecture", 16.11 "VOPC Instructions"; of gfx9, which writes both: "AMD Instinct
MI300 Instruction Set Architecture", 12.9.
"""

from __future__ import annotations

from ....engine import Emitter, Value
from ....engine.handlers import Semantics
from ...modifiers import Kind
from .alu import Lanes

_INTEGERS = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
_FLOATS = {"lt": "olt", "eq": "oeq", "le": "ole", "gt": "ogt", "lg": "one", "ge": "oge", "o": "ord", "u": "uno",
           "nge": "ult", "nlg": "ueq", "ngt": "ule", "nle": "ugt", "neq": "une", "nlt": "uge"}  # fmt: skip
_FORMATS = {Kind.F16: (16, 5), Kind.F32: (32, 8), Kind.F64: (64, 11)}


def add(to: Lanes) -> None:
    """Adds the handlers of this subject."""
    for kind in (Kind.B16, Kind.B32, Kind.B64):
        for sign, prefix in (("i", "s"), ("u", "u")):
            name = f"{sign}{kind.type.bits}"
            for how, test in _INTEGERS.items():
                exact = test if how in ("eq", "ne") else prefix + test
                _both(to, f"{how}_{name}", _comparison(exact), [kind, kind])
            for how, always in (("f", 0), ("t", 1)):
                _both(to, f"{how}_{name}", _constant(always), [kind, kind])
    for kind, (bits, exponent) in _FORMATS.items():
        for how, test in _FLOATS.items():
            _both(to, f"{how}_f{bits}", _comparison(test), [kind, kind])
        for how, always in (("f", 0), ("t", 1), ("tru", 1)):
            _both(to, f"{how}_f{bits}", _constant(always), [kind, kind])
        wanted = Kind.B16 if kind is Kind.F16 else Kind.B32
        _both(to, f"class_f{bits}", _class(bits, exponent), [kind, wanted], floats=False)


def _both(to: Lanes, name: str, semantics: Semantics, sources: list[Kind], floats: bool | None = None) -> None:
    to.op(f"v_cmp_{name}", semantics, [Kind.MASK], sources, floats=floats)
    if to.arch.generation >= 10:
        to.op(f"v_cmpx_{name}", semantics, [Kind.MASK], sources, floats=floats)
        return

    def twice(e: Emitter, *values: Value) -> tuple[Value, Value]:
        found = semantics(e, *values)
        assert isinstance(found, Value)
        return found, found

    to.op(f"v_cmpx_{name}", twice, [Kind.MASK, Kind.MASK], sources, floats=floats)


def _comparison(test: str) -> Semantics:
    return lambda e, x, y: e.compare(test, x, y)


def _constant(always: int) -> Semantics:
    return lambda e, x, y: e.compare("eq" if always else "ne", e.value(y.type.integer, 0), 0)


def _class(bits: int, exponent: int) -> Semantics:
    """Whether the number is in one of the classes that the second operand names with ten bits."""

    def semantics(e: Emitter, x: Value, wanted: Value) -> Value:
        x = e.bits(x, x.type.integer)
        fraction = bits - 1 - exponent
        infinity, quiet = ((1 << exponent) - 1) << fraction, 1 << fraction - 1
        magnitude = x & (1 << bits - 1) - 1
        negative = e.compare("slt", x, 0)
        kind = wanted.type

        def number(minus: int, plus: int) -> Value:
            return e.select(negative, e.value(kind, minus), plus)

        found = e.select(e.compare("eq", magnitude, 0), number(5, 6), number(4, 7))
        found = e.select(e.compare("uge", magnitude, 1 << fraction), number(3, 8), found)
        found = e.select(e.compare("eq", magnitude, infinity), number(2, 9), found)
        nan = e.select(e.compare("ne", x & quiet, 0), e.value(kind, 1), 0)
        found = e.select(e.compare("ugt", magnitude, infinity), nan, found)
        return e.compare("ne", e.binary("lshr", wanted, found) & 1, 0)

    return semantics
