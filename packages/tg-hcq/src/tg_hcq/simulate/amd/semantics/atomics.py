"""What atomics store, of what was there and of their data; a name for each generation.

Sources: AMD, "RDNA3 Instruction Set Architecture", 16.12 and 16.15; "RDNA4", the same; "CDNA3", 12.13 and 12.15.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...engine import F16, F32, Type, Value
from ...engine.ir import Builder
from ...engine.transfers import Modify
from ..architecture import Architecture


@dataclass(frozen=True, slots=True)
class Atomic:
    """An operation.

    Attributes:
      op: LLVM's name of it, or a name of its own.
      nbytes: 4 or 8.
      modify: what is stored, where LLVM has no such operation.
      operands: of data.
    """

    op: str
    nbytes: int
    modify: Modify | None = None
    operands: int = 1


_INTEGERS: Final = {
    "add": ("u", "add"), "sub": ("u", "sub"), "smin": ("i", "min"), "umin": ("u", "umin"), "smax": ("i", "max"),
    "umax": ("u", "umax"), "and": ("b", "and"), "or": ("b", "or"), "xor": ("b", "xor"), "inc": ("u", "uinc_wrap"),
    "dec": ("u", "udec_wrap"), "swap": ("b", "xchg"),
}  # fmt: skip
"""By gfx9's names: what gfx11 puts before the size, and LLVM's operation."""


def memory_atomics(arch: Architecture) -> dict[str, Atomic]:
    """Atomics of global and generic memory, by what follows ``atomic_``."""
    found: dict[str, Atomic] = {}
    newer = arch.generation >= 11
    for name, (kind, op) in _INTEGERS.items():
        for nbytes in (4, 8):
            plain = name[1:] if name in ("smin", "umin", "smax", "umax") else name
            shown = f"{plain}_{kind}{8 * nbytes}" if newer else name + ("_x2" if nbytes == 8 else "")
            found[shown] = Atomic(op, nbytes)
    for nbytes in (4, 8):
        found[f"cmpswap_b{8 * nbytes}" if newer else f"cmpswap{'_x2' if nbytes == 8 else ''}"] = Atomic(
            "cmpxchg", nbytes)  # fmt: skip
    found["csub_u32" if newer else "csub"] = Atomic("usub_sat", 4)
    found |= {"sub_clamp_u32": Atomic("usub_sat", 4), "cond_sub_u32": Atomic("usub_cond", 4)}
    for bits in (32, 64):
        found[f"add_f{bits}"] = Atomic("fadd", bits // 8)
        for way in ("min", "max"):
            atomic = Atomic(f"{way}_f", bits // 8, _extreme(way))
            found[f"{way}_f{bits}"] = atomic
            found[f"f{way}{'_x2' if bits == 64 else ''}"] = atomic
            found[f"{way}_num_f{bits}"] = Atomic(f"{way}_num_f", bits // 8, _number(way))
    found["pk_add_f16"] = Atomic("pk_add_f16", 4, _packed_half)
    found["pk_add_bf16"] = Atomic("pk_add_bf16", 4, _packed_brain)
    return found


def local_atomics(arch: Architecture) -> dict[str, Atomic]:
    """Atomics of LDS, by the operation and the type: ``add_u32``; results are asked for by ``_rtn`` between them."""
    found: dict[str, Atomic] = {}
    for nbytes in (4, 8):
        bits = 8 * nbytes
        for name, (kind, op) in _INTEGERS.items():
            plain = name[1:] if name in ("smin", "umin", "smax", "umax") else name
            if name == "swap":
                plain = "storexchg" if arch.generation >= 11 else "wrxchg"
            found[f"{plain}_{kind}{bits}"] = Atomic(op, nbytes)
        found[f"rsub_u{bits}"] = Atomic("rsub", nbytes, lambda b, old, data, _: data - old)
        found[f"mskor_b{bits}"] = Atomic("mskor", nbytes, lambda b, old, mask, new: (old & ~mask) | new, 2)
        found[f"cmpstore_b{bits}"] = Atomic("cmpxchg", nbytes, operands=2)
        found[f"cmpst_b{bits}"] = Atomic("cmpst", nbytes, _compare_first, 2)
        found[f"add_f{bits}"] = Atomic("fadd", nbytes)
        for way in ("min", "max"):
            found[f"{way}_f{bits}"] = Atomic(f"{way}_f", nbytes, _extreme(way))
            found[f"{way}_num_f{bits}"] = Atomic(f"{way}_num_f", nbytes, _number(way))
    found |= {
        "sub_clamp_u32": Atomic("usub_sat", 4), "cond_sub_u32": Atomic("usub_cond", 4),
        "pk_add_f16": Atomic("pk_add_f16", 4, _packed_half), "pk_add_bf16": Atomic("pk_add_bf16", 4, _packed_brain),
        "wrap_b32": Atomic("wrap", 4, _wrap, 2),
    }  # fmt: skip
    return found


def _float(b: Builder, x: Value) -> Value:
    return b.bits(x, Type("f", x.type.bits))


def _extreme(way: str) -> Modify:
    """What was there stays unless the data is beyond it, so a NaN there stays."""

    def modify(b: Builder, old: Value, data: Value, _: Value) -> Value:
        beyond = b.compare("olt" if way == "min" else "ogt", _float(b, data), _float(b, old))
        return b.select(beyond, data, old)

    return modify


def _number(way: str) -> Modify:
    """A number rather than a NaN; -0 is less than +0."""

    def modify(b: Builder, old: Value, data: Value, _: Value) -> Value:
        x, y, top = _float(b, data), _float(b, old), data.type.bits - 1
        beyond = b.compare("olt" if way == "min" else "ogt", x, y)
        sign = 1 if way == "min" else 0
        zeros = b.compare("oeq", x, y) & b.compare("eq", data >> top, sign)
        chosen = b.select(beyond | zeros | b.compare("uno", y, y), data, old)
        quiet = 1 << {32: 22, 64: 51}[data.type.bits]
        both = b.compare("uno", x, x) & b.compare("uno", y, y)
        kept = b.select(b.compare("uno", x, x), old, chosen)
        return b.select(both, data | quiet, kept)

    return modify


def _packed_half(b: Builder, old: Value, data: Value, _: Value) -> Value:
    pair = F16.of(2)
    total = b.binary("fadd", *(b.emit(pair, f"bitcast i32 {value.text} to {pair}") for value in (old, data)))
    return b.emit(old.type, f"bitcast {pair} {total.text} to i32")


def _packed_brain(b: Builder, old: Value, data: Value, _: Value) -> Value:
    """Upper halves of floats: the sum is rounded to nearest even."""
    halves = []
    for pair in ((old << 16, data << 16), (old & -0x10000, data & -0x10000)):
        total = b.bits(b.binary("fadd", *(b.bits(value, F32) for value in pair)), old.type)
        rounded = (total + 0x7FFF + (total >> 16 & 1)) >> 16
        no_number = b.compare("ugt", total & 0x7FFFFFFF, 0x7F800000)
        halves.append(b.select(no_number, b.value(old.type, 0x7FC0), rounded))
    return halves[0] | (halves[1] << 16)


def _compare_first(b: Builder, old: Value, expected: Value, new: Value) -> Value:
    return b.select(b.compare("eq", old, expected), new, old)


def _wrap(b: Builder, old: Value, low: Value, step: Value) -> Value:
    return b.select(b.compare("uge", old, low), old - low, old + step)
