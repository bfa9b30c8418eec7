"""Layers, against the definitions in numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tg_dtype import dtypes
from tg_frontend import Tensor, nn

Array = NDArray[Any]


def sample(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def same(got: Tensor, want: Any) -> None:
    expected = np.asarray(want)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, rtol=2e-5, atol=2e-5)


def normal(x: Array, axes: tuple[int, ...], eps: float) -> Array:
    out: Array = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    return out


def test_linear() -> None:
    x, layer = sample(2, 3, 4), nn.Linear(4, 5)
    assert layer.bias is not None
    same(layer(Tensor(x)), x @ layer.weight.numpy().T + layer.bias.numpy())
    assert nn.Linear(4, 5, bias=False).bias is None
    big = nn.Linear(400, 100).weight.numpy()
    assert 0.049 < np.abs(big).max() <= 0.05


def test_embedding(backend: str) -> None:
    layer = nn.Embedding(7, 3)
    table = layer.weight.numpy()
    at = np.array([[0, 6], [3, 3]])
    same(layer(Tensor(at)), table[at])
    layer.weight.requires_grad_()
    layer(Tensor(at)).sum().backward()
    assert layer.weight.grad is not None
    same(layer.weight.grad, np.array([1, 0, 0, 2, 0, 0, 1])[:, None] * np.ones(3))
    with pytest.raises(TypeError, match="indices are integers"):
        layer(Tensor([1.0]))


def test_convolutions_are_classes() -> None:
    class Mine(nn.Conv2d):
        def __call__(self, x: Tensor) -> Tensor:
            return super().__call__(x).relu()

    layer = Mine(2, 3, 3, padding="same")
    assert isinstance(layer, nn.Conv2d)
    assert isinstance(nn.ConvTranspose1d(2, 3, 3), nn.ConvTranspose1d)
    out = layer(Tensor(sample(1, 2, 5, 5))).numpy()
    assert out.shape == (1, 3, 5, 5)
    assert out.min() == 0
    with pytest.raises(ValueError, match=r"^Mine: padding 'no'"):
        Mine(2, 3, 3, padding="no")


def test_one_example_without_a_batch() -> None:
    x = Tensor(sample(2, 4, 9, 9))
    for layer in (nn.Conv2d(4, 6, 3, padding=1), nn.ConvTranspose2d(4, 6, 3, stride=2)):
        same(layer(x[1]), layer(x).numpy()[1])


def test_convolutions() -> None:
    x = Tensor(sample(2, 4, 9, 9))
    layer = nn.Conv2d(4, 6, (3, 2), stride=2, padding=1, groups=2)
    same(layer(x), x.conv2d(layer.weight, layer.bias, groups=2, stride=2, padding=1).numpy())
    assert nn.Conv2d(4, 8, 4, padding="same")(x).shape == (2, 8, 9, 9)
    assert nn.Conv1d(4, 8, 4, padding="same", dilation=2)(x[:, :, 0]).shape == (2, 8, 9)
    assert nn.Conv1d(4, 8, 3, stride=2, bias=False)(x[:, :, 0]).shape == (2, 8, 4)
    assert nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1)(x).shape == (2, 6, 20, 20)
    assert nn.ConvTranspose1d(4, 6, 3)(x[:, :, 0]).shape == (2, 6, 11)
    for inside, outside in ((4, 6), (6, 4)):
        with pytest.raises(ValueError, match="do not divide into 3 groups"):
            nn.Conv2d(inside, outside, 3, groups=3)
    with pytest.raises(ValueError, match="stride of 1"):
        nn.Conv2d(4, 6, 3, stride=2, padding="same")
    with pytest.raises(ValueError, match="Conv2d: padding 'reflect'"):
        nn.Conv2d(4, 6, 3, padding="reflect")
    assert nn.Conv2d(4, 6, 3, padding="valid")(x).shape == (2, 6, 7, 7)
    with pytest.raises(ValueError, match="kernel_size"):
        nn.Conv2d(4, 6, (3, 3, 3))


def test_layers_without_a_bias_have_none(backend: str) -> None:
    x = Tensor(sample(2, 4, 7))
    made: dict[str, Callable[[bool], Any]] = {
        "linear": lambda bias: nn.Linear(7, 6, bias=bias),
        "convolution": lambda bias: nn.Conv1d(4, 6, 3, bias=bias),
        "in groups": lambda bias: nn.Conv1d(4, 6, 3, groups=2, bias=bias),
        "transposed": lambda bias: nn.ConvTranspose1d(4, 6, 3, stride=2, bias=bias),
    }
    for name, make in made.items():
        layer = make(True)
        assert list(nn.state.get_state_dict(layer)) == ["weight", "bias"] and layer.bias.shape == (6,), name
        with_bias, sizes = layer(x), (6,) if name == "linear" else (6, 1)
        bare = make(False)
        assert bare.bias is None and list(nn.state.get_state_dict(bare)) == ["weight"], name
        nn.state.load_state_dict(bare, {"weight": layer.weight})
        same(bare(x) + layer.bias.reshape(sizes), with_bias.numpy())


def test_batchnorm_in_training_and_after(backend: str) -> None:
    layer, x = nn.BatchNorm(3), sample(4, 3, 5, 2)
    axes = (0, 2, 3)
    with Tensor.train():
        same(layer(Tensor(x)), normal(x, axes, 1e-5))
    assert layer.num_batches_tracked.item() == 1 and layer.num_batches_tracked.dtype is dtypes.int32
    same(layer.running_mean, 0.1 * x.mean(axes))
    same(layer.running_var, 0.9 + 0.1 * x.var(axes, ddof=1))
    column = (slice(None), None, None)
    mean, var = layer.running_mean.numpy()[column], layer.running_var.numpy()[column]
    same(layer(Tensor(x)), (x - mean) / np.sqrt(var + 1e-5))
    assert layer.num_batches_tracked.item() == 1
    free = nn.BatchNorm(3, affine=False, track_running_stats=False)
    same(free(Tensor(x)), normal(x, axes, 1e-5))
    assert nn.state.get_state_dict(free) == {}
    assert issubclass(nn.BatchNorm2d, nn.BatchNorm)
    with pytest.raises(ValueError, match=r"input of shape \(4, 2\); axis 1 must have 3 channels"):
        layer(Tensor.ones(4, 2))


def test_batchnorm_of_a_single_value_per_channel() -> None:
    layer = nn.BatchNorm(2)
    with Tensor.train():
        layer(Tensor([[1.0, 2.0]])).realize()
    assert np.isfinite(layer.running_var.numpy()).all()


NORMS: dict[str, tuple[Callable[[], Any], Callable[[Array], Array]]] = {
    "LayerNorm": (lambda: nn.LayerNorm(5), lambda x: normal(x, (3,), 1e-5)),
    "LayerNorm of axes": (lambda: nn.LayerNorm((2, 5), eps=1e-3), lambda x: normal(x, (2, 3), 1e-3)),
    "LayerNorm2d": (lambda: nn.LayerNorm2d(4), lambda x: normal(x, (1,), 1e-5)),
    "InstanceNorm": (lambda: nn.InstanceNorm(4), lambda x: normal(x, (2, 3), 1e-5)),
    "GroupNorm": (
        lambda: nn.GroupNorm(2, 4), lambda x: normal(x.reshape(3, 2, 2, 2, 5), (2, 3, 4), 1e-5).reshape(x.shape)),
    "RMSNorm": (lambda: nn.RMSNorm(5), lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
def test_norms(name: str, backend: str) -> None:
    make, theirs = NORMS[name]
    x, layer = sample(3, 4, 2, 5), make()
    same(layer(Tensor(x)), theirs(x))
    layer.weight.assign(layer.weight * 2)
    assert np.allclose(layer(Tensor(x)).numpy(), 2 * theirs(x), atol=1e-4)
    assert layer(Tensor(x).half()).dtype in (dtypes.float16, dtypes.float32)
    with pytest.raises(ValueError, match=r"input of shape \(2, 7, 1, 1\)"):
        layer(Tensor.ones(2, 7, 1, 1))


@pytest.mark.parametrize(("kind", "arguments", "fan_in"), [
    (nn.Linear, (37, 400), 37),
    (nn.Conv1d, (6, 300, 5), 30),
    (nn.Conv2d, (6, 300, (3, 5)), 90),
    (nn.ConvTranspose2d, (300, 6, (3, 5)), 90),
])  # fmt: skip
def test_first_weights_fill_the_bound_of_their_fan_in(kind: Any, arguments: tuple[Any, ...], fan_in: int) -> None:
    # uniform in one over the root of the fan in, as PyTorch has it: with thousands of weights the extremes are close
    layer, bound = kind(*arguments), fan_in**-0.5
    weight = layer.weight.numpy()
    assert 0.98 * bound < np.abs(weight).max() <= bound
    assert abs(weight.std() / (bound / 3**0.5) - 1) < 0.05
    assert np.abs(layer.bias.numpy()).max() <= bound


@pytest.mark.parametrize("shape", [(64, 11), (64, 5, 3, 3)])
def test_kaiming_bounds(shape: tuple[int, ...]) -> None:
    fan_in = math.prod(shape[1:])
    bound = (6 / ((1 + 0.2**2) * fan_in)) ** 0.5
    weight = Tensor.kaiming_uniform(*shape, a=0.2).numpy()
    assert 0.97 * bound < np.abs(weight).max() <= bound
    normal = Tensor.kaiming_normal(*shape, a=0.2).numpy()
    assert abs(normal.std() / (2 / ((1 + 0.2**2) * fan_in)) ** 0.5 - 1) < 0.1
