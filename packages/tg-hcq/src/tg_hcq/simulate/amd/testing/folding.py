"""What LLVM computes itself of instructions of lanes, where all their sources are constants: a second oracle.

Each row says in LLVM IR what an instruction does. ``opt`` folds it, so that nothing of the software GPU, and no
specification of it, has a part in the number that comes out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...engine.testing import DOUBLE, SINGLE


@dataclass(frozen=True, slots=True)
class Folded:
    """An instruction as an expression.

    Attributes:
      result: LLVM's type.
      sources: types of the sources.
      text: the expression, with ``{0}`` for a source with its type, and ``{0.name}`` without.
      declares: what it calls.
      least, most: bounds of the last integer source, beyond which IR says nothing.
    """

    result: str
    sources: tuple[str, ...]
    text: str
    declares: str = ""
    least: int = 0
    most: int | None = None


def _call(name: str, result: str, *sources: str, more: str = "", most: int | None = None, least: int = 0) -> Folded:
    arguments = ", ".join(f"{{{i}}}" for i in range(len(sources))) + (f", {more}" if more else "")
    kinds = ", ".join(sources) + (f", {more.partition(' ')[0]}" if more else "")
    return Folded(result, sources, f"call {result} @{name}({arguments})", f"declare {result} @{name}({kinds})",
                  least, most)  # fmt: skip


def _binary(op: str, kind: str, most: int | None = None, swapped: bool = False) -> Folded:
    first, second = ("1", "0") if swapped else ("0", "1")
    return Folded(kind, (kind, kind), f"{op} {kind} {{{first}.name}}, {{{second}.name}}", "", 0, most)


def _compare(op: str, how: str, kind: str) -> Folded:
    return Folded("i1", (kind, kind), f"{op} {how} {kind} {{0.name}}, {{1.name}}")


_ORDERS = {
    "eq": "oeq", "lg": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "neq": "une", "nlg": "ueq",
    "nlt": "uge", "nle": "ugt", "ngt": "ule", "nge": "ult", "o": "ord", "u": "uno",
}  # fmt: skip
"""LLVM's names of comparisons of floats."""


def _table() -> dict[str, Folded]:
    found: dict[str, Folded] = {}
    for kind, name in (("half", "f16"), ("float", "f32"), ("double", "f64")):
        for op in ("add", "sub", "mul"):
            found[f"v_{op}_{name}"] = _binary(f"f{op}", kind)
        found[f"v_subrev_{name}"] = _binary("fsub", kind, swapped=True)
        found[f"v_fma_{name}"] = _call(f"llvm.fma.{name}", kind, kind, kind, kind)
        for ours, theirs in (("trunc", "trunc"), ("rndne", "roundeven"), ("floor", "floor"), ("ceil", "ceil")):
            found[f"v_{ours}_{name}"] = _call(f"llvm.{theirs}.{name}", kind, kind)
        found[f"v_frexp_mant_{name}"] = _call(f"llvm.amdgcn.frexp.mant.{name}", kind, kind)
        exponent = "i16" if name == "f16" else "i32"
        found[f"v_frexp_exp_{exponent}_{name}"] = _call(f"llvm.amdgcn.frexp.exp.{exponent}.{name}", exponent, kind)
        for ours, theirs in _ORDERS.items():
            found[f"v_cmp_{ours}_{name}"] = _compare("fcmp", theirs, kind)
        found[f"v_cmp_class_{name}"] = _call(f"llvm.amdgcn.class.{name}", "i1", kind, "i32")
    for kind, name in (("float", "f32"), ("double", "f64")):
        for sign, letter in (("s", "i"), ("u", "u")):
            found[f"v_cvt_{letter}32_{name}"] = _call(f"llvm.fpto{sign}i.sat.i32.{name}", "i32", kind)
            found[f"v_cvt_{name}_{letter}32"] = Folded(kind, ("i32",), f"{sign}itofp {{0}} to {kind}")
    for sign, letter in (("s", "i"), ("u", "u")):
        found[f"v_cvt_{letter}16_f16"] = _call(f"llvm.fpto{sign}i.sat.i16.f16", "i16", "half")
        found[f"v_cvt_f16_{letter}16"] = Folded("half", ("i16",), f"{sign}itofp {{0}} to half")
        for bits in (16, 32):
            kind, name = f"i{bits}", f"{letter}{bits}"
            for op in ("min", "max"):
                found[f"v_{op}_{name}"] = _call(f"llvm.{sign}{op}.{kind}", kind, kind, kind)
        for bits in (16, 32, 64):
            kind, name = f"i{bits}", f"{letter}{bits}"
            for ours in ("lt", "le", "gt", "ge"):
                found[f"v_cmp_{ours}_{name}"] = _compare("icmp", f"{sign}{ours}", kind)
            for ours in ("eq", "ne"):
                found[f"v_cmp_{ours}_{name}"] = _compare("icmp", ours, kind)
        found[f"v_bfe_{letter}32"] = _call(f"llvm.amdgcn.{sign}bfe.i32", "i32", "i32", "i32", "i32")
    for op in ("and", "or", "xor"):
        found[f"v_{op}_b32"] = _binary(op, "i32")
        found[f"v_{op}_b16"] = _binary(op, "i16")
    found["v_mul_lo_u32"], found["v_mul_lo_u16"] = _binary("mul", "i32"), _binary("mul", "i16")
    found["v_add_nc_u32"], found["v_add_nc_u16"] = _binary("add", "i32"), _binary("add", "i16")
    found["v_sub_nc_u32"], found["v_sub_nc_u16"] = _binary("sub", "i32"), _binary("sub", "i16")
    for name, op in (("lshlrev_b", "shl"), ("lshrrev_b", "lshr"), ("ashrrev_i", "ashr")):
        for bits in (16, 32):
            kind = f"i{bits}"
            shift = f"{op} {kind} {{1.name}}, {{0.name}}"
            found[f"v_{name}{bits}"] = Folded(kind, (kind, kind), shift, "", 0, bits - 1)
    found["v_cvt_f32_f16"] = Folded("float", ("half",), "fpext {0} to float")
    found["v_cvt_f64_f32"] = Folded("double", ("float",), "fpext {0} to double")
    found["v_cvt_f16_f32"] = Folded("half", ("float",), "fptrunc {0} to half")
    found["v_cvt_f32_f64"] = Folded("float", ("double",), "fptrunc {0} to float")
    found["v_cvt_pkrtz_f16_f32"] = _call("llvm.amdgcn.cvt.pkrtz", "<2 x half>", "float", "float")
    found["v_cvt_off_f32_i4"] = _call("llvm.amdgcn.cvt.off.f32.i4", "float", "i32")
    found["v_perm_b32"] = _call("llvm.amdgcn.perm", "i32", "i32", "i32", "i32")
    found["v_alignbit_b32"] = _call("llvm.fshr.i32", "i32", "i32", "i32", "i32")
    found["v_bfrev_b32"] = _call("llvm.bitreverse.i32", "i32", "i32")
    found["v_med3_f32"] = _call("llvm.amdgcn.fmed3.f32", "float", "float", "float", "float")
    found["v_mul_legacy_f32"] = _call("llvm.amdgcn.fmul.legacy", "float", "float", "float")
    found["v_fma_legacy_f32"] = _call("llvm.amdgcn.fma.legacy", "float", "float", "float", "float")
    found["v_fract_f32"] = _call("llvm.amdgcn.fract.f32", "float", "float")
    found["v_fract_f64"] = _call("llvm.amdgcn.fract.f64", "double", "double")
    found["v_ldexp_f32"] = _call("llvm.ldexp.f32.i32", "float", "float", "i32")
    found["v_ldexp_f64"] = _call("llvm.ldexp.f64.i32", "double", "double", "i32")
    found["v_trig_preop_f64"] = _call("llvm.amdgcn.trig.preop.f64", "double", "double", "i32")
    found["v_ffbh_u32"] = _call("llvm.ctlz.i32", "i32", "i32", more="i1 false", least=1)
    found["v_ffbl_b32"] = _call("llvm.cttz.i32", "i32", "i32", more="i1 false", least=1)
    return found


FOLDED = _table()
"""By a name of the instruction; others are those of other generations."""
ALIASES = {
    "v_add_u32": "v_add_nc_u32", "v_sub_u32": "v_sub_nc_u32", "v_add_u16": "v_add_nc_u16", "v_sub_u16": "v_sub_nc_u16",
    "v_clz_i32_u32": "v_ffbh_u32", "v_ctz_i32_b32": "v_ffbl_b32", "v_mul_dx9_zero_f32": "v_mul_legacy_f32",
    "v_fma_dx9_zero_f32": "v_fma_legacy_f32", "v_cvt_pk_rtz_f16_f32": "v_cvt_pkrtz_f16_f32",
    "v_med3_num_f32": "v_med3_f32",
}  # fmt: skip
"""The same under another generation's name."""


def folded(name: str) -> Folded | None:
    """What LLVM computes of an instruction; of a comparison that writes EXEC, what it says of the other."""
    plain = re.sub(r"^v_cmpx_", "v_cmp_", name)
    return FOLDED.get(ALIASES.get(plain, plain))


@dataclass(frozen=True, slots=True)
class Difference:
    """Sources of which AMD's manual and LLVM say different things; the software GPU does what the manual says.

    Attributes:
      name: of the instruction, in :data:`FOLDED`.
      names: all its names.
      holds: whether the sources are such.
      example: the patterns of such sources.
      ieee: IEEE of the MODE register, with which they differ.
      manual: what the manual says, and where.
      llvm: what LLVM does, and where.
    """

    name: str
    names: str
    holds: Callable[[Sequence[int]], bool]
    example: tuple[int, ...]
    ieee: bool
    manual: str
    llvm: str


def _zero(x: int) -> bool:
    return not x & ~SINGLE.sign


DIFFERENCES = (
    Difference(
        "v_med3_f32", "`v_med3_f32`, with IEEE off in MODE",
        lambda values: SINGLE.is_nan(values[2]) and not any(map(SINGLE.is_nan, values[:2])),
        (0x40000000, 0x3F800000, SINGLE.nan), False,
        "where a source is NaN, the least of the others (RDNA 3, 16.10, V_MED3_F32)",
        "the greatest of the others, where the third source alone is NaN (`GCNTTIImpl::instCombineIntrinsic`)",
    ),
    Difference(
        "v_fma_legacy_f32", "`v_fma_legacy_f32`, `v_fma_dx9_zero_f32`",
        lambda values: values[2] == SINGLE.sign and any(map(_zero, values[:2])),
        (0, 0x3F800000, SINGLE.sign), True,
        "where a factor is zero, the third source, so -0 for -0 (RDNA 3, 16.10, V_FMA_DX9_ZERO_F32)",
        "the third source added to +0, so +0 for -0 (`GCNTTIImpl::instCombineIntrinsic`)",
    ),
    Difference(
        "v_trig_preop_f64", "`v_trig_preop_f64`",
        lambda values: DOUBLE.is_nan(values[0]),
        (DOUBLE.nan, 0), True,
        "of a NaN the digits that its exponent says (RDNA 3, 16.10, V_TRIG_PREOP_F64)",
        "a NaN (`GCNTTIImpl::instCombineIntrinsic`)",
    ),
)  # fmt: skip
