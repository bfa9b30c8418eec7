"""Functions of floats on devices: by how much they are off, and their special values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tools import accuracy

from tg_dtype import DType, dtypes
from tg_lazy import Context
from tinytg import Tensor

NAN, INF = math.nan, math.inf
BY_NAME = {function.name: function for function in accuracy.FUNCTIONS}
PRESENT = [device for device in accuracy.DEVICES if not accuracy.missing(device)]
DEVICES = [
    pytest.param(device, marks=pytest.mark.dense) if device in accuracy.SLOW else device for device in PRESENT
]
# Each of another family of algorithms; compiling all of them for every device takes minutes.
SOME = ("exp", "log", "log1p", "cos", "tan", "asin", "tanh", "atanh", "erf", "sigmoid", "pow", "atan2")
# What each function was furthest off at, and what it gave.
KNOWN = {
    "cos": (26.7035, 4.7123889), "tan": (1.5707963, 4.712389), "atanh": (1e-8, 1e-5), "erf": (0.0, -0.0, 1e-9),
    "asinh": (1e-10, -1e20, 1e20), "tanh": (1e-10, -1e-8), "sinh": (1e-8, 89.0, -89.4), "exp": (88.7, -87.3, -103.9),
    "cosh": (88.7, 89.4), "sigmoid": (-87.3, -100.0, -103.9), "softplus": (-31.88, -100.0),
    "acosh": (1e20, 1.0000001), "expm1": (1e-10, -1e-20), "log1p": (1e-10, -1e-20, -0.9999999),
}  # fmt: skip


def worst(name: str, dtype: DType, device: str, points: int) -> accuracy.Worst:
    return accuracy.measure(BY_NAME[name], dtype, (device,), points)[device]


@pytest.mark.parametrize("name", BY_NAME)
def test_float32_on_the_cpu(name: str) -> None:
    found = worst(name, dtypes.float32, PRESENT[0], 4000)
    assert found.at and found.error <= BY_NAME[name].bound(dtypes.float32), f"{name}: {found}"


@pytest.mark.parametrize("name", KNOWN)
def test_where_it_was_far_off(name: str) -> None:
    data = np.array(KNOWN[name], np.float32)
    function = BY_NAME[name]
    with Context(DEV=PRESENT[0]):
        got = accuracy.computed(function, (data,), dtypes.float32)
    error = accuracy.errors(got, accuracy.exact(function, (data,), dtypes.float32), dtypes.float32)
    assert (error <= function.bound(dtypes.float32)).all(), (got, error)


def test_silu() -> None:
    """Where it is a normal number: PyTorch's is 0 from -88.8 on."""
    data = np.linspace(-87, 88, 20_001).astype(np.float32)
    wide = data.astype(np.longdouble)
    wanted = wide / (1 + np.exp(-wide)), np.zeros(len(data))
    assert accuracy.errors(Tensor(data).silu().numpy(), wanted, dtypes.float32).max() <= 3
    assert Tensor(np.array([-100.0], np.float32)).silu().item() == pytest.approx(-100 * math.exp(-100), rel=1e-2)


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _sigmoid(x: Any) -> Any:
    return np.exp(-_softplus(-x))


_TWICE = np.sqrt(8 / np.longdouble(np.pi))
COMPOSITES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Any], Any], float, float, float]] = {
    "gelu": (Tensor.gelu, lambda x: x * _sigmoid(_TWICE * (x + x**3 * 0.044715)), -5, 88, 33),
    "mish": (Tensor.mish, lambda x: x * np.tanh(_softplus(x)), -87, 88, 4),
    "elu": (Tensor.elu, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), -87, 88, 2.5),
    "logsigmoid": (Tensor.logsigmoid, lambda x: -_softplus(-x), -87, 88, 2.5),
    "softsign": (Tensor.softsign, lambda x: x / (1 + np.abs(x)), -1e9, 1e9, 2),
    "hardsigmoid": (Tensor.hardsigmoid, lambda x: np.clip(x + 3, 0, 6) / 6, -4, 4, 2),
    "hardswish": (Tensor.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6, -4, 4, 3),
    "logaddexp": (lambda t: t.logaddexp(1), lambda x: np.logaddexp(x, np.longdouble(1)), -120, 40, 2),
}
"""What is made of the functions above: the method, the exact function, where it is a normal number, and the bound."""


@pytest.mark.parametrize("name", COMPOSITES)
def test_composites_keep_their_digits(name: str) -> None:
    """Also where a sum of large parts is small: gelu = x (1 + tanh(u)) / 2 had none left below -5."""
    method, exact, low, high, bound = COMPOSITES[name]
    near = 10.0 ** np.linspace(-30, math.log10(-low), 3000)
    data = np.concatenate([np.linspace(low, high, 20_001), near[:-1], -near[:-1]]).astype(np.float32)
    wanted = exact(data.astype(np.longdouble)), np.zeros(len(data))
    error = accuracy.errors(method(Tensor(data)).numpy(), wanted, dtypes.float32)
    assert error.max() <= bound, data[int(error.argmax())]


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["exp", "tanh", "erfc", "rsqrt", "remainder"])
def test_narrow_floats_are_rounded_once(name: str, dtype: DType) -> None:
    found = worst(name, dtype, PRESENT[0], 4000)
    assert found.error <= 0.51, f"{name}: {found}"


@pytest.mark.parametrize("device", DEVICES[1:])
@pytest.mark.parametrize("name", SOME)
def test_float32_elsewhere(name: str, device: str) -> None:
    found = worst(name, dtypes.float32, device, 1000)
    assert found.error <= BY_NAME[name].bound(dtypes.float32), f"{name}: {found}"


@pytest.mark.dense
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("dtype", accuracy.KINDS, ids=str)
@pytest.mark.parametrize("name", BY_NAME)
def test_every_device(name: str, dtype: DType) -> None:
    function = BY_NAME[name]
    for device, found in accuracy.measure(function, dtype, PRESENT, 1_000_000).items():
        assert found.error <= function.bound(dtype), f"{device} {name}: {found}"


SPECIAL: dict[str, list[tuple[float, float]]] = {
    "exp": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0.0), (1000, INF), (-1000, 0.0)],
    "exp2": [(0.0, 1), (INF, INF), (-INF, 0.0), (1000, INF), (-1000, 0.0), (10, 1024)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1), (1000, INF), (1e-40, 1e-40)],
    "log": [(0.0, -INF), (-0.0, -INF), (1, 0.0), (INF, INF), (-1, NAN), (-INF, NAN)],
    "log2": [(0.0, -INF), (-0.0, -INF), (1, 0.0), (INF, INF), (-1, NAN), (2.0 ** (-149), -149)],
    "log10": [(0.0, -INF), (-0.0, -INF), (1, 0.0), (INF, INF), (-1, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1, -INF), (INF, INF), (-2, NAN), (-INF, NAN), (1e-40, 1e-40)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (1e-40, 1e-40)],
    "cos": [(0.0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (1e-40, 1e-40)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-INF, NAN), (1e-40, 1e-40)],
    "acos": [(1, 0.0), (1.5, NAN), (INF, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.5707963705062866), (-INF, -1.5707963705062866), (1e-40, 1e-40)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1000, INF), (-1000, -INF), (1e-40, 1e-40)],
    "cosh": [(0.0, 1), (INF, INF), (-INF, INF), (-1000, INF)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (1e-40, 1e-40)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e-40, 1e-40)],
    "acosh": [(1, 0.0), (INF, INF), (0.5, NAN), (-INF, NAN)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1, INF), (-1, -INF), (2, NAN), (INF, NAN), (1e-40, 1e-40)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1)],
    "erfc": [(0.0, 1), (-0.0, 1), (INF, 0.0), (-INF, 2)],
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-1, NAN)],
    "rsqrt": [(0.0, INF), (INF, 0.0), (-1, NAN)],
    "reciprocal": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0)],
    "sigmoid": [(0.0, 0.5), (INF, 1), (-INF, 0.0)],
    "softplus": [(INF, INF), (-INF, 0.0)],
    "silu": [(0.0, 0.0), (-0.0, -0.0), (INF, INF)],
    "abs": [(-0.0, 0.0), (-INF, INF), (-2, 2)],
}  # fmt: skip


def same(got: list[float], wanted: list[float]) -> bool:
    """Equal, signs of zeros included; for a subnormal its float32."""
    with np.errstate(over="ignore"):
        pairs = zip(got, np.array(wanted, np.float32).tolist(), strict=True)
    return all((g != g and w != w) or (g == w and math.copysign(1, g) == math.copysign(1, w)) for g, w in pairs)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("device", DEVICES)
def test_special_values(device: str) -> None:
    """All functions in few kernels: each argument in each function."""
    with Context(DEV=device):
        outs = []
        for name, table in SPECIAL.items():
            outs.append(getattr(Tensor(np.array([*(x for x, _ in table), NAN], np.float32)).realize(), name)())
        Tensor.realize(*outs)
        for (name, table), out in zip(SPECIAL.items(), outs, strict=True):
            assert same(out.tolist(), [*(y for _, y in table), NAN]), f"{name} of {table}: {out.tolist()}"


POWERS = [
    (0.0, 0.0, 1), (NAN, 0.0, 1), (1.0, NAN, 1), (-1.0, INF, 1), (-1.0, -INF, 1), (0.5, INF, 0.0), (0.5, -INF, INF),
    (2.0, INF, INF), (2.0, -INF, 0.0), (-0.0, 3.0, -0.0), (-0.0, 2.0, 0.0), (-0.0, -3.0, -INF), (0.0, -2.0, INF),
    (-INF, 3.0, -INF), (-INF, -3.0, -0.0), (-INF, 0.5, INF), (INF, -1.0, 0.0), (-8.0, 1 / 3, NAN), (-2.0, 3.0, -8),
    (NAN, 1.0, NAN), (2.0, NAN, NAN), (2.0, -149.0, 2.0**-149), (2.0, 128.0, INF), (-2.0, 129.0, -INF),
]  # fmt: skip
ANGLES = [
    (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (0.0, -0.0, math.pi), (-0.0, -0.0, -math.pi), (0.0, -1.0, math.pi),
    (1.0, 0.0, math.pi / 2), (-1.0, -0.0, -math.pi / 2), (INF, INF, math.pi / 4), (INF, -INF, 3 * math.pi / 4),
    (-INF, 1.0, -math.pi / 2), (1.0, INF, 0.0), (-1.0, INF, -0.0), (1.0, -INF, math.pi), (NAN, 1.0, NAN),
]  # fmt: skip
REMAINDERS = [
    (1e10, 3.0), (5.0, INF), (-5.0, INF), (5.0, -INF), (7.0, 0.1), (1.0, 0.1), (-7.0, 3.0), (7.0, -3.0), (-6.0, 3.0),
    (6.0, -3.0), (0.0, 2.0), (-0.0, 2.0), (1e30, 1e-30), (3e38, 7e-45), (-1e-40, 3e-41), (5.5, 2.25),
]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
def test_special_values_of_two_operands(device: str) -> None:
    with Context(DEV=device):
        for name, rows in (("pow", POWERS), ("atan2", ANGLES)):
            a, b, wanted = (list(column) for column in zip(*rows, strict=True))
            got = getattr(Tensor(np.array(a, np.float32)), name)(Tensor(np.array(b, np.float32))).tolist()
            assert same(got, wanted), f"{name}: {list(zip(rows, got, strict=True))}"


@pytest.mark.parametrize("device", DEVICES)
def test_remainders_are_pythons(device: str) -> None:
    a, b = (np.array(column, np.float32) for column in zip(*REMAINDERS, strict=True))
    wanted = [divmod(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    with Context(DEV=device):
        x, y = Tensor(a), Tensor(b)
        quotient, rest = divmod(x, y)
        assert same(rest.tolist(), [w[1] for w in wanted]), rest.tolist()
        assert same(quotient.tolist(), [w[0] for w in wanted]), quotient.tolist()
        assert same(x.fmod(y).tolist(), [math.fmod(p, q) for p, q in zip(a.tolist(), b.tolist(), strict=True)])
        zero = Tensor(np.array([1.0, -1.0, 0.0], np.float32))
        assert same((zero // 0.0).tolist(), [INF, -INF, NAN]) and same((zero % 0.0).tolist(), [NAN, NAN, NAN])


def test_remainders_of_float64() -> None:
    random = np.random.default_rng(3)
    a, b = random.normal(size=(2, 500)) * 2.0 ** random.integers(-1000, 1000, (2, 500))
    assert (Tensor(a) % Tensor(b)).tolist() == np.remainder(a, b).tolist()
    near = np.array([1.0, 7.0, -1.0, 1e15]), np.array([0.1, 0.7, 0.1, 0.3])
    assert (Tensor(near[0]) // Tensor(near[1])).tolist() == np.floor_divide(*near).tolist()


@pytest.mark.parametrize(("floats", "words"), [(np.float32, np.int32), (np.float64, np.int64)])
def test_remainders_near_whole_quotients(floats: type, words: type) -> None:
    """Quotients that rounding takes to the next whole number, of as many bits as a mantissa and more."""
    random = np.random.default_rng(11)
    mantissa = np.finfo(floats).nmant
    b: Any = np.ldexp(random.uniform(1, 2, 2003), random.integers(-30, 30, 2003)).astype(floats)
    quotients = np.floor(2.0 ** random.uniform(0, mantissa + 3, 2003))
    a: Any = (b * quotients).astype(floats)
    for ulps in range(-2, 3):
        beside = (a.view(words) + words(ulps)).view(floats) * random.choice(np.array([-1, 1], floats), 2003)
        got, wanted = Tensor(beside).fmod(Tensor(b)).numpy(), np.fmod(beside, b)
        assert np.array_equal(got, wanted) and np.array_equal(np.signbit(got), np.signbit(wanted))


def test_remainders_of_integers() -> None:
    a, b = np.array([7, -7, 7, -7, 5, 0]), np.array([3, 3, -3, -3, 0, 0])
    quotient, rest = divmod(Tensor(a), Tensor(b))
    assert quotient.tolist() == [2, -3, -3, 2, 0, 0] and rest.tolist() == [1, 2, -2, -1, 5, 0]
    assert [x.item() for x in divmod(7, Tensor(-2))] == [-4, -1]


def test_powers_of_integers() -> None:
    for base in (Tensor([-2, 0, 2]), Tensor([1], dtype="uint8")):
        with pytest.raises(ValueError, match=r"pow: integers .* negative power -2"):
            base**-2
    assert (Tensor([1, 2, -1]) ** Tensor([-2, -1, -3])).tolist() == [1, 0, -1]
    assert (Tensor([2, 4]) ** -2.0).tolist() == [0.25, 0.0625]


def test_the_page_is_what_the_results_say() -> None:
    known = json.loads(accuracy.RESULTS.read_text(encoding="utf-8"))
    assert accuracy.page(known) == accuracy.PAGE.read_text(encoding="utf-8"), "run python -m tools.accuracy --page"


def test_every_function_was_measured_and_is_within_its_bound() -> None:
    known = json.loads(accuracy.RESULTS.read_text(encoding="utf-8"))
    for dtype in accuracy.KINDS:
        assert set(known[dtype.name]) == set(BY_NAME)
        for name, devices in known[dtype.name].items():
            assert devices and max(row[0] for row in devices.values()) <= BY_NAME[name].bound(dtype), name
