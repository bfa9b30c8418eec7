"""Layers and functions called as PyTorch's are, without names: beside numpy, or beside the same call with names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, nn
from tg_frontend.nn import functional

F: Any = functional
N: Any = nn
RNG = np.random.default_rng(29)
MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def draw(*shape: int) -> Any:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def same(got: Tensor, want: Any, tolerance: float = 1e-5) -> None:
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", [2, "same", (1, 2, 0)])
def test_padding_modes(axes: int, mode: str, padding: Any) -> None:
    """As a convolution without padding of what numpy has padded."""
    kernel = (4, 3, 2)[:axes]
    padding = padding[:axes] if isinstance(padding, tuple) else padding
    layer = getattr(N, f"Conv{axes}d")(3, 5, kernel, 1, padding, 1, 1, True, mode)
    x = draw(2, 3, *(7, 5, 6)[:axes])
    one = [(0, 0), (0, 0)]
    if padding == "same":
        pairs = [((k - 1) // 2, k - 1 - (k - 1) // 2) for k in kernel]
    else:
        pairs = [(p, p) for p in (padding if isinstance(padding, tuple) else (padding,) * axes)]
    wide = Tensor(np.pad(x, one + pairs, mode=MODES[mode]))  # type: ignore[call-overload]
    same(layer(Tensor(x)), wide.conv2d(layer.weight, layer.bias).numpy())
    same(layer(Tensor(x[0])), wide.conv2d(layer.weight, layer.bias).numpy()[0])


def test_modes_that_are_none() -> None:
    with pytest.raises(ValueError, match="Conv1d: padding_mode 'wrap'; there are zeros, reflect, replicate, circular"):
        nn.Conv1d(1, 1, 1, padding_mode="wrap")
    with pytest.raises(ValueError, match="ConvTranspose2d: padding_mode 'reflect'; only zeros"):
        nn.ConvTranspose2d(1, 1, 1, padding_mode="reflect")


def test_transposed_convolutions() -> None:
    for axes in (1, 2, 3):
        layer = getattr(N, f"ConvTranspose{axes}d")(6, 4, 3, 2, 1, 1, 2, False, 2)
        assert layer.bias is None and (layer.groups, layer.dilation) == (2, (2,) * axes)
        assert layer.weight.shape == (6, 2, *(3,) * axes)
        assert layer(Tensor(draw(2, 6, *(7, 5, 4)[:axes]))).shape == (2, 4, *(16, 12, 10)[:axes])


def test_betas_and_their_names() -> None:
    x = Tensor([1.0])
    for kind in (N.optim.Adam, N.optim.AdamW, N.optim.NAdam, N.optim.RAdam, N.optim.Adamax, N.optim.SparseAdam):
        assert kind([x], 0.1, (0.5, 0.75), 1e-3).param_groups[0]["betas"] == (0.5, 0.75)
        assert kind([x], 0.1, b2=0.75).param_groups[0]["betas"] == (0.9, 0.75)
        with pytest.raises(TypeError, match="betas are two numbers, got 0.9; b1 and b2 are given by name"):
            kind([x], 0.1, 0.9, 0.999)
    group = N.optim.SGD([x], 0.1, 0.9, 0.25, 0.125, False).param_groups[0]
    assert (group["momentum"], group["dampening"], group["weight_decay"]) == (0.9, 0.25, 0.125)
    assert N.optim.Optimizer([x], {"lr": 0.5, "rho": 0.25}).defaults == {"lr": 0.5, "rho": 0.25}
    for settings in ({"foreach": True}, {"fused": False}, {"capturable": True}, {"differentiable": False}):
        assert N.optim.Adam([x], **settings).param_groups[0]["lr"] == 0.001
    with pytest.raises(TypeError, match="differentiable"):
        N.optim.Adam([x], differentiable=True)


def test_weight_decay_that_is_decoupled() -> None:
    start = draw(5)
    found = []
    for kind, settings in ((N.optim.AdamW, {}), (N.optim.Adam, {"decoupled_weight_decay": True})):
        w = Tensor(start)
        optimizer = kind([w], 0.1, weight_decay=0.5, **settings)
        (w * w).sum().backward()
        optimizer.step()
        found.append(w.numpy())
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize(
    ("given", "reduction"),
    [((None, None, "sum"), "sum"), ((False, None), "sum"), ((None, False), "none"), ((True, True), "mean"),
     ((), "mean")],
)  # fmt: skip
def test_older_words_of_losses(given: tuple[Any, ...], reduction: str) -> None:
    x, y = Tensor(draw(3, 5)), Tensor(draw(3, 5))
    signs = Tensor(np.sign(draw(3, 5)))
    classes = Tensor(RNG.integers(0, 5, 3))
    for name, target in (("mse_loss", y), ("l1_loss", y), ("smooth_l1_loss", y), ("soft_margin_loss", signs)):
        want = getattr(F, name)(x, target, reduction=reduction)
        same(getattr(F, name)(x, target, *given), want.numpy())
        layer = "".join(map(str.capitalize, name.split("_"))).replace("L1", "L1").replace("Mse", "MSE")
        same(getattr(N, layer)(*given)(x, target), want.numpy())
    last = given[2:]
    want = F.cross_entropy(x, classes, reduction=reduction)
    same(F.cross_entropy(x, classes, None, *given[:1], *([-100] if given else []), *given[1:2], *last), want.numpy())
    same(F.margin_ranking_loss(x, y, signs, 0.5, *given),
         F.margin_ranking_loss(x, y, signs, margin=0.5, reduction=reduction).numpy())  # fmt: skip


def test_weights_of_regression() -> None:
    x, y, w = draw(3, 5), draw(3, 5), np.abs(draw(3, 5))
    losses = {"mse_loss": (x - y) ** 2, "l1_loss": np.abs(x - y), "huber_loss": (x - y) ** 2 / 2}
    for name, each in losses.items():
        if name == "huber_loss":
            each = np.where(np.abs(x - y) < 1, each, np.abs(x - y) - 0.5)
        tx, ty, tw = Tensor(x), Tensor(y), Tensor(w)
        same(getattr(F, name)(tx, ty, weight=tw), (each * w).sum() / w.sum())
        same(getattr(F, name)(tx, ty, weight=tw, reduction="none"), each * w)
        same(getattr(F, name)(tx, ty, weight=tw, reduction="sum"), (each * w).sum())
        with pytest.raises(ValueError, match="shapes"):
            getattr(F, name)(tx, ty, weight=Tensor(w[0]))


@pytest.mark.parametrize("name", "relu relu6 hardsigmoid hardswish silu selu mish celu elu leaky_relu hardtanh".split())
def test_functions_in_place(name: str) -> None:
    given = 3 * draw(3, 7)
    x = Tensor(given)
    want = getattr(F, name)(Tensor(given)).numpy()
    places = {"celu": (1.0,), "elu": (1.0,), "leaky_relu": (0.01,), "hardtanh": (-1.0, 1.0)}.get(name, ())
    assert getattr(F, name)(x, *places, True) is x
    same(x, want)
    y = Tensor(given)
    assert getattr(F, name)(y, inplace=True) is y
    same(y, want)
    layer = {"relu": "ReLU", "relu6": "ReLU6", "silu": "SiLU", "selu": "SELU", "celu": "CELU", "elu": "ELU",
             "leaky_relu": "LeakyReLU"}.get(name, name.capitalize())  # fmt: skip
    z = Tensor(given)
    assert getattr(N, layer)(*places, True)(z) is z
    same(z, want)


def test_the_axis_that_softmax_takes() -> None:
    for shape, axis in (((7,), 0), ((3, 5), 1), ((3, 5, 7), 0), ((2, 3, 5, 7), 1), ((), 0)):
        x = draw(*shape)
        for function, layer, sign in ((F.softmax, N.Softmax(), 1), (F.softmin, N.Softmin(), -1)):
            powers = np.exp(sign * x)
            want = powers / (powers.sum(axis, keepdims=True) if shape else powers)
            same(function(Tensor(x)), want)
            same(layer(Tensor(x)), want)
        same(F.log_softmax(Tensor(x)).exp(), np.exp(x) / (np.exp(x).sum(axis, keepdims=True) if shape else np.exp(x)))


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
def test_rows_that_are_too_long(power: float) -> None:
    table = 3 * draw(7, 5)
    at = np.array([[1, 3], [-1, 3]])
    long = (np.abs(table) ** power).sum(1) ** (1 / power)
    want = table.copy()
    for row in (1, 3, 6):
        if long[row] > 2:
            want[row] *= 2 / long[row]
    weight = Tensor(table)
    same(F.embedding(Tensor(at), weight, None, 2.0, power), want[at])
    same(weight, want)
    layer = nn.Embedding.from_pretrained(Tensor(table), max_norm=2.0, norm_type=power)
    same(layer(Tensor(at)), want[at])
    same(layer.weight, want)
    bag = nn.EmbeddingBag.from_pretrained(Tensor(table), max_norm=2.0, norm_type=power)
    same(bag(Tensor(at)), want[at].mean(1))


@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_by_frequency(sparse: bool) -> None:
    table, weights = draw(7, 2), draw(5, 2)
    at = np.array([3, 1, 3, 6, 3])
    layer = nn.Embedding(7, 2, None, None, 2.0, True, sparse)
    layer.weight.assign(Tensor(table))
    out = layer(Tensor(at))
    same(out, table[at])
    (out * Tensor(weights)).sum().backward()
    want = np.zeros((7, 2))
    for row, weight in zip(at, weights, strict=True):
        want[row] += weight / (at == row).sum()
    assert layer.weight.grad is not None
    same(layer.weight.grad.to_dense() if sparse else layer.weight.grad, want)
    bag = nn.EmbeddingBag(7, 2, None, 2.0, True, "sum", sparse)
    bag.weight.assign(Tensor(table))
    bag(Tensor(at).reshape(1, 5)).sum().backward()
    assert bag.weight.grad is not None
    grad = bag.weight.grad.to_dense() if sparse else bag.weight.grad
    same(grad, np.isin(np.arange(7), at)[:, None] * np.ones((7, 2)))
    with pytest.raises(ValueError, match="scale_grad_by_freq is for sums and means"):
        nn.EmbeddingBag(7, 2, None, 2.0, True, "max")(Tensor(at).reshape(1, 5))


def test_from_pretrained() -> None:
    table = draw(3, 5)
    frozen, learnt = (nn.Embedding.from_pretrained(Tensor(table), freeze) for freeze in (True, False))
    assert not frozen.weight.requires_grad and list(learnt.parameters()) == [learnt.weight]
    same(nn.EmbeddingBag.from_pretrained(Tensor(table), mode="sum")(Tensor([[0, 2]])), table[[0, 2]].sum(0)[None])
    for kind in (N.Embedding, N.EmbeddingBag):
        with pytest.raises(ValueError, match="from_pretrained: a table has two axes"):
            kind.from_pretrained(Tensor([1.0]))


def test_norms_that_are_not_finite() -> None:
    x, y = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0], requires_grad=True)
    x.grad, y.grad = Tensor([3.0, float("inf")]), Tensor([4.0])
    with pytest.raises(RuntimeError, match="which is not finite"):
        nn.clip_grad_norm_([x, y], 1.0, 2.0, True)
    assert y.grad.tolist() == [4.0]
    nn.clip_grad_norm_([y], 1.0, error_if_nonfinite=True, foreach=True)
    same(y.grad, [1.0])
    y.grad = Tensor([4.0])
    nn.utils.clip_grads_with_norm_(y, 1.0, Tensor(8.0))
    same(y.grad, [0.5])


def test_spread_asks_for_names() -> None:
    x: Any = Tensor(draw(3, 5))
    for method in (x.std, x.var, x.std_mean, x.var_mean):
        with pytest.raises(TypeError, match="positional"):
            method(0, True)
