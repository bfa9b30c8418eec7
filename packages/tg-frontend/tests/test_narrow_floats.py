"""What has squares, powers or exponentials inside keeps to the range of its result, not of these: float16 has 65504."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tg_frontend.nn.functional as F
from tg_dtype import DType, dtypes
from tg_frontend import Tensor, functions, linalg
from tg_frontend.functions import nanstd

Array = np.ndarray[Any, np.dtype[np.float64]]
Pair = tuple[Callable[[Any], Any], Callable[[Array], Any]]


def norms(ord: int) -> Pair:
    return lambda x: linalg.vector_norm(x, ord, 1), lambda x: np.linalg.norm(x, ord, 1)


def methods(p: int) -> Pair:
    return lambda x: x.norm(p, dim=1), lambda x: np.linalg.norm(x, p, 1)


OF: dict[str, Pair] = {
    **{f"norm {ord}": norms(ord) for ord in (1, 2, 3, 6, -1, -2)},
    **{f"Tensor.norm {p}": methods(p) for p in (2, 3, 6)},
    "Frobenius": (linalg.matrix_norm, lambda x: np.linalg.norm(x)),
    "std": (lambda x: x.std(1), lambda x: x.std(1, ddof=1)),
    "std_mean": (lambda x: x.std_mean(1)[0], lambda x: x.std(1, ddof=1)),
    "nanstd": (lambda x: nanstd(x, axis=1), lambda x: x.std(1)),
    "mean": (lambda x: (x * 60).mean(1), lambda x: (x * 60).mean(1)),
    "logsumexp": (lambda x: x.logsumexp(1), lambda x: np.logaddexp.reduce(x, 1)),
    "hypot": (lambda x: x.hypot(x), lambda x: np.hypot(x, x)),
    "normalize": (F.normalize, lambda x: x / np.linalg.norm(x, 2, 1, keepdims=True)),
    "layer_norm": (
        lambda x: F.layer_norm(x, (37,)), lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)),
    "rms_norm": (lambda x: F.rms_norm(x, (37,)), lambda x: x / np.sqrt((x * x).mean(1, keepdims=True))),
    "pairwise_distance": (lambda x: F.pairwise_distance(x, x.flip(0)), lambda x: np.linalg.norm(x - x[::-1], 2, 1)),
}


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("name", OF)
def test_what_overflows_inside(name: str, dtype: DType) -> None:
    ours, exact = OF[name]
    drawn = Tensor(np.random.default_rng(0).standard_normal((4, 37)) * 400, dtype=dtype)
    if name == "mean":
        drawn = drawn.maximum(-900).minimum(900)
    found = ours(drawn)
    assert found.dtype is dtype
    want = exact(drawn.cast(dtypes.float64).numpy())
    np.testing.assert_allclose(found.cast(dtypes.float64).numpy(), want, rtol=2e-3 if dtype is dtypes.float16 else 2e-2,
                               atol=1e-2 if name in ("layer_norm", "mean") else 1e-3)


ELEMENTS = """
    sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc
    sigmoid reciprocal square deg2rad rad2deg sinc i0 lgamma digamma logit softplus gelu silu mish elu selu celu
    hardswish hardsigmoid softsign logsigmoid tanhshrink erfinv
    """.split()


OF_SEVERAL: dict[str, Callable[..., Any]] = {
    **{name: partial(lambda name, x, *_: getattr(x, name)(1), name) for name in
       """sum mean prod std var softmax log_softmax softmin logsumexp logcumsumexp cumsum cumprod nansum nanmean
       norm""".split()},
    **{name: partial(lambda name, x, y, *_: getattr(x, name)(y), name) for name in
       "logaddexp logaddexp2 hypot atan2 matmul cdist cosine_similarity mse_loss smooth_l1_loss".split()},
    "xlogy": lambda x, y, z: x.xlogy(y.abs()), "lerp": lambda x, y, z: x.lerp(y, 0.3),
    "lerp by elements": lambda x, y, z: x.lerp(y, z), "addcmul": lambda x, y, z: x.addcmul(y, z, value=0.7),
    "addcdiv": lambda x, y, z: x.addcdiv(y, z, value=0.7), "cov": lambda x, y, z: x.cov(),
    "weighted cov": lambda x, y, z: x.cov(aweights=z[0].abs()), "corrcoef": lambda x, y, z: x.corrcoef(),
    "average": lambda x, y, z: functions.average(x, 1, z.abs()), "pdist": lambda x, y, z: x.pdist(),
    "polyval": lambda x, y, z: functions.polyval(x[0, :5], y), "nanvar": lambda x, y, z: functions.nanvar(x, axis=1),
    "trapezoid": lambda x, y, z: x.trapezoid(), "trapezoid at": lambda x, y, z: x.trapezoid(y),
    "cumulative_trapezoid": lambda x, y, z: x.cumulative_trapezoid(y),
    "convolve": lambda x, y, z: functions.convolve(x[0], y[0, :7]),
    "matrix_norm": lambda x, y, z: linalg.matrix_norm(x),
    "correlate": lambda x, y, z: functions.correlate(x[0], y[0, :7], "same"),
    "cross_entropy": lambda x, y, z: F.cross_entropy(x, y.softmax(1)), "kl_div": lambda x, y, z: F.kl_div(x, y.abs()),
    "log_softmax of all": lambda x, y, z: F.log_softmax(x.flatten(), 0),
}  # fmt: skip
ROUNDED_TWICE = ("cross_entropy", "kl_div", "mse_loss", "smooth_l1_loss", "pdist", "cdist")
"""What is made of several functions, each of which rounds."""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("name", OF_SEVERAL)
def test_functions_of_several_elements_are_rounded_once(name: str, dtype: DType, seed: int) -> None:
    rng, digits = np.random.default_rng(seed), 10 if dtype is dtypes.float16 else 7
    shape = 4, int(rng.integers(11, 60))
    drawn = [Tensor(rng.standard_normal(shape) * rng.uniform(0.3, 3), device="NUMPY").cast(dtype) for _ in range(3)]
    found = OF_SEVERAL[name](drawn[0], drawn[1].T if name == "matmul" else drawn[1], drawn[2])
    assert found.dtype is dtype
    wide = [x.cast(dtypes.float64) for x in drawn]
    want = OF_SEVERAL[name](wide[0], wide[1].T if name == "matmul" else wide[1], wide[2]).numpy()
    last = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(want), 2.0**-14))) - digits)
    off = (np.abs(found.cast(dtypes.float64).numpy() - want) / last)[np.abs(want) < 6e4]
    assert np.nanmax(off, initial=0) <= (4 if name in ROUNDED_TWICE else 0.6), shape


@pytest.mark.parametrize("name", ["trapezoid", "cumulative_trapezoid"])
def test_areas_of_two_dtypes_are_rounded_once(name: str) -> None:
    rng, kinds = np.random.default_rng(0), "float16 bfloat16 float32 float64 int8 int64".split()
    for first, second in ((a, b) for a in kinds for b in kinds):
        y, x = (Tensor(rng.standard_normal(29) * 9, device="NUMPY").cast(kind) for kind in (first, second))
        if second == "int8":
            x = x.sort()[0]
        found, want = getattr(y, name)(x), getattr(y.double(), name)(x.double())
        assert found.dtype is (y if y.dtype.kind == "float" else y.float()).result_type(x)
        last = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-22, "float64": 2.0**-50}[found.dtype.name]
        size, terms = np.abs(want.numpy()), 1e-3 if found.dtype.itemsize < 4 else 1  # as large as the greatest sum
        assert np.all(np.abs(found.double().numpy() - want.numpy()) <= last * (size + terms * size.max()) * 1.01)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("name", ELEMENTS)
def test_functions_of_elements_are_off_by_few_of_their_last_bits(name: str, dtype: DType) -> None:
    rng = np.random.default_rng(0)
    drawn = np.concatenate([rng.uniform(-6, 6, 500), rng.uniform(-1, 1, 500), rng.uniform(-100, 100, 200)])
    x = Tensor(drawn, device="NUMPY").cast(dtype)
    found = getattr(x, name)().cast(dtypes.float64).numpy()
    wide = x.cast(dtypes.float64).numpy()
    want = getattr(Tensor(wide, device="NUMPY"), name)().numpy()
    counts = np.isfinite(want) & (np.abs(want) < 6e4)
    last = 2.0 ** np.floor(np.log2(np.abs(want[counts]) + 1e-30)) * (2**-10 if dtype is dtypes.float16 else 2**-7)
    assert np.all(np.abs(found - want)[counts] <= 3 * np.maximum(last, 2**-24) + 1e-6 * np.abs(wide[counts]))
