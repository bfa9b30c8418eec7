"""Weights of which elements become 0: ``nn.utils.prune``, beside numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, nn
from tg_frontend.nn.utils import prune as _prune

RNG = np.random.default_rng(41)
prune: Any = _prune


def draw(*shape: int) -> Any:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def _least(scores: Any, count: int) -> Any:
    kept = np.ones(scores.size, np.float32)
    kept[np.argsort(scores.ravel(), kind="stable")[:count]] = 0
    return kept.reshape(scores.shape)


@pytest.mark.parametrize("amount", [0, 7, 0.5, 0.37, 1.0])
def test_least_magnitudes(amount: float) -> None:
    layer: Any = nn.Linear(7, 5)
    weight, held = layer.weight.numpy(), layer.weight
    count = amount if isinstance(amount, int) else round(amount * 35)
    assert prune.l1_unstructured(layer, "weight", amount) is layer
    mask = _least(np.abs(weight), count)
    np.testing.assert_array_equal(layer.weight_mask.numpy(), mask)
    np.testing.assert_array_equal(layer.weight.numpy(), weight * mask)
    assert layer.weight_orig is held and [name for name, _ in layer.named_parameters()] == ["bias", "weight_orig"]
    assert sorted(layer.state_dict()) == ["bias", "weight_mask", "weight_orig"]
    x = draw(3, 7)
    layer(Tensor(x)).sum().backward()
    np.testing.assert_allclose(held.grad.numpy(), np.tile(x.sum(0), (5, 1)) * mask, rtol=1e-5, atol=1e-6)


def test_one_after_another() -> None:
    layer: Any = nn.Conv1d(3, 5, 2)
    weight = layer.weight.numpy()
    prune.l1_unstructured(layer, "weight", 4)
    first = _least(np.abs(weight), 4)
    prune.l1_unstructured(layer, "weight", 0.5)  # of 26 that are left
    left = np.flatnonzero(first)
    second = first.ravel().copy()
    second[left] = _least(np.abs(weight).ravel()[left], 13)
    np.testing.assert_array_equal(layer.weight_mask.numpy().ravel(), second)
    prune.ln_structured(layer, "weight", 2, 2, dim=0)
    third = second.reshape(weight.shape)
    rows = [n for n in range(5) if third[n].any()]
    norms = np.sqrt(((weight * third)[rows] ** 2).sum((1, 2)))
    third[[rows[n] for n in np.argsort(norms)[:2]]] = 0
    np.testing.assert_array_equal(layer.weight_mask.numpy(), third)
    prune.custom_from_mask(layer, "weight", mask := Tensor(RNG.integers(0, 2, weight.shape)))
    want = weight * third * mask.numpy()
    np.testing.assert_array_equal(layer.weight.numpy(), want)
    assert [type(one).__name__ for one in layer._of("pre")[0].function] == [
        "L1Unstructured", "L1Unstructured", "LnStructured", "CustomFromMask",
    ]  # fmt: skip
    held = layer.weight_orig
    assert prune.is_pruned(nn.Sequential(layer))
    prune.remove(layer, "weight")
    assert layer.weight is held and not prune.is_pruned(layer) and sorted(layer.state_dict()) == ["bias", "weight"]
    np.testing.assert_array_equal(layer.weight.numpy(), want)
    np.testing.assert_array_equal(layer(Tensor.ones(1, 3, 2)).numpy()[0, :, 0], want.sum((1, 2)) + layer.bias.numpy())


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("n", [1, 2, float("inf"), "fro"])
def test_slices_of_least_norm(dim: int, n: Any) -> None:
    layer: Any = nn.Conv1d(3, 5, 4)
    weight = layer.weight.numpy()
    prune.ln_structured(layer, "weight", 0.5, n, dim)
    slices = np.moveaxis(weight, dim, 0).reshape(weight.shape[dim], -1)
    norms = np.linalg.norm(slices, 2 if n == "fro" else n, axis=1)
    kept = _least(norms, round(len(norms) / 2))
    got = np.moveaxis(layer.weight_mask.numpy(), dim, -1)
    np.testing.assert_array_equal(got, np.ones_like(got) * kept)


def test_draws() -> None:
    Tensor.manual_seed(3)
    layer: Any = prune.random_unstructured(nn.Linear(7, 5), "weight", 0.4)
    assert layer.weight_mask.numpy().sum() == 35 - 14
    prune.random_unstructured(layer, "weight", 5)
    assert layer.weight_mask.numpy().sum() == 35 - 14 - 5
    other: Any = prune.random_structured(nn.Linear(7, 5), "weight", 3, dim=1)
    assert sorted(other.weight_mask.numpy().sum(0)) == [0] * 3 + [5] * 4
    places = {tuple(np.flatnonzero(prune.RandomUnstructured(1).prune(Tensor.ones(9)).numpy() == 0)) for _ in range(20)}
    assert len(places) > 3


def test_several_layers_as_one() -> None:
    model: Any = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 3))
    pairs = [(model[0], "weight"), (model[1], "weight"), (model[1], "bias")]
    before = np.concatenate([getattr(layer, name).numpy().ravel() for layer, name in pairs])
    mask = np.ones_like(before)
    for _ in range(2):
        prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.3)
        left = np.flatnonzero(mask)
        mask[left] = _least(np.abs(before[left]), round(0.3 * len(left)))
        got = np.concatenate([getattr(layer, f"{name}_mask").numpy().ravel() for layer, name in pairs])
        np.testing.assert_array_equal(got, mask)
    scores = {pairs[0]: Tensor(np.zeros((7, 5), np.float32))}
    prune.global_unstructured(pairs, prune.L1Unstructured, importance_scores=scores, amount=3)
    assert (model[0].weight_mask.numpy() == 0).sum() == (mask[:35] == 0).sum() + 3
    with pytest.raises(TypeError, match="LnStructured"):
        prune.global_unstructured(pairs, prune.LnStructured, amount=1, n=2)


def test_training_keeps_zeros() -> None:
    layer: Any = prune.l1_unstructured(nn.Linear(7, 5), "weight", 0.5)
    optimizer = nn.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)

    @TinyJit
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = (layer(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss.realize()

    x = draw(3, 7)
    losses = [step(Tensor(x).realize()).item() for _ in range(5)]
    assert losses[0] > losses[-1]
    _ = layer(Tensor(x)).numpy()
    assert (layer.weight.numpy() == 0).sum() == 18


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [(lambda m: prune.l1_unstructured(m, "weights", 1), ValueError, "no tensor 'weights'"),
     (lambda m: prune.l1_unstructured(m, "weight", 36), ValueError, "amount=36 of 35"),
     (lambda m: prune.l1_unstructured(m, "weight", -1), ValueError, "amount"),
     (lambda m: prune.l1_unstructured(m, "weight", 1.5), ValueError, "amount"),
     (lambda m: prune.l1_unstructured(m, "weight", "1"), TypeError, "amount"),
     (lambda m: prune.l1_unstructured(m, "weight", True), TypeError, "amount"),
     (lambda m: prune.ln_structured(m, "bias", 1, 2, 0), ValueError, "two axes"),
     (lambda m: prune.ln_structured(m, "weight", 1, 2, 2), IndexError, "no axis 2"),
     (lambda m: prune.random_structured(m, "weight", 6, 0), ValueError, "amount=6 of 5"),
     (lambda m: prune.custom_from_mask(m, "weight", Tensor.ones(5)), ValueError, "a mask of shape"),
     (lambda m: prune.l1_unstructured(m, "weight", 1, Tensor.ones(5)), ValueError, "importance_scores of shape"),
     (lambda m: prune.remove(m, "weight"), ValueError, "is not pruned"),
     (lambda m: prune.BasePruningMethod().remove(m), RuntimeError, "applied to no layer"),
     (lambda m: prune.PruningContainer(3), TypeError, "no method of pruning"),
     (lambda m: prune.global_unstructured([(m, "weight")], prune.L1Unstructured, [1], amount=1), TypeError, "dict")],
)  # fmt: skip
def test_what_is_refused(call: Any, error: type, said: str) -> None:
    layer: Any = nn.Linear(7, 5)
    with pytest.raises(error, match=said):
        call(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight"] and not prune.is_pruned(layer)
