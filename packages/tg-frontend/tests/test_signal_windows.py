"""Windows of signals beside numpy's, and by their formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, signal

windows: Any = signal.windows
SIZES = (0, 1, 2, 3, 7, 10, 101, 1009)
NUMPY = {"bartlett": np.bartlett, "blackman": np.blackman, "hamming": np.hamming, "hann": np.hanning}


def _cosines(n: int, a: list[float]) -> Any:
    k = np.arange(n)
    return sum((-1) ** i * factor * np.cos(2 * math.pi * i * k / max(n - 1, 1)) for i, factor in enumerate(a))


FORMULAS: dict[str, tuple[dict[str, Any], Any]] = {
    **{name: ({}, function) for name, function in NUMPY.items()},
    "kaiser": ({"beta": 8.6}, lambda n: np.kaiser(n, 8.6)),
    "general_hamming": ({"alpha": 0.4}, lambda n: _cosines(n, [0.4, 0.6])),
    "general_cosine": ({"a": [0.3, 0.4, 0.2, 0.1]}, lambda n: _cosines(n, [0.3, 0.4, 0.2, 0.1])),
    "nuttall": ({}, lambda n: _cosines(n, [0.3635819, 0.4891775, 0.1365995, 0.0106411])),
    "exponential": ({"tau": 3.0}, lambda n: np.exp(-np.abs(np.arange(n) - (n - 1) / 2) / 3)),
    "gaussian": ({"std": 7.0}, lambda n: np.exp(-(((np.arange(n) - (n - 1) / 2) / 7) ** 2) / 2)),
}  # fmt: skip


@pytest.mark.drawn(5)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", FORMULAS)
def test_windows(backend: str, name: str, dtype: str) -> None:
    kwargs, formula = FORMULAS[name]
    function = getattr(windows, name)
    close = {"float32": 2e-6, "float64": 1e-13, "bfloat16": 5e-3}[dtype]
    for size in SIZES:
        wanted = np.ones(1) if size == 1 else formula(size)
        got = function(size, dtype=dtype, **kwargs)
        assert got.shape == (size,) and got.dtype.name == dtype
        np.testing.assert_allclose(got.double().numpy(), wanted, atol=close)
        if size > 1 and name != "cosine":
            period = function(size - 1, sym=False, dtype=dtype, **kwargs)
            np.testing.assert_allclose(period.double().numpy(), wanted[:-1] if size > 2 else [1.0], atol=close)


def test_the_sine() -> None:
    np.testing.assert_allclose(windows.cosine(5).numpy(), np.sin(math.pi / 5 * (np.arange(5) + 0.5)), rtol=1e-6)
    np.testing.assert_allclose(windows.cosine(4, sym=False).numpy(), windows.cosine(5).numpy()[:-1], rtol=1e-6)


def test_a_center_of_a_periodic_window() -> None:
    got = windows.exponential(5, center=1.0, tau=2.0, sym=False).numpy()
    np.testing.assert_allclose(got, np.exp(-np.abs(np.arange(5) - 1) / 2), rtol=1e-6)


def test_methods_of_tensor_are_periodic() -> None:
    for name in (*NUMPY, "kaiser"):
        method = getattr(Tensor, f"{name}_window")
        for size in (0, 1, 2, 9):
            assert method(size).tolist() == getattr(windows, name)(size, sym=False).tolist()
            assert method(size, periodic=False).tolist() == getattr(windows, name)(size).tolist()


def test_bad_input_is_told_by_its_name() -> None:
    with pytest.raises(ValueError, match=r"windows\.hann: the number of elements is 0 or more, got -1"):
        windows.hann(-1)
    with pytest.raises(TypeError, match=r"windows\.kaiser: M is an integer, got 2\.5"):
        windows.kaiser(2.5)
    with pytest.raises(TypeError, match=r"windows\.gaussian: windows are floats, not int32"):
        windows.gaussian(3, dtype="int32")
    with pytest.raises(ValueError, match=r"windows\.gaussian: a standard deviation is positive, got 0"):
        windows.gaussian(3, std=0)
    with pytest.raises(ValueError, match=r"windows\.exponential: a symmetric window has its center in the middle"):
        windows.exponential(3, center=1.0)
    with pytest.raises(ValueError, match=r"windows\.exponential: tau is positive, got -1"):
        windows.exponential(3, tau=-1)
    with pytest.raises(ValueError, match=r"windows\.general_cosine: a coefficient at least is wanted"):
        windows.general_cosine(3, a=[])
    with pytest.raises(TypeError, match=r"windows\.general_cosine: coefficients are a list of numbers, got 1"):
        windows.general_cosine(3, a=1)
    with pytest.raises(ValueError, match=r"beta is 0 or more, got -1"):
        Tensor.kaiser_window(3, beta=-1)
