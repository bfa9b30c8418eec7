"""Buffers and arrays of one kernel in WGSL: their declarations, loads and stores.

A buffer of elements narrower than 32 bits is an array of words. A store changes its own bits of the word by one
``atomicXor`` with the difference to what they were: neighbours in the word may be stored by others at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass

from tg_dtype import AddrSpace, DType, PtrDType, dtypes

from ...ir.facts import element, pointer_base
from ...ir.uop import UOp
from ..spelling import bare
from .conversion import WGSLConversion
from .terms import WGSLTerms


@dataclass(frozen=True, slots=True)
class ShaderArray:
    """How a pointer is read and written.

    Attributes:
      name: of the array.
      words: whether the array is one of words whatever the element.
      atomic: whether the words are atomic.
      base: what to add for the first word of the slot.
    """

    name: str
    words: bool = False
    atomic: bool = False
    base: str = ""

    def word(self, at: str) -> str:
        """One word, as it is read."""
        return f"atomicLoad(&{self.name}[{at}])" if self.atomic else f"{self.name}[{at}]"


class WGSLAccess:
    """What one kernel does with memory.

    Args:
      terms: its words.
      conversion: its casts.
      kernel: its name, for messages.
      buffers: most storage buffers of a shader.
      shared_limit: most bytes that a workgroup shares.

    Attributes:
      shared: declarations of arrays that a workgroup shares.
    """

    def __init__(
        self, terms: WGSLTerms, conversion: WGSLConversion, kernel: str, buffers: int, shared_limit: int
    ) -> None:
        self.shared: list[str] = []
        self._terms, self._conversion, self._kernel = terms, conversion, kernel
        self._buffers, self._shared_limit, self._shared_bytes = buffers, shared_limit, 0
        self._arrays: dict[UOp, ShaderArray] = {}

    # declarations

    def declare(self, members: list[str]) -> tuple[list[str], list[str]]:
        """The bindings of the buffers, and the comments about them; members of ``args`` that they need are added."""
        terms, params, stored = self._terms, self._terms.facts.params, self._terms.facts.stored
        words = {
            u.arg for u in params if element(u).itemsize < 4 and element(u) is not dtypes.float16
        }
        own, rest = list(params), []
        if len(params) > self._buffers:
            stored_first = sorted(params, key=lambda u: (u.arg not in stored, u.arg))
            own = sorted(stored_first[: self._buffers - 1], key=lambda u: u.arg)
            rest = sorted(stored_first[self._buffers - 1 :], key=lambda u: u.arg)
        lines, notes = [], []
        for binding, u in enumerate(own):
            atomic = u.arg in words and u.arg in stored
            array = self._arrays[u] = ShaderArray(terms.text.claim(f"data{u.arg}"), u.arg in words, atomic)
            lines.append(self._binding(binding, array, element(u)))
        if rest:
            # A float16 in the packed words is two bytes of one.
            atomic = any(u.arg in stored and element(u).itemsize < 4 for u in rest)
            for u in rest:
                base = terms.text.claim(f"base{u.arg}")
                members.append(f"{base}: u32")
                self._arrays[u] = ShaderArray("packed", True, atomic, f"args.{base} + ")
            lines.append(self._binding(len(own), ShaderArray("packed", True, atomic), dtypes.uint32))
            notes.append(f"// packed: {' '.join(str(u.arg) for u in rest)}")
        for u in params:
            terms.text.values[u] = self._arrays[u].name
        notes.append(f"// writes: {' '.join(map(str, sorted(stored)))}")
        return lines, notes

    def _binding(self, number: int, array: ShaderArray, dtype: DType) -> str:
        kind = self._terms.type(dtype)
        if array.words:
            kind = "atomic<u32>" if array.atomic else "u32"
        return f"@group(0) @binding({number}) var<storage, read_write> {array.name}: array<{kind}>;"

    def array(self, u: UOp) -> None:
        """Declares the array of a SCRATCH.

        Raises:
          ValueError: if a workgroup shares no more.
        """
        text = self._terms.text
        name = text.values[u] = text.claim(u.arg[0])
        self._arrays[u] = ShaderArray(name)
        declaration = f"{name}: array<{self._terms.type(element(u))}, {u.arg[1]}>;"
        assert isinstance(u.dtype, PtrDType)
        if u.dtype.space is not AddrSpace.LOCAL:
            text.line(f"var {declaration}")
            return
        self.shared.append(f"var<workgroup> {declaration}")
        size = 2 if element(u) is dtypes.float16 else max(element(u).itemsize, 4)
        self._shared_bytes += u.arg[1] * size
        if self._shared_bytes > self._shared_limit:
            raise ValueError(
                f"WGSL: {self._kernel} wants {self._shared_bytes} bytes of workgroup memory; there are "
                f"{self._shared_limit}"
            )

    # loads

    def load(self, u: UOp) -> str:
        """What a LOAD reads."""
        terms, index = self._terms, self.index(u.src[1])
        if len(u.src) == 2:
            return self._read(u.src[0], index, u.dtype)
        gate = terms.atom(terms.value(u.src[2]), dtypes.bool)
        other = terms.literal(dtypes.as_const(0, u.dtype), u.dtype) if len(u.src) == 3 else terms.value(u.src[3])
        # Whatever the index is where the gate is shut, nothing beyond the buffer is read.
        inside = terms.variable("at", dtypes.int32, f"select(0i, {bare(index)}, {gate})")
        return f"select({bare(other)}, {bare(self._read(u.src[0], inside, u.dtype))}, {gate})"

    def index(self, u: UOp) -> str:
        """An integer as an i32."""
        return self._conversion.cast(self._terms.value(u), u.dtype, dtypes.int32)

    def _read(self, pointer: UOp, index: str, dtype: DType) -> str:
        """One element."""
        terms, array = self._terms, self._arrays[pointer_base(pointer)]
        if not array.words:
            return f"{array.name}[{bare(index)}]"
        if dtype.itemsize >= 4:
            at = terms.atom(index, dtypes.int32)
            if dtype.itemsize == 8:
                low = f"{array.base}2u * u32({at})"
                return f"vec2<u32>({array.word(low)}, {array.word(f'{low} + 1u')})"
            return self._conversion.from_bits(array.word(f"{array.base}u32({at})"), dtype)
        at = terms.variable("at", dtypes.uint32, f"u32({bare(index)})")
        shift, per, bits = _part(at, dtype)
        raw = array.word(bare(f"{array.base}({at} >> {per}u)"))
        if dtypes.is_bool(dtype) or dtypes.is_unsigned(dtype) or dtypes.is_float(dtype):
            raw = f"extractBits({raw}, {shift}, {bits}u)"
            return f"({raw} != 0u)" if dtypes.is_bool(dtype) else self._conversion.from_bits(raw, dtype)
        return f"extractBits(bitcast<i32>({raw}), {shift}, {bits}u)"

    # stores

    def store(self, u: UOp) -> None:
        """Writes the lines of a STORE."""
        terms = self._terms
        pointer, index, value = u.src[:3]
        with terms.text.only_if(bare(terms.value(u.src[3])) if len(u.src) > 3 else ""):
            self._write(self._arrays[pointer_base(pointer)], self.index(index), terms.value(value), element(pointer))

    def _write(self, array: ShaderArray, index: str, value: str, dtype: DType) -> None:
        terms, base = self._terms, array.base
        if not array.words:
            terms.text.line(f"{array.name}[{bare(index)}] = {bare(value)};")
            return
        at = terms.variable("at", dtypes.uint32, f"u32({bare(index)})")
        if dtype.itemsize == 8:
            value = terms.atom(value, dtype)
            self._put(array, f"{base}2u * {at}", f"{value}.x")
            self._put(array, f"{base}2u * {at} + 1u", f"{value}.y")
        elif dtype.itemsize == 4:
            self._put(array, f"{base}{at}", bare(self._conversion.to_bits(value, dtype)))
        else:
            shift, per, bits = _part(at, dtype)
            by = terms.variable("by", dtypes.uint32, shift)
            word = f"&{array.name}[{base}({at} >> {per}u)]"
            change = f"((atomicLoad({word}) >> {by}) ^ {self._conversion.to_bits(value, dtype)})"
            terms.text.line(f"atomicXor({word}, ({change} & {(1 << bits) - 1}u) << {by});")

    def _put(self, array: ShaderArray, at: str, bits: str) -> None:
        """Writes a word."""
        word = f"{array.name}[{at}]"
        self._terms.text.line(f"atomicStore(&{word}, {bits});" if array.atomic else f"{word} = {bits};")


def _part(at: str, dtype: DType) -> tuple[str, int, int]:
    """Of a narrow element: its first bit in the word, the logarithm of how many share a word, its bits."""
    return (f"({at} & 3u) * 8u", 2, 8) if dtype.itemsize == 1 else (f"({at} & 1u) * 16u", 1, 16)
