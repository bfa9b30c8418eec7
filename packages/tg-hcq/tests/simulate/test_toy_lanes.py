"""Every handler of lanes and scalars of the toy against a specification in Python, written without its source."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from tg_hcq.simulate.engine import engine
from tg_hcq.simulate.engine.handlers import ScalarHandler, VectorHandler
from tg_hcq.simulate.engine.testing import DOUBLE, HALF, SINGLE, Bench, Format, Specification
from tg_hcq.simulate.toy import TOY

pytest.importorskip("llvmlite")


def signed(bits: int, x: int) -> int:
    return x - (x >> (bits - 1) << bits)


def both_signed(bits: int, choose: Callable[[int, int], object]) -> Specification:
    return lambda x, y: int(choose(signed(bits, x), signed(bits, y)))  # type: ignore[call-overload]


def integers(bits: int) -> dict[str, Specification]:
    return {
        "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
        "xor": operator.xor, "umin": min, "umax": max,
        "smin": both_signed(bits, min), "smax": both_signed(bits, max),
        "shl": lambda x, y: x << y % bits, "lshr": lambda x, y: x >> y % bits,
        "ashr": lambda x, y: signed(bits, x) >> y % bits,
    }  # fmt: skip


def ordered(form: Format, test: Callable[[Any, Any], bool]) -> Specification:
    def compare(x: int, y: int) -> int:
        if form.is_nan(x) or form.is_nan(y):
            return 0
        a, b = (
            (1 if n < form.sign else -1) * 10**400 if form.is_infinite(n) else form.value(n) for n in (x, y)
        )
        return int(test(a, b))

    return compare


SPECIFICATIONS: dict[str, Specification] = {}
for _bits in (16, 32, 64):
    for _name, _specification in integers(_bits).items():
        SPECIFICATIONS[f"v_{_name}_i{_bits}"] = SPECIFICATIONS[f"s_{_name}_i{_bits}"] = _specification
for _form in (HALF, SINGLE, DOUBLE):
    for _name in ("add", "sub", "mul", "div"):
        SPECIFICATIONS[f"v_f{_name}_f{_form.bits}"] = getattr(_form, _name)
    SPECIFICATIONS[f"v_fma_f{_form.bits}"] = _form.fma
    SPECIFICATIONS[f"v_sqrt_f{_form.bits}"] = _form.sqrt


def comparisons(bits: int) -> dict[str, Specification]:
    return {
        "eq": operator.eq, "ne": operator.ne, "ult": operator.lt, "ule": operator.le,
        "slt": both_signed(bits, operator.lt), "sle": both_signed(bits, operator.le),
    }  # fmt: skip


def float_comparisons(form: Format) -> dict[str, Specification]:
    equal = ordered(form, operator.eq)
    return {
        "oeq": equal, "olt": ordered(form, operator.lt), "ole": ordered(form, operator.le),
        "une": lambda x, y: not equal(x, y), "uno": lambda x, y: form.is_nan(x) or form.is_nan(y),
    }  # fmt: skip


for _form in (HALF, SINGLE, DOUBLE):
    for _name, _specification in comparisons(_form.bits).items():
        SPECIFICATIONS[f"v_cmp_{_name}_i{_form.bits}"] = SPECIFICATIONS[f"s_cmp_{_name}_i{_form.bits}"] = _specification
    for _name, _specification in float_comparisons(_form).items():
        SPECIFICATIONS[f"v_cmp_{_name}_f{_form.bits}"] = _specification
SPECIFICATIONS |= {
    "v_uitofp_i32_f32": lambda x: SINGLE.round(Fraction(x)),
    "v_sitofp_i32_f32": lambda x: SINGLE.round(Fraction(signed(32, x))),
    "v_fpext_f16_f32": lambda x: HALF.convert(x, SINGLE),
    "v_fptrunc_f32_f16": lambda x: SINGLE.convert(x, HALF),
    "v_fpext_f32_f64": lambda x: SINGLE.convert(x, DOUBLE),
    "v_fptrunc_f64_f32": lambda x: DOUBLE.convert(x, SINGLE),
    "v_fptosi_f32_i32": lambda x: SINGLE.to_int(x, -(1 << 31), (1 << 31) - 1),
    "v_fptoui_f32_i32": lambda x: SINGLE.to_int(x, 0, (1 << 32) - 1),
    "v_sext_i8_i32": lambda x: signed(8, x),
    "v_zext_i16_i32": lambda x: x,
    "v_mov_i32": lambda x: x,
    "v_mul_hi_u32": lambda x, y: x * y >> 32,
    "v_mul_hi_i32": lambda x, y: signed(32, x) * signed(32, y) >> 32,
    "v_add_carry_i32": lambda x, y: (x + y, x + y >> 32),
    "v_add_with_carry_i32": lambda x, y, carry: (x + y + carry, x + y + carry >> 32),
    "v_select_i32": lambda m, x, y: x if m else y,
    "s_mov_i32": lambda x: x,
    "s_mov_i64": lambda x: x,
    "s_not_i64": lambda x: ~x,
}
HANDLERS = [n for n, handler in TOY.handlers.items() if isinstance(handler, (VectorHandler, ScalarHandler))]


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("name", HANDLERS)
def test_against_its_specification(name: str, lanes: int) -> None:
    Bench(engine(TOY, lanes), "s", "m").fuzz(name, SPECIFICATIONS[name], rounds=6, seed=lanes)


def test_a_wrong_specification_is_noticed() -> None:
    with pytest.raises(AssertionError, match=r"v_add_i32, lane \d+: of .* came"):
        Bench(engine(TOY, 64), "s", "m").fuzz("v_add_i32", lambda x, y: x + y + (x == 31), rounds=20)
    with pytest.raises(AssertionError, match="v_fma_f32, lane"):
        Bench(engine(TOY, 64), "s", "m").fuzz(
            "v_fma_f32", lambda x, y, z: SINGLE.add(SINGLE.mul(x, y), z), rounds=40)
