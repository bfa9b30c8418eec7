"""C for the CPU: GNU C11 with vector extensions, for clang; gcc >= 12 takes it too.

Example:
  >>> from tg_codegen.render.c.clang import ClangRenderer
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

from collections.abc import Callable, Sequence
from typing import ClassVar

from tg_dtype import DType, dtypes
from tg_lazy import Ops

from ...machine.target import Target
from ..spelling import bare, short, signed
from .cstyle import CStyleRenderer
from .dialect import Builtin, Dialect, Operators, Streaming, Terms, Vectors

_NAMES = {
    dtypes.int8: "signed char", dtypes.uint8: "unsigned char", dtypes.int16: "short", dtypes.uint16: "unsigned short",
    dtypes.int32: "int", dtypes.uint32: "unsigned", dtypes.int64: "long long", dtypes.uint64: "unsigned long long",
    dtypes.float16: "_Float16", dtypes.float32: "float", dtypes.float64: "double",
}  # fmt: skip


def _convert(terms: Terms, x: str, src: DType, dst: DType) -> str:
    return x if src is dst else f"__builtin_convertvector({bare(x)}, {terms.type(dst)})"


def _select(terms: Terms, dtype: DType) -> Callable[[str, str, str], str]:
    """``mask ? a : b`` by the bits; the masks are vectors of bools."""
    byte = dtypes.int8.vec(dtype.count)
    word = terms.type(signed(dtype))
    chosen = f"({terms.type(dtype)})((({word})a & w) | (({word})b & ~w))"
    wide = _convert(terms, "m", byte, signed(dtype))
    parameters = [(dtypes.bool.vec(dtype.count), "m"), (dtype, "a"), (dtype, "b")]
    name = terms.function(f"select_{short(dtype)}", dtype, parameters, f"{word} w = {wide}; return {chosen};")
    return lambda mask, a, b: f"{name}({mask}, {a}, {b})"


# functions


def _function(name: str) -> Builtin:
    """A builtin function for scalars, which C computes in float or wider."""
    return lambda terms, dtype, v: terms.narrow(f"{name}({', '.join(map(bare, v))})", dtype)


def _function_of_lanes(stem: str, scalar: str) -> Builtin:
    """A helper that has clang's builtin function for vectors, and for gcc does each lane."""

    def define(terms: Terms, dtype: DType, v: Sequence[str]) -> str:
        names, vector = ["x", "y", "z"][: len(v)], f"__builtin_elementwise_{stem}"
        lanes = [f"{scalar}({', '.join(f'{n}[{i}]' for n in names)})" for i in range(dtype.count)]
        # Literal lists keep the type of each lane; float16 goes through float either way.
        each = f"({terms.type(dtype)}){{{', '.join(lanes)}}}"
        body = f"#if __has_builtin({vector})\n  return {vector}({', '.join(names)});\n#else\n  return {each};\n#endif\n"
        name = terms.function(f"{stem}_{short(dtype)}", dtype, [(dtype, n) for n in names], "\n" + body)
        return f"{name}({', '.join(map(bare, v))})"

    return define


_FUNCTIONS = {
    (Ops.SQRT, dtypes.float16): ("sqrt", "__builtin_sqrtf"), (Ops.TRUNC, dtypes.float16): ("trunc", "__builtin_truncf"),
    (Ops.SQRT, dtypes.float32): ("sqrt", "__builtin_sqrtf"), (Ops.TRUNC, dtypes.float32): ("trunc", "__builtin_truncf"),
    (Ops.SQRT, dtypes.float64): ("sqrt", "__builtin_sqrt"), (Ops.TRUNC, dtypes.float64): ("trunc", "__builtin_trunc"),
    (Ops.MULACC, dtypes.float32): ("fma", "__builtin_fmaf"), (Ops.MULACC, dtypes.float64): ("fma", "__builtin_fma"),
}  # fmt: skip


# vectors


def _loose(terms: Terms, memory: DType) -> str:
    """The vector as it lies in memory: aligned as its elements are, and aliasing them."""
    lane, name = terms.type(memory.scalar()), f"{short(memory)}u"
    attributes = f"vector_size({memory.itemsize}), aligned({memory.scalar().itemsize}), may_alias"
    return terms.defined(name, f"typedef {lane} {name} __attribute__(({attributes}));")


def _literal(kind: str, lanes: Sequence[str]) -> str:
    zero = all(lane in ("0", "0.0", "0.0f") for lane in lanes)
    return f"({kind}){{0}}" if zero else f"({kind}){{{', '.join(lanes)}}}"


def _shuffle(terms: Terms, vectors: Sequence[str], lanes: Sequence[int], dtype: DType) -> str | None:
    if len(lanes) & (len(lanes) - 1):  # gcc has vectors of 2**n lanes only, and so has its shuffle
        return None
    terms.type(dtype.scalar().vec(len(lanes)))
    return f"__builtin_shufflevector({vectors[0]}, {vectors[-1]}, {', '.join(map(str, lanes))})"


# conversion


def _cast(terms: Terms, x: str, src: DType, dst: DType) -> str | None:
    if dtypes.is_bool(src) or dtypes.is_bool(dst):
        return None
    count, single = src.count, dtypes.float32.vec(src.count)
    if dst.scalar() is dtypes.float16 and src.scalar() is dtypes.float64:
        odd = f"{_round_to_odd(terms, count)}({bare(x)})"
        return f"(_Float16){odd}" if count == 1 else _convert(terms, odd, single, dst)
    if count == 1:
        # One rounding: beyond float's exact integers float16 is infinite.
        return f"(_Float16)(float){x}" if dst is dtypes.float16 and src.bits == 64 else None
    if dtypes.is_float(src) and dtypes.is_int(dst):
        return f"{_saturating(terms, src, dst)}({bare(x)})"
    if dst.scalar() is dtypes.float16 and dtypes.is_int(src):
        return _convert(terms, _convert(terms, x, src, single), single, dst)
    return None


def _saturating(terms: Terms, src: DType, dst: DType) -> str:
    """A helper for vectors: float to integer toward zero; NaN is 0, what does not fit is the nearest that does."""
    count = src.count
    wide = dtypes.float32.vec(count) if src.bits < 32 else src
    # Clamp to a range that converts safely, then put right the top (which may not be a float) and NaN.
    low, high = int(dtypes.min(dst)), int(dtypes.max(dst))
    least, past = terms.literal(float(low), wide.scalar()), terms.literal(float(high + 1), wide.scalar())
    word, mask, byte = signed(wide), terms.type(signed(wide)), dtypes.int8.vec(count)
    above, below = (_convert(terms, test, word, byte) for test in (f"y >= {past}", f"y <= {least}"))
    inside = f"({terms.type(wide)})(({mask})y & ok)"
    body = (
        f"{terms.type(wide)} y = {_convert(terms, 'x', src, wide)}; {mask} ok = (y > {least}) & (y < {past}); "
        f"{terms.type(dst)} r = {_convert(terms, inside, wide, dst)}; "
        f"r = {_select(terms, dst)(above, terms.literal(high, dst), 'r')}; "
    )
    if low:
        body += f"r = {_select(terms, dst)(below, terms.literal(low, dst), 'r')}; "
    return terms.function(f"{short(src)}_to_{short(dst)}", dst, [(src, "x")], f"{body}return r;")


def _round_to_odd(terms: Terms, count: int) -> str:
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
        f, d, w = terms.type(single), terms.type(double), terms.type(word)
        q = terms.type(dtypes.int64.vec(count))
        farther = f"({d})(({q})b & magnitude) > ({d})(({q})x & magnitude)"
        body = (
            f"{f} f = {_convert(terms, 'x', double, single)}; {d} b = {_convert(terms, 'f', single, double)}; "
            f"{q} magnitude = ({q}){{}} + 0x7fffffffffffffffll; "
            f"{w} away = {_convert(terms, farther, double, word)}; "
            f"{w} inexact = {_convert(terms, '(b != x) & (x == x)', double, word)}; "
            f"{w} odd = (({w})f + away) | 1; return ({f})((odd & inexact) | (({w})f & ~inexact));"
        )
    return terms.function(f"odd_f64x{count}", single, [(double, "x")], body)


def _non_finite(value: float, dtype: DType) -> str:
    letter = "" if dtype is dtypes.float64 else "f"
    return f'__builtin_nan{letter}("")' if value != value else f"__builtin_inf{letter}()"


DIALECT = Dialect(
    language="C",
    scalars=_NAMES,
    boolean="_Bool",
    kernel=lambda name, parameters, group: f"void {name}({parameters or 'void'})",
    preamble=(
        "#ifdef __clang__", "#pragma clang fp contract(off)",
        "#else", '#pragma GCC optimize("fp-contract=off")', "#endif",
    ),
    non_finite=_non_finite,
    builtins={key: _function(scalar) for key, (_, scalar) in _FUNCTIONS.items()},
    cast=_cast,
    array=lambda space, kind, name, size: f"{kind} {name}[{size}] __attribute__((aligned(64)))",
    prefetch=lambda pointer, index, nbytes:
        f"__builtin_prefetch((const void*)((unsigned long long){pointer} + {nbytes} * {index}));",
    streaming=Streaming(
        preamble=(
            "#ifdef __clang__", "#define TG_STREAM(place, value) __builtin_nontemporal_store(value, place)",
            "#else", "#define TG_STREAM(place, value) (*(place) = (value))", "#endif",
        ),
        misaligned=lambda pointer: f"(unsigned long long){pointer} % 64",
        store=lambda kind, place, value: f"TG_STREAM(({kind}*)({place}), {value});",
        # what went past the caches is seen by whoever is told next
        ending=("  __atomic_thread_fence(__ATOMIC_SEQ_CST);",),
    ),
    # Clang would end vectors of few iterations with masked stores, of which LLVM 22 writes some past what is wanted
    # (see tg_codegen.render.llvm.memory).
    short_loop="#pragma clang loop vectorize(disable)",
    few=16,
    vectors=Vectors(
        define=lambda name, lane, dtype: f"typedef {lane} {name} __attribute__((vector_size({dtype.itemsize})));",
        literal=_literal,
        lane=lambda vector, index: f"{vector}[{index}]",
        masks=True,
        shuffle=_shuffle,
        whole=lambda memory, space, divisor: True,
        load=lambda terms, memory, space, pointer, index: f"*(const {_loose(terms, memory)}*)({pointer} + {index})",
        store=lambda terms, memory, space, pointer, index, value:
            f"*({_loose(terms, memory)}*)({pointer} + {index}) = {value};",
        whole_if_all=True,
        operators=Operators(
            convert=lambda kind, x: f"__builtin_convertvector({bare(x)}, {kind})",
            reinterpret=lambda kind, x: f"({kind}){x}",
            select=_select,
            byte_masks=True,
            number=lambda terms, value, dtype: str(value),
            builtins={key: _function_of_lanes(*names) for key, names in _FUNCTIONS.items()},
            widened=frozenset({dtypes.float16}),  # by clang 19
        ),
    ),
)  # fmt: skip


class ClangRenderer(CStyleRenderer):
    """Writes C for a CPU.

    Args:
      target: the machine; a plain CPU if omitted.
    """

    name: ClassVar[str] = "CLANG"
    dialect: ClassVar[Dialect] = DIALECT

    def __init__(self, target: Target | None = None) -> None:
        super().__init__(target or Target())
