"""Conversions with a scale: which bytes of which registers, and signs."""

from __future__ import annotations

from ...engine import Undecodable
from ..isa.text import ABSOLUTE, NEGATE, SELECT, SELECT_DESTINATION
from ..scaled import BITS, RESULT, SIGNS, SOURCE, Form, form
from .placing import Placed, Placing
from .rows import register, row_of


def conversion(p: Placing) -> Placed:
    """The handler of a conversion and its operands: the result, sources, the scale."""
    name, of = p.found.name, form(p.found.name)
    if of is None:
        raise Undecodable("not executed yet")
    handler, target = p.handler(name), row_of(p, "vdst")
    if of.wide:
        sources = [row_of(p, f"src{i}") for i in range(1 + of.alternate)]
        nbytes = p.layout.row_bytes
        for source in sources:
            if target < source + of.source_words * nbytes and source < target + of.result_words * nbytes:
                raise Undecodable("a result that takes registers of its sources is not known")
        return Placed(handler.name, [target, *sources, _any(p, 1 + of.alternate)])
    how = _selected(p, of)
    for i in range(2) if of.alternate else ():
        how |= _bits(p, i, NEGATE | ABSOLUTE) << SIGNS + 2 * i
    operands = [_any(p, i, pair=of.source in ("f16", "bf16") and i == 0) for i in range(2 + of.alternate)]
    return Placed(handler.name, [target, *operands], how)


def _selected(p: Placing, of: Form) -> int:
    """OPSEL: which part of the source is read, or which one of the result is written."""
    first, second = (bool(_bits(p, i, SELECT)) for i in (0, 1))
    last = bool(_bits(p, 0, SELECT_DESTINATION))
    if of.widens:
        step = of.count * BITS[of.source]
        if second and step == 16:
            raise Undecodable("there is no such half of its source")
        upper = of.count == 1 and of.result == "f16"
        if last and not upper:
            raise Undecodable("the high half of its result is not executed yet")
        return step * (first | second << 1) << SOURCE | 16 * last << RESULT
    if first or second:
        raise Undecodable("halves of its sources are not executed yet")
    number = last << 1 | bool(_bits(p, 2, SELECT)) if of.result == "fp4" else last
    return of.count * BITS[of.result] * number << RESULT


def _bits(p: Placing, index: int, wanted: int) -> int:
    """Bits of a source's modifiers, which are taken out of them."""
    field = f"src{index}_modifiers"
    value = p.fields.get(field, 0)
    if field in p.fields:
        p.fields[field] = value & ~wanted
    return value & wanted


def _any(p: Placing, index: int, pair: bool = False) -> int:
    """A vector register, a scalar one or a constant."""
    field = f"src{index}"
    found, number = register(p, field), p.fields.pop(field)
    if found is not None:
        return found.offset
    if pair and number >= 128:
        raise Undecodable("constants of pairs are not executed yet")
    return p.places.scalar(number, "f", 32)
