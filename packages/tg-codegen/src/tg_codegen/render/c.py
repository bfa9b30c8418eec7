"""C for the CPU: GNU C11 with vector extensions, for clang; gcc >= 12 takes it too.

Example:
    >>> from tg_codegen.render.c import ClangRenderer
    >>> from tg_codegen.ir.uop import UOp, UOps
    >>> from tg_dtype import dtypes
    >>> print(ClangRenderer().render("nothing", [UOp(UOps.PARAM, dtypes.float32.ptr(), (), 0)]), end="")
    #ifdef __clang__
    #pragma clang fp contract(off)
    #else
    #pragma GCC optimize("fp-contract=off")
    #endif
    void nothing(const float* restrict data0) {
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tg_dtype import DType, dtypes
from tg_lazy import Ops

from ..ir.facts import element
from ..ir.uop import UOp
from ..machine.renderer import Renderer
from ..machine.target import Target
from .cstyle import BINARY, COMPARISONS, CStyleKernel, bare, short, signed, unsigned

_NAMES = {
    dtypes.int8: "signed char", dtypes.uint8: "unsigned char", dtypes.int16: "short", dtypes.uint16: "unsigned short",
    dtypes.int32: "int", dtypes.uint32: "unsigned", dtypes.int64: "long long", dtypes.uint64: "unsigned long long",
    dtypes.float16: "_Float16", dtypes.float32: "float", dtypes.float64: "double",
}  # fmt: skip


_FEW = 16
"""Fewer iterations than these clang makes vectors of only by masking the last ones."""


class ClangRenderer(Renderer):
    """Writes C for a CPU.

    Args:
      target: the machine; a plain CPU if omitted.
    """

    name: ClassVar[str] = "CLANG"

    def __init__(self, target: Target | None = None) -> None:
        super().__init__(target or Target())

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return _Kernel(name, uops, self.target.fused_multiply_add).text()

    def supports_dtype(self, dtype: DType) -> bool:
        return dtypes.is_bool(dtype) or dtype.scalar() in _NAMES


class _Kernel(CStyleKernel):
    language = "C"
    scalars = _NAMES
    bool_name = "_Bool"
    streams = False  # whether a store goes past the caches

    def preamble(self) -> list[str]:
        lines = [
            "#ifdef __clang__", "#pragma clang fp contract(off)",
            "#else", '#pragma GCC optimize("fp-contract=off")', "#endif",
        ]  # fmt: skip
        if self.streams:
            lines += [
                "#ifdef __clang__", "#define TG_STREAM(place, value) __builtin_nontemporal_store(value, place)",
                "#else", "#define TG_STREAM(place, value) (*(place) = (value))", "#endif",
            ]  # fmt: skip
        return lines

    def signature(self, parameters: str) -> str:
        return f"void {self.name}({parameters or 'void'})"

    def vector_type(self, dtype: DType) -> str:
        name = short(dtype)
        lane = self.type(dtype.scalar())
        self.types.setdefault(name, f"typedef {lane} {name} __attribute__((vector_size({dtype.itemsize})));")
        return name

    def loose_type(self, dtype: DType) -> str:
        """The vector as it lies in memory: aligned as its elements are, and aliasing them."""
        lane, name = self.type(dtype.scalar()), f"{short(dtype)}u"
        attributes = f"vector_size({dtype.itemsize}), aligned({dtype.scalar().itemsize}), may_alias"
        self.types.setdefault(name, f"typedef {lane} {name} __attribute__(({attributes}));")
        return name

    def not_a_number(self, dtype: DType) -> str:
        return '__builtin_nan("")' if dtype is dtypes.float64 else '__builtin_nanf("")'

    def infinity(self, dtype: DType) -> str:
        return "__builtin_inf()" if dtype is dtypes.float64 else "__builtin_inff()"

    def scratch(self, u: UOp, name: str) -> str:
        return f"{self.memory_type(element(u))} {name}[{u.arg[1]}] __attribute__((aligned(64)))"

    def barrier(self) -> None:
        """A CPU kernel is one thread of control: it has nothing to wait for."""

    # vectors

    def vector(self, lanes: Sequence[str], dtype: DType) -> str:
        lanes = [self.pack_lane(lane) for lane in lanes] if dtypes.is_bool(dtype) else lanes
        if all(lane in ("0", "0.0", "0.0f") for lane in lanes):
            return f"({self.type(dtype)}){{0}}"
        return f"({self.type(dtype)}){{{', '.join(bare(lane) for lane in lanes)}}}"

    def lane(self, vector: str, index: int, count: int) -> str:
        return f"{vector}[{index}]"

    def shuffle(self, vectors: Sequence[str], lanes: Sequence[int], dtype: DType) -> str:
        if len(lanes) & (len(lanes) - 1):  # gcc has vectors of 2**n lanes only, and so has its shuffle
            return super().shuffle(vectors, lanes, dtype)
        self.type(dtype.scalar().vec(len(lanes)))
        return f"__builtin_shufflevector({vectors[0]}, {vectors[-1]}, {', '.join(map(str, lanes))})"

    def vector_load(self, base: UOp, pointer: str, index: UOp, text: str, dtype: DType) -> str:
        kind = self.loose_type(dtypes.uint8.vec(dtype.count) if dtypes.is_bool(dtype) else dtype)
        return f"*(const {kind}*)({pointer} + {text})"

    def vector_store(self, base: UOp, pointer: str, index: UOp, text: str, value: str, dtype: DType) -> None:
        kind = self.loose_type(dtypes.uint8.vec(dtype.count) if dtypes.is_bool(dtype) else dtype)
        self.line(f"*({kind}*)({pointer} + {text}) = {bare(value)};")

    def stream_store(self, base: UOp, pointer: str, index: UOp, text: str, value: str, dtype: DType) -> None:
        kind = self.type(dtypes.uint8.vec(dtype.count) if dtypes.is_bool(dtype) else dtype)
        self.streams = True
        value = self.atom(value, dtype)
        self.line(f"if ((unsigned long long){pointer} % 64) {{")
        self.vector_store(base, pointer, index, text, value, dtype)
        self.line(f"}} else TG_STREAM(({kind}*)({pointer} + {text}), {bare(value)});")

    def prefetch(self, pointer: str, index: str, nbytes: int) -> None:
        self.line(f"__builtin_prefetch((const void*)((unsigned long long){pointer} + {nbytes} * {index}));")

    def ending(self) -> list[str]:
        # what went past the caches is seen by whoever is told next
        return ["  __atomic_thread_fence(__ATOMIC_SEQ_CST);"] if self.streams else []

    def from_memory(self, text: str, dtype: DType) -> str:
        return f"({text} != 0)" if dtypes.is_bool(dtype) else text

    def whole_load(self, u: UOp) -> list[str]:
        every = " & ".join(self.lane("gate", i, u.dtype.count) for i in range(u.dtype.count))
        whole = self.from_memory(self.vector_load(u.src[0], "p", u.src[1], "i", u.dtype), u.dtype)
        return [f"if ({every}) return {bare(whole)};"]

    def elementwise(self, op: Ops, dtype: DType, v: list[str], exact: bool, guarded: bool) -> str | None:
        if dtype.count == 1:
            return self.scalar_alu(op, dtype, v, exact, guarded)
        if op is Ops.WHERE:
            return f"{self.select(dtype)}({bare(v[0])}, {bare(v[1])}, {bare(v[2])})"
        if dtypes.is_bool(dtype):
            return self.vector_logic(op, dtype, v)
        if op in COMPARISONS:
            return self.convert(f"({v[0]} {BINARY[op]} {v[1]})", signed(dtype), dtypes.int8.vec(dtype.count))
        return self.scalar_alu(op, dtype, v, exact, guarded)

    def convert(self, x: str, src: DType, dst: DType) -> str:
        return x if src is dst else f"__builtin_convertvector({bare(x)}, {self.type(dst)})"

    def select(self, dtype: DType) -> str:
        mask = dtypes.bool.vec(dtype.count)
        word = self.type(signed(dtype))
        chosen = f"({self.type(dtype)})((({word})a & w) | (({word})b & ~w))"
        wide = self.convert("m", dtypes.int8.vec(dtype.count), signed(dtype))
        body = f"{word} w = {wide}; return {chosen};"
        return self.function(f"select_{short(dtype)}", dtype, [(mask, "m"), (dtype, "a"), (dtype, "b")], body)

    def wrapping(self, operator: str, dtype: DType, a: str, b: str, exact: bool) -> str:
        if dtype.count == 1:
            return super().wrapping(operator, dtype, a, b, exact)
        if exact or dtypes.is_unsigned(dtype):
            return f"({a} {operator} {b})"
        word = self.type(unsigned(dtype))
        return f"({self.type(dtype)})(({word}){a} {operator} ({word}){b})"

    def negated(self, dtype: DType, x: str, exact: bool) -> str:
        if dtype.count == 1:
            return super().negated(dtype, x, exact)
        return f"({self.type(dtype)})(-({self.type(unsigned(dtype))}){x})"

    def maximum(self, dtype: DType) -> str:
        if dtype.count == 1:
            return super().maximum(dtype)
        select, byte = self.select(dtype), dtypes.int8.vec(dtype.count)
        body = f"{select}({self.convert('a > b', signed(dtype), byte)}, a, b)"
        if dtypes.is_float(dtype):
            body = f"{select}({self.convert('a != a', signed(dtype), byte)}, a, {body})"
        return self.function(f"max_{short(dtype)}", dtype, [(dtype, "a"), (dtype, "b")], f"return {body};")

    def division(self, op: Ops, dtype: DType) -> str:
        if dtype.count == 1:
            return super().division(op, dtype)
        a_b, byte = [(dtype, "a"), (dtype, "b")], dtypes.int8.vec(dtype.count)
        unit = not dtypes.is_unsigned(dtype)
        select, one, zero = self.select(dtype), self.literal(1, dtype), self.literal(0, dtype)
        by_zero = self.convert("b == 0", signed(dtype), byte)
        unsafe = self.convert("(b == 0) | (b == -1)", signed(dtype), byte) if unit else by_zero
        safe = f"{select}({unsafe}, {one}, b)"
        if op is Ops.MOD:
            return self.function(f"mod_{short(dtype)}", dtype, a_b, f"return a % {safe};")
        quotient = f"a / {safe}"
        if unit:
            negated = self.negated(dtype, "a", False)
            quotient = f"{select}({self.convert('b == -1', signed(dtype), byte)}, {negated}, {quotient})"
        return self.function(f"div_{short(dtype)}", dtype, a_b, f"return {select}({by_zero}, {zero}, {quotient});")

    # loops

    def before_loop(self, u: UOp) -> None:
        """Keeps clang from making vectors of few iterations.

        It would end them with masked stores, of which LLVM 22 writes some past what is wanted (see ``store_lanes``
        in :mod:`tg_codegen.render.llvm`).
        """
        (start, _), (_, end) = (self.facts.bounds(bound) for bound in u.src[:2])
        if end - start < _FEW:
            self.line("#pragma clang loop vectorize(disable)")

    # functions

    def narrow(self, text: str, dtype: DType) -> str:
        if dtype.scalar() is dtypes.float16 and dtype.count > 1:  # clang 19 widens these, too
            return f"({self.type(dtype)}){text if text.startswith('(') else f'({text})'}"
        return super().narrow(text, dtype)

    def multiply_add(self, dtype: DType, v: list[str]) -> str:
        if not self.fused or dtype.bits < 32:
            return super().multiply_add(dtype, v)
        builtin = "__builtin_fma" if dtype.bits == 64 else "__builtin_fmaf"
        return self.per_lane("fma", builtin, "__builtin_elementwise_fma", dtype, v)

    def math(self, op: Ops, dtype: DType, x: str) -> str | None:
        if op not in (Ops.SQRT, Ops.TRUNC):
            return None
        stem = op.name.lower()
        builtin = f"__builtin_{stem}" + ("" if dtype.bits == 64 else "f")
        return self.per_lane(stem, builtin, f"__builtin_elementwise_{stem}", dtype, [x])

    def per_lane(self, stem: str, scalar: str, vector: str, dtype: DType, v: list[str]) -> str:
        """A call of a builtin function, by a helper where the dtype is a vector."""
        arguments = ", ".join(map(bare, v))
        if dtype.count == 1:
            return self.narrow(f"{scalar}({arguments})", dtype)
        names = ["x", "y", "z"][: len(v)]
        lanes = [f"{scalar}({', '.join(f'{n}[{i}]' for n in names)})" for i in range(dtype.count)]
        # Literal lists keep the type of each lane; float16 goes through float either way.
        each = f"({self.type(dtype)}){{{', '.join(lanes)}}}"
        body = f"#if __has_builtin({vector})\n  return {vector}({', '.join(names)});\n#else\n  return {each};\n#endif\n"
        name = f"{stem}_{short(dtype)}"
        return f"{self.function(name, dtype, [(dtype, n) for n in names], chr(10) + body)}({arguments})"

    # conversion

    def cast(self, x: str, src: DType, dst: DType) -> str:
        if src is dst:
            return x
        if src.count == 1:
            if src is dtypes.float64 and dst is dtypes.float16:
                return f"(_Float16){self.round_to_odd(1)}({bare(x)})"
            if dst is dtypes.float16 and src.bits == 64:
                return f"(_Float16)(float){x}"  # one rounding: beyond float's exact integers float16 is infinite
            return self.scalar_cast(x, src, dst)
        return self.vector_cast(x, src, dst)

    def vector_cast(self, x: str, src: DType, dst: DType) -> str:
        count = src.count
        byte, single = dtypes.int8.vec(count), dtypes.float32.vec(count)
        if dtypes.is_bool(dst):
            return self.convert(f"({x} != 0)", signed(src), byte)
        if dtypes.is_bool(src):
            return self.convert(f"({x} & 1)", byte, dst)
        if dtypes.is_float(src) and dtypes.is_int(dst):
            return f"{self.vector_saturating(src, dst)}({bare(x)})"
        if dst.scalar() is dtypes.float16 and src.scalar() is dtypes.float64:
            return self.convert(f"{self.round_to_odd(count)}({bare(x)})", single, dst)
        if dst.scalar() is dtypes.float16 and dtypes.is_int(src):
            return self.convert(self.convert(x, src, single), single, dst)
        return self.convert(x, src, dst)

    def vector_saturating(self, src: DType, dst: DType) -> str:
        count = src.count
        wide = dtypes.float32.vec(count) if src.bits < 32 else src
        # Clamp to a range that converts safely, then put right the top (which may not be a float) and NaN.
        low, high = int(dtypes.min(dst)), int(dtypes.max(dst))
        least, past = self.literal(float(low), wide.scalar()), self.literal(float(high + 1), wide.scalar())
        word, mask, byte = signed(wide), self.type(signed(wide)), dtypes.int8.vec(count)
        above, below = (self.convert(test, word, byte) for test in (f"y >= {past}", f"y <= {least}"))
        inside = f"({self.type(wide)})(({mask})y & ok)"
        body = (
            f"{self.type(wide)} y = {self.convert('x', src, wide)}; {mask} ok = (y > {least}) & (y < {past}); "
            f"{self.type(dst)} r = {self.convert(inside, wide, dst)}; "
            f"r = {self.select(dst)}({above}, {self.literal(high, dst)}, r); "
        )
        if low:
            body += f"r = {self.select(dst)}({below}, {self.literal(low, dst)}, r); "
        return self.function(f"{short(src)}_to_{short(dst)}", dst, [(src, "x")], f"{body}return r;")

    def round_to_odd(self, count: int) -> str:
        """A helper, float64 to float32, such that rounding its result to float16 is as rounding once.

        x86 has no instruction for float64 to float16, and the compiler would call a library.
        """
        double, single, word = dtypes.float64.vec(count), dtypes.float32.vec(count), dtypes.int32.vec(count)
        if count == 1:
            body = (
                "union { float f; int i; } u; u.f = (float)x; double b = (double)u.f; "
                "if (b != x && x == x) u.i = (u.i - ((b < 0 ? -b : b) > (x < 0 ? -x : x))) | 1; return u.f;"
            )
        else:
            f, d, w = self.type(single), self.type(double), self.type(word)
            q = self.type(dtypes.int64.vec(count))
            body = (
                f"{f} f = {self.convert('x', double, single)}; {d} b = {self.convert('f', single, double)}; "
                f"{q} magnitude = ({q}){{}} + 0x7fffffffffffffffll; "
                f"{w} away = {self.convert(f'({d})(({q})b & magnitude) > ({d})(({q})x & magnitude)', double, word)}; "
                f"{w} inexact = {self.convert('(b != x) & (x == x)', double, word)}; "
                f"{w} odd = (({w})f + away) | 1; return ({f})((odd & inexact) | (({w})f & ~inexact));"
            )
        return self.function(f"odd_f64x{count}", single, [(double, "x")], body)

    def bitcast(self, x: str, src: DType, dst: DType) -> str:
        if src is dst:
            return x
        if dtypes.is_bool(dst):
            return self.cast(x, src, dst)
        if dtypes.is_bool(src):
            return self.cast(x, src, dst)
        if src.count > 1 or (dtypes.is_int(src) and dtypes.is_int(dst)):
            return f"({self.type(dst)}){x}"
        body = f"union {{ {self.type(src)} a; {self.type(dst)} b; }} u; u.a = x; return u.b;"
        return f"{self.function(f'{short(src)}_as_{short(dst)}', dst, [(src, 'x')], body)}({bare(x)})"
