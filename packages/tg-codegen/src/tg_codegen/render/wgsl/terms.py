"""Types, literals and variables of one kernel in WGSL.

* Integers narrower than 32 bits are held in 32, and brought back to their range after each operation.
* 64-bit integers are ``vec2<u32>``, low word first; their arithmetic is in helper functions.
* NaN and infinity have no literals, and comparisons with NaN may be folded; both go through the bits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import copysign, inf

from tg_dtype import ConstType, DType, dtypes

from ...ir.facts import kernel_facts
from ...ir.uop import UOp
from ..inlining import inlined
from ..spelling import bare, decimal, short
from ..text import Text, is_atom
from .wide import HELPERS as WIDE_HELPERS

WGSL_KEYWORDS = frozenset(
    """alias array atomic auto await become binding_array bitcast bool break case cast catch class const const_assert
    const_cast continue continuing default delete diagnostic discard do dynamic_cast else enable enum explicit export
    extends extern external f16 f32 fallthrough false final finally fn for friend from get goto group handle highp i32
    if impl implements import inline instanceof interface layout let loop lowp macro main mat match mediump meta mod
    module move mut mutable namespace new nil noexcept noinline null nullptr of operator override package packoffset
    pass patch pixelfragment pointer precise precision premerge private protected ptr pub public quat readonly ref
    regardless register requires resource restrict return sampler self set shared signed sizeof smooth snorm static
    storage struct super switch target template texture this thread throw trait true try type typedef typeid typename
    typeof u32 undefined union unorm unsafe unsized use uniform using var varying vec virtual void volatile
    where while with workgroup writeonly yield abs all any atomicLoad atomicStore atomicXor clamp exp2
    extractBits fma log2 max min select sin sqrt trunc vec2 workgroupBarrier storageBarrier args packed group item
    groups Args number gx gy gz""".split()
)
SCALARS = {
    dtypes.int8: "i32", dtypes.int16: "i32", dtypes.int32: "i32", dtypes.uint8: "u32", dtypes.uint16: "u32",
    dtypes.uint32: "u32", dtypes.int64: "vec2<u32>", dtypes.uint64: "vec2<u32>", dtypes.float16: "f16",
    dtypes.float32: "f32",
}  # fmt: skip


class WGSLTerms:
    """The words of one kernel.

    Args:
      uops: the kernel, without vectors.

    Attributes:
      facts: what is known of the kernel.
      text: what has been written of it.
      used: dtypes that have been written of.
    """

    def __init__(self, uops: Sequence[UOp]) -> None:
        self.facts = kernel_facts(uops)
        self.text = Text(WGSL_KEYWORDS, inlined(uops, self.facts.uses))
        self.used: set[DType] = set()

    def type(self, dtype: DType) -> str:
        """The type of a value.

        Raises:
          ValueError: if the language cannot compute with it.
        """
        self.used.add(dtype)
        if dtypes.is_bool(dtype):
            return "bool"
        found = SCALARS.get(dtype)
        if found is None:
            raise ValueError(f"WGSL: {dtype.name} has no arithmetic here; it must be legalised")
        return found

    def variable(self, stem: str, dtype: DType, text: str) -> str:
        """A new variable with this value; only those of accumulators change it."""
        name = self.text.numbered(stem)
        self.text.line(f"{'var' if stem == 'acc' else 'let'} {name}: {self.type(dtype)} = {bare(text)};")
        return name

    def atom(self, text: str, dtype: DType) -> str:
        """The text itself if repeating it costs nothing, else a variable that holds it."""
        return text if is_atom(text) else self.variable("x", dtype, text)

    def value(self, u: UOp) -> str:
        """What stands for a node as an operand."""
        found = self.text.values.get(u)
        return self.literal(u.arg, u.dtype) if found is None and u.is_const else self.text.values[u]

    def function(self, name: str, result: DType, parameters: Sequence[tuple[DType, str]], body: str) -> str:
        """The name of a helper function."""
        declared = ", ".join(f"{p}: {self.type(d)}" for d, p in parameters)
        return self.text.helper(name, lambda: f"fn tg_{name}({declared}) -> {self.type(result)} {{ {body} }}")

    def wide(self, name: str) -> str:
        """The name of a helper for 64-bit integers, which is defined with those that it calls."""
        text = WIDE_HELPERS[name]
        for other in re.findall(r"\btg_(\w+)\(", text):
            if other != name and other in WIDE_HELPERS:
                self.wide(other)
        return self.text.helper(name, lambda: text)

    def is_nan(self, dtype: DType) -> str:
        """The name of a helper function."""
        body = f"return (bitcast<u32>({'x' if dtype is dtypes.float32 else 'f32(x)'}) & 0x7fffffffu) > 0x7f800000u;"
        return self.function(f"is_nan_{short(dtype)}", dtypes.bool, [(dtype, "x")], body)

    def literal(self, value: ConstType, dtype: DType) -> str:
        """A constant."""
        if dtypes.is_bool(dtype):
            return "true" if value else "false"
        if dtypes.is_float(dtype):
            self.used.add(dtype)
            return self._float_literal(float(value), dtype)
        number = int(value)
        if dtype.itemsize == 8:
            bits = number & (1 << 64) - 1
            return f"vec2<u32>({bits & 0xFFFFFFFF}u, {bits >> 32}u)"
        if dtypes.is_unsigned(dtype):
            return f"{number}u"
        if number == -(1 << 31):  # the literal without its sign would not fit
            return "i32(-2147483648)"
        return f"({number}i)" if number < 0 else f"{number}i"

    def _float_literal(self, value: float, dtype: DType) -> str:
        kind, bits = _special(value)
        if kind:
            # Of a constant the bits of which are no number the compiler complains, and of a zero it drops the sign;
            # this is one that it does not see.
            single = self.function(kind, dtypes.float32, (), f"var bits = {bits}; return bitcast<f32>(bits);")
            text = f"{single}()" if dtype is dtypes.float32 else f"f16({single}())"
            return f"(-{text})" if value < 0 else text
        text = decimal(value) + ("h" if dtype is dtypes.float16 else "f")
        return f"({text})" if text.startswith("-") else text

    def narrow(self, text: str, dtype: DType) -> str:
        """Brings an integer back to the range of its dtype."""
        if dtypes.is_float(dtype) or dtypes.is_bool(dtype) or dtype.bits >= 32:
            return text
        if dtypes.is_unsigned(dtype):
            return f"({text} & {(1 << dtype.bits) - 1}u)"
        return f"extractBits({bare(text)}, 0u, {dtype.bits}u)"


def _special(value: float) -> tuple[str, str]:
    """The name and the bits (of inf for -inf, too) of a number that no literal is for; empty where one is."""
    if value != value:
        return "nan", "0x7fc00000u"
    if value in (inf, -inf):
        return "inf", "0x7f800000u"
    return ("negative_zero", "0x80000000u") if value == 0 and copysign(1.0, value) < 0 else ("", "")
