"""Draws from distributions: how often they are below a point, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tg_frontend import Tensor

COUNT = 20_011
CASES: dict[str, tuple[Callable[[Tensor], Tensor], tuple[float, ...], Callable[[float], float]]] = {
    "exponential": (lambda x: x.exponential(2.0), (0.1, 0.5, 2), lambda y: 1 - math.exp(-2 * y)),
    "exponential_": (lambda x: x.exponential_(2.0), (0.1, 0.5, 2), lambda y: 1 - math.exp(-2 * y)),
    "cauchy": (lambda x: x.cauchy(1, 3), (-5, 1, 4), lambda y: 0.5 + math.atan((y - 1) / 3) / math.pi),
    "cauchy_": (lambda x: x.cauchy_(1, 3), (-5, 1, 4), lambda y: 0.5 + math.atan((y - 1) / 3) / math.pi),
    "geometric": (lambda x: x.geometric(0.3), (1.5, 2.5, 6.5), lambda y: 1 - 0.7 ** math.floor(y)),
    "geometric_": (lambda x: x.geometric_(0.3), (1.5, 2.5, 6.5), lambda y: 1 - 0.7 ** math.floor(y)),
    "log_normal": (lambda x: x.log_normal(0.5, 2), (0.3, 1.6, 9),
                   lambda y: math.erfc((0.5 - math.log(y)) / math.sqrt(8)) / 2),
    "log_normal_": (lambda x: x.log_normal_(0.5, 2), (0.3, 1.6, 9),
                    lambda y: math.erfc((0.5 - math.log(y)) / math.sqrt(8)) / 2),
    "normal_": (lambda x: x.normal_(1, 2), (-1, 1, 4), lambda y: math.erfc((1 - y) / math.sqrt(8)) / 2),
    "uniform_": (lambda x: x.uniform_(-1, 3), (-0.5, 1, 2.5), lambda y: (y + 1) / 4),
    "bernoulli_": (lambda x: x.bernoulli_(0.2), (0.5,), lambda y: 0.8),
    "random_": (lambda x: x.random_(-3, 7), (-2.5, 0.5, 5.5), lambda y: (math.floor(y) + 4) / 10),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_distribution(name: str, dtype: str) -> None:
    draw, points, below = CASES[name]
    Tensor.manual_seed(7)
    x = Tensor.zeros(COUNT, dtype=dtype).contiguous().realize()
    out = draw(x)
    assert out.shape == (COUNT,) and out.dtype.name == dtype and (out is x) == name.endswith("_")
    values = out.numpy()
    assert np.isfinite(values).all() and x.numpy().any() == name.endswith("_")
    for point in points:
        assert abs((values < point).mean() - below(point)) < 4 * math.sqrt(0.25 / COUNT), point
    Tensor.manual_seed(7)
    np.testing.assert_array_equal(draw(Tensor.zeros(COUNT, dtype=dtype).contiguous()).numpy(), values)


def test_shapes_and_dtypes() -> None:
    for shape in ((), (0,), (3, 0), (1,), (7, 5)):
        for name, (draw, _, _) in CASES.items():
            assert draw(Tensor.zeros(*shape).contiguous()).shape == shape, name
    assert Tensor.zeros(5, dtype="int32").geometric(1.0).tolist() == [1] * 5
    assert Tensor.zeros(99, dtype="float16").exponential().dtype.name == "float16"
    assert 0 <= Tensor.zeros(99, dtype="uint8").contiguous().random_().max().item() <= 255
    assert Tensor.zeros(99, dtype="float16").contiguous().random_().max().item() <= 2048
    assert set(Tensor.zeros(99, dtype="int32").contiguous().random_(2).tolist()) == {0, 1}


def test_bad_input_is_told_by_its_name() -> None:
    x, whole = Tensor.zeros(3), Tensor.zeros(3, dtype="int32")
    with pytest.raises(ValueError, match=r"Tensor\.exponential: a rate is positive, got 0"):
        x.exponential(0)
    with pytest.raises(ValueError, match=r"Tensor\.cauchy_: .*sigma is positive, got -1"):
        x.cauchy_(0, -1)
    with pytest.raises(ValueError, match=r"Tensor\.geometric: 1\.5 is no probability above 0"):
        x.geometric(1.5)
    with pytest.raises(ValueError, match=r"Tensor\.log_normal: a standard deviation is positive, got 0"):
        x.log_normal(0, 0)
    with pytest.raises(TypeError, match=r"Tensor\.exponential: the tensor is of floats, got int32"):
        whole.exponential()
    with pytest.raises(TypeError, match=r"Tensor\.log_normal: the tensor is of floats, got int32"):
        whole.log_normal()
    with pytest.raises(TypeError, match=r"floats or integers, got bool"):
        Tensor([True]).geometric(0.5)
    with pytest.raises(ValueError, match="random_"):
        x.random_(5, 5)
