"""The comparison behind the conformance cases: it accepts what is right, and tells what is not."""

from __future__ import annotations

import math
import random

import pytest

from tg_codegen.conformance import Expected, cases, chosen_case, elementwise_case, encode_buffer
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import DType, dtypes

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("dtype", [dtypes.bool, dtypes.int8, dtypes.float32])
def test_one_wrong_element_is_told(dtype: DType) -> None:
    """Of every op, those that may be off by a little too: no other value is near enough."""
    case = elementwise_case(LLVMRenderer(), dtype, 1, relaxed=1e-6)
    right = [encode_buffer([accepted[-1] for accepted in o.accepted], o.dtype) for o in case.outputs]
    case.check(right)
    assert any(o.tolerance for o in case.outputs) == dtypes.is_float(dtype)
    seed = random.SystemRandom().randrange(1 << 32)
    draw = random.Random(seed)
    for number, output in enumerate(case.outputs):
        at, size = draw.randrange(len(output.accepted)), output.dtype.itemsize
        other = next(v for v in (0, 1, 3) if all(v != a and not abs(v - a) < 0.1 for a in output.accepted[at]))
        wrong = list(map(bytearray, right))
        wrong[number][at * size : (at + 1) * size] = encode_buffer([other], output.dtype)
        with pytest.raises(AssertionError) as told:
            case.check(wrong)
        assert f": 1 wrong\n{output.label} [{at}]" in str(told.value), f"drawn with the seed {seed}"


@pytest.mark.parametrize(
    ("want", "tolerance", "near", "off"),
    [
        (1.0, 0.0, [1.0], [1.0 + 2**-52, 0.0, -1.0, INF, NAN]),
        (1.0, 0.25, [0.75, 1.25], [0.5, 1.5, -1.0, INF, -INF, NAN]),
        (-64.0, 0.25, [-48.0, -80.0], [-47.0, -81.0, 64.0, 0.0, NAN]),
        (INF, 0.25, [INF], [-INF, 1e308, NAN]),
        (NAN, 0.25, [NAN], [0.0, INF]),
        (0.0, 0.0, [0.0], [-0.0, 5e-324]),
        (-0.0, 0.25, [-0.0, 1e-7], [0.0, 1e-6]),
    ],
)
def test_near_and_off(want: float, tolerance: float, near: list[float], off: list[float]) -> None:
    """Signs of zero, infinities and NaN are never a matter of tolerance; of tiny numbers a part of 1e-6 is allowed."""
    output = Expected("x", dtypes.float64, [(want,)] * len(near + off), tolerance)
    told = output.wrong(encode_buffer(near + off, dtypes.float64))
    assert [line.partition(":")[0] for line in told] == [f"x [{n}]" for n in range(len(near), len(near + off))]


def test_a_choice_is_tried_of_all_that_has_other_dtypes_of_its_size_but_bool() -> None:
    names = {case.name for case in cases(LLVMRenderer())}
    chosen = {d for d in dtypes.all for case in [chosen_case(dtypes.all, d, 1)] if case.name in names}
    assert dtypes.bool not in chosen
    assert {dtypes.int8, dtypes.uint16, dtypes.float32, dtypes.int64} <= chosen
