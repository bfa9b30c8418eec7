"""Functions by PyTorch's further names: beside plain numpy, or beside the functions that they are written with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, nn
from tg_frontend.nn import functional

F: Any = functional
RNG = np.random.default_rng(17)
POOLS = [name for name in functional.__all__ if name.endswith("_with_indices")]
WRITTEN = [name for name in functional.__all__ if name.endswith("_")]


@pytest.mark.parametrize("name", POOLS)
def test_pools_with_indices(name: str) -> None:
    """Each maximum stands where its position says, and it is that of the pool without positions."""
    axes = int(name[name.index("d_with") - 1])
    x = RNG.standard_normal((2, 3, *(7, 5, 6)[:axes]))
    draws = {"_random_samples": Tensor(RNG.random((2, 3, axes)))} if "fractional" in name else {}
    args: tuple[Any, ...] = (2,) if "fractional" not in name else (2, 3)
    best, at = getattr(F, name)(Tensor(x), *args, **draws)
    plain = getattr(F, name.removesuffix("_with_indices"))(Tensor(x), *args, **draws)
    np.testing.assert_array_equal(best.numpy(), plain.numpy())
    found = np.take_along_axis(x.reshape(2, 3, -1), at.numpy().reshape(2, 3, -1), 2)
    np.testing.assert_array_equal(found.reshape(best.shape), best.numpy())


def test_max_pools_take_all_their_settings() -> None:
    x = Tensor(RNG.standard_normal((1, 2, 9, 7)))
    settings: dict[str, Any] = {"stride": 3, "padding": 1, "dilation": 2, "ceil_mode": True}
    for got, want in zip(F.max_pool2d_with_indices(x, (2, 3), **settings),
                         F.max_pool2d(x, (2, 3), **settings, return_indices=True), strict=True):  # fmt: skip
        np.testing.assert_array_equal(got.numpy(), want.numpy())


@pytest.mark.parametrize("name", WRITTEN)
def test_activations_that_are_written(name: str) -> None:
    """The memory of the argument holds the result, and gradients flow through it."""
    given = RNG.standard_normal((3, 5)) * 2
    settings = {"threshold_": (0.5, 9.0), "rrelu_": (0.25, 0.75)}.get(name, ())
    leaf = Tensor(given, requires_grad=True)
    x = leaf * 1
    again = getattr(F, name)(x, *settings)
    assert again is x
    other = Tensor(given, requires_grad=True)
    want = getattr(F, name[:-1])(other, *settings)
    np.testing.assert_allclose(x.numpy(), want.numpy(), atol=1e-12)
    np.testing.assert_allclose((x * x).sum().gradient(leaf)[0].numpy(), (want * want).sum().gradient(other)[0].numpy())
    assert (x.numpy() != given).any()


@pytest.mark.parametrize(("kernel", "pad"), [(1, 0), (3, 0), (4, 2), (3, 5)])
def test_convolutions_of_steps(kernel: int, pad: int) -> None:
    x, w, b = RNG.standard_normal((7, 2, 3)), RNG.standard_normal((kernel, 3, 5)), RNG.standard_normal(5)
    wide = np.pad(x, ((pad, pad), (0, 0), (0, 0)))
    want = sum(wide[k : k + 7 + 2 * pad - kernel + 1] @ w[k] for k in range(kernel)) + b
    np.testing.assert_allclose(F.conv_tbc(Tensor(x), Tensor(w), Tensor(b), pad).numpy(), want, atol=1e-12)
    with pytest.raises(ValueError, match="conv_tbc: shapes"):
        F.conv_tbc(Tensor(x), Tensor(w[:, 1:]), Tensor(b))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("features", [(), (2,), (3, 2)])
def test_cross_entropy_of_products(features: tuple[int, ...], reduction: str) -> None:
    x, w = RNG.standard_normal((5, 3)), RNG.standard_normal((7, *features, 3))
    b, weight = RNG.standard_normal((7, *features)), RNG.uniform(0.5, 1.5, 7)
    target = RNG.integers(0, 7, (5, *features))
    target[0] = 4
    logits = np.moveaxis(np.einsum("ni,c...i->nc...", x, w) + b, 1, -1)
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    losses = -np.take_along_axis(logs, target[..., None], -1)[..., 0] * weight[target] * (target != 4)
    shares = (weight[target] * (target != 4)).sum()
    want = losses if reduction == "none" else losses.sum() / (shares if reduction == "mean" else 1)
    got = F.linear_cross_entropy(
        Tensor(x), Tensor(w), Tensor(target), linear_bias=Tensor(b), weight=Tensor(weight), reduction=reduction,
        ignore_index=4,
    )  # fmt: skip
    np.testing.assert_allclose(got.numpy(), want, atol=1e-12)
    layer: Any = nn.LinearCrossEntropyLoss(
        3, 7, out_features=features, bias=True, reduction=reduction, weight=Tensor(weight), ignore_index=4,
    )  # fmt: skip
    layer.linear.weight, layer.linear.bias = Tensor(w.reshape(-1, 3)), Tensor(b.reshape(-1))
    np.testing.assert_allclose(layer(Tensor(x), Tensor(target)).numpy(), want, atol=1e-12)


def test_cross_entropy_of_one_product_and_of_probabilities() -> None:
    x, w = RNG.standard_normal((5, 3)), RNG.standard_normal((7, 3))
    one = F.linear_cross_entropy(Tensor(x[0]), Tensor(w), Tensor(2))
    np.testing.assert_allclose(one.numpy(), F.cross_entropy(Tensor(x @ w.T)[:1], Tensor([2])).numpy(), atol=1e-12)
    parts = RNG.dirichlet(np.ones(7), 5)
    got = F.linear_cross_entropy(Tensor(x), Tensor(w), Tensor(parts), label_smoothing=0.1)
    want = F.cross_entropy(Tensor(x @ w.T), Tensor(parts), label_smoothing=0.1)
    np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-12)
    for wrong in ((x, w[:, 1:]), (x[0], w.reshape(7, 1, 3)), (x, w[0])):
        with pytest.raises(ValueError, match="linear_cross_entropy: x of shape"):
            F.linear_cross_entropy(*map(Tensor, wrong), Tensor([1] * 5))
    with pytest.raises(ValueError, match="there are no options"):
        F.linear_cross_entropy(Tensor(x), Tensor(w), Tensor([1] * 5), options=object())


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9])
def test_responses_of_neighbouring_channels(size: int) -> None:
    x = RNG.standard_normal((2, 5, 3, 1))
    total = np.stack([
        (x[:, max(0, c - size // 2) : c + (size - 1) // 2 + 1] ** 2).sum(1) for c in range(5)
    ], 1)  # fmt: skip
    got = nn.CrossMapLRN2d(size, 0.3, 0.6, 2.0)(Tensor(x))
    np.testing.assert_allclose(got.numpy(), x / (2 + 0.3 / size * total) ** 0.6, rtol=1e-12)
    with pytest.raises(ValueError, match="CrossMapLRN2d: input of shape"):
        nn.CrossMapLRN2d(size)(Tensor(x[0]))


def test_names_give_what_pytorch_gives() -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.nn.functional
    x, w = RNG.standard_normal((5, 3)), RNG.standard_normal((7, 2, 3))
    target = RNG.integers(0, 7, (5, 2))
    want = theirs.linear_cross_entropy(torch.tensor(x), torch.tensor(w), torch.tensor(target), label_smoothing=0.2)
    got = F.linear_cross_entropy(Tensor(x), Tensor(w), Tensor(target), label_smoothing=0.2)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-9)
    steps, kernel, bias = RNG.standard_normal((7, 2, 3)), RNG.standard_normal((3, 3, 5)), RNG.standard_normal(5)
    want = theirs.conv_tbc(*map(torch.tensor, (steps, kernel, bias)), 1)
    np.testing.assert_allclose(F.conv_tbc(*map(Tensor, (steps, kernel, bias)), 1).numpy(), want.numpy(), rtol=1e-9)
    image = RNG.standard_normal((2, 7, 3, 2))
    for size in (1, 2, 3, 5):
        got = nn.CrossMapLRN2d(size, 0.3, 0.6, 2.0)(Tensor(image)).numpy()
        want = torch.nn.LocalResponseNorm(size, 0.3, 0.6, 2.0)(torch.tensor(image))
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-9)
        if size % 2:
            agree, other = (size + 1) // 2, torch.nn.CrossMapLRN2d(size, 0.3, 0.6, 2.0)(torch.tensor(image)).numpy()
            np.testing.assert_allclose(got[:, :agree], other[:, :agree], rtol=1e-9)
            more = (image / got) ** (1 / 0.6) + 0.3 / size * image[:, :1] ** 2  # the first channel stays in the sum
            np.testing.assert_allclose(other[:, agree:], (image / more**0.6)[:, agree:], rtol=1e-9)


def test_a_parameter_in_two_groups_is_told_with_both() -> None:
    a, b, c = (Tensor([1.0, 2.0]) for _ in range(3))
    with pytest.raises(ValueError, match=r"AdamW: parameter 1 of group 2, of shape \(2,\), is in group 0, too"):
        nn.optim.AdamW([{"params": [a]}, {"params": [b]}, {"params": [c, a]}], lr=0.1)
