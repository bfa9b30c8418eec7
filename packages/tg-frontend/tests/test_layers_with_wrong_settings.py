"""Settings of layers and optimisers at the edges: no probabilities, empty weights, tensors for numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, nn, vmap

N: Any = nn


@pytest.mark.parametrize("name", "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout".split())
@pytest.mark.parametrize(("p", "error"), [("a", TypeError), (None, TypeError), (1.5, ValueError), (-0.1, ValueError)])
def test_no_probability(name: str, p: Any, error: type) -> None:
    with pytest.raises(error, match=f"^{name}.*is not a probability"):
        getattr(N, name)(p)
    assert getattr(N, name)(1).p == 1 and getattr(N, name)().p == 0.5


@pytest.mark.parametrize("shape", [(0, 3), (5, 0)])
@pytest.mark.parametrize("adjust", [None, "match_rms_adamw"])
def test_muon_with_an_empty_weight(shape: tuple[int, int], adjust: str | None) -> None:
    empty, full = Tensor.zeros(*shape, requires_grad=True), Tensor(np.eye(3, dtype=np.float32), requires_grad=True)
    optimizer = nn.optim.Muon([empty, full], lr=0.5, adjust_lr_fn=adjust)
    (empty.sum() + (full * full).sum()).backward()
    optimizer.step()
    assert empty.numpy().shape == shape and not np.array_equal(full.numpy(), np.eye(3))


def test_a_setting_that_is_a_tensor_is_shown() -> None:
    assert "max_norm=1." in repr(nn.Embedding(3, 5, max_norm=Tensor(1.0)))  # type: ignore[arg-type]
    assert "max_norm" not in repr(nn.Embedding(3, 5))


def test_binomial_under_vmap() -> None:
    trials = Tensor(np.array([3.0, 500.0, 0.0], np.float32))
    ones: Any = vmap(lambda n: n.binomial(Tensor(1.0)))(trials)
    np.testing.assert_array_equal(ones.numpy(), trials.numpy())
    halves: Any = vmap(lambda n: n.binomial(Tensor(0.5)))(Tensor.full((400,), 100.0))
    assert 45 < halves.numpy().mean() < 55


def test_betas_in_one_tensor() -> None:
    x, y = (Tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    for weight, betas in ((x, Tensor([0.5, 0.75])), (y, (0.5, 0.75))):
        optimizer = nn.optim.Adam([weight], lr=0.1, betas=betas)  # type: ignore[arg-type]
        for _ in range(3):
            optimizer.zero_grad()
            (weight * weight).sum().backward()
            optimizer.step()
    np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-6)
    with pytest.raises(TypeError, match="Adam: betas are two numbers"):
        nn.optim.Adam([x], betas=Tensor([0.5, 0.75, 0.9]))  # type: ignore[arg-type]


def test_an_older_word_that_is_a_tensor() -> None:
    for value, want in ((True, 2.5), (False, 5.0)):
        loss = nn.MSELoss(size_average=Tensor(value))
        assert loss(Tensor([1.0, 2.0]), Tensor([0.0, 0.0])).item() == want
