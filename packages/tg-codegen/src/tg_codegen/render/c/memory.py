"""Loads and stores in a dialect of C: whole vectors, lane by lane, or those lanes whose gate is open."""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import DType, dtypes

from ...ir.facts import element
from ...ir.uop import UOp, UOps
from ..spelling import bare, short, stored
from .conversion import CStyleConversion
from .terms import CStyleTerms


class CStyleAccess:
    """What one kernel does with memory.

    Args:
      terms: its words.
      conversion: its casts, by which bools come from memory and go there.

    Attributes:
      streams: whether a store goes past the caches.
    """

    def __init__(self, terms: CStyleTerms, conversion: CStyleConversion) -> None:
        self.streams = False
        self._terms, self._conversion = terms, conversion
        self._dialect, self._forms = terms.dialect, terms.dialect.vectors

    def load(self, u: UOp) -> str:
        """What a LOAD reads."""
        terms, dtype = self._terms, u.dtype
        pointer, index = terms.text.values[u.src[0]], terms.value(u.src[1])
        if len(u.src) == 2:
            return self._load(u.src[0], pointer, u.src[1], index, dtype)
        gate, other = u.src[2], terms.literal(dtypes.as_const(0, dtype), dtype)
        if gate.op is UOps.BROADCAST and self._dialect.one_gate:
            gate = gate.src[0]
        if len(u.src) > 3:
            other = terms.value(u.src[3])
            if u.src[3].dtype.count < dtype.count:
                other = terms.vector([terms.atom(other, dtype.scalar())] * dtype.count, dtype)
        if gate.dtype.count == 1:
            plain = self._load(u.src[0], pointer, u.src[1], index, dtype)
            # gcc wants both branches of one vector type, and one in memory has another alignment.
            plain = plain if dtype.count == 1 else f"({terms.type(dtype)}){plain}"
            return f"({terms.value(gate)} ? {plain} : {other})"
        return f"{self._gated_load(u)}({pointer}, {bare(index)}, {bare(terms.value(gate))}, {bare(other)})"

    def store(self, u: UOp) -> None:
        """Writes the lines of a STORE."""
        terms = self._terms
        pointer, index, value = u.src[:3]
        dtype, text = value.dtype, terms.value(value)
        place, at = terms.text.values[pointer], terms.value(index)
        gate = u.src[3] if len(u.src) > 3 else None
        if gate is not None and gate.dtype.count > 1:
            at, text = terms.atom(at, index.dtype), terms.atom(text, dtype)
            self._gated_store(place, at, text, dtype, terms.atom(terms.value(gate), gate.dtype))
            return
        with terms.text.only_if("" if gate is None else bare(terms.value(gate))):
            if dtype.count == 1:
                terms.text.line(f"{place}[{bare(at)}] = {bare(text)};")
                return
            text = self._conversion.to_memory(text, dtype)
            if terms.facts.streamed(u) and self._dialect.streaming is not None:
                self._stream(pointer, place, index, at, text, dtype)
            else:
                self._store(pointer, place, index, at, text, dtype)

    def prefetch(self, u: UOp) -> None:
        """Writes the line of a PREFETCH, where the language has one."""
        pointer, index = self._terms.text.values[u.src[0]], self._terms.value(u.src[1])
        if self._dialect.prefetch is not None:
            self._terms.text.line(self._dialect.prefetch(pointer, index, element(u.src[0]).itemsize))

    def _load(self, base: UOp, pointer: str, index: UOp, at: str, dtype: DType) -> str:
        if dtype.count == 1:
            return self._conversion.from_memory(f"{pointer}[{bare(at)}]", dtype)
        return self._conversion.from_memory(self._load_lanes(base, pointer, index, at, stored(dtype)), dtype)

    def _load_lanes(self, base: UOp, pointer: str, index: UOp, at: str, memory: DType) -> str:
        """Consecutive elements, in the memory form."""
        terms = self._terms
        if self._is_whole(base, index, memory):
            return self._forms.load(terms, memory, terms.qualifier(base), pointer, at)
        first = terms.atom(at, index.dtype)
        return terms.vector([f"{pointer}[{first} + {i}]" for i in range(memory.count)], memory)

    def _store(self, base: UOp, pointer: str, index: UOp, at: str, text: str, dtype: DType) -> None:
        """Writes consecutive elements, given in the memory form."""
        terms, memory = self._terms, stored(dtype)
        if self._is_whole(base, index, memory):
            terms.text.line(self._forms.store(terms, memory, terms.qualifier(base), pointer, at, bare(text)))
            return
        first, whole = terms.atom(at, index.dtype), terms.atom(text, memory)
        for i in range(dtype.count):
            terms.text.line(f"{pointer}[{first} + {i}] = {terms.lane(whole, i)};")

    def _stream(self, base: UOp, pointer: str, index: UOp, at: str, text: str, dtype: DType) -> None:
        """As :meth:`_store`, past the caches where the pointer is aligned."""
        terms, streaming = self._terms, self._dialect.streaming
        assert streaming is not None
        kind = terms.type(stored(dtype))
        self.streams = True
        text = terms.atom(text, dtype)
        terms.text.line(f"if ({streaming.misaligned(pointer)}) {{")
        self._store(base, pointer, index, at, text, dtype)
        terms.text.line(f"}} else {streaming.store(kind, f'{pointer} + {at}', bare(text))}")

    def _is_whole(self, base: UOp, index: UOp, memory: DType) -> bool:
        terms = self._terms
        return self._forms.whole(memory, terms.space(base), terms.facts.divisors.get(index, 1))

    def _gated_load(self, u: UOp) -> str:
        """A helper ``(pointer, index, gate, other)`` that reads the lanes whose gate is set."""
        terms, dtype = self._terms, u.dtype
        result, index, gates = terms.type(dtype), terms.type(u.src[1].dtype), terms.type(u.src[2].dtype)
        pointer = f"{terms.qualifier(u.src[0])}{terms.element_type(u.src[0])}*"
        name = f"load_{short(dtype)}_{terms.space(u.src[0]).name.lower()}_{short(u.src[1].dtype)}"

        def body() -> Sequence[str]:
            lines = [f"{result} r = other;"]
            for i in range(dtype.count):
                read = self._conversion.from_memory(f"p[i + {i}]", dtype.scalar())
                read = terms.pack_lane(read) if dtypes.is_bool(dtype) else read
                lines.append(f"if ({terms.lane('gate', i)}) {terms.lane('r', i)} = {read};")
            return [*self._load_if_all(u), *lines, "return r;"]

        return terms.helper(name, dtype, f"const {pointer} p, {index} i, {gates} gate, {result} other", body)

    def _load_if_all(self, u: UOp) -> list[str]:
        """Lines at the head of a gated load for when every gate is set."""
        if not self._forms.whole_if_all:
            return []
        every = " & ".join(self._terms.lane("gate", i) for i in range(u.dtype.count))
        whole = self._load(u.src[0], "p", u.src[1], "i", u.dtype)
        return [f"if ({every}) return {bare(whole)};"]

    def _gated_store(self, pointer: str, index: str, value: str, dtype: DType, gate: str) -> None:
        terms = self._terms
        for i in range(dtype.count):
            lane = terms.lane_value(value, i, dtype)
            terms.text.line(f"if ({terms.lane(gate, i)}) {pointer}[{index} + {i}] = {lane};")
