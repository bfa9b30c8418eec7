"""Settings of layers and optimisers at the edges: no probabilities, empty weights, tensors for numbers."""

from __future__ import annotations

import re
from inspect import signature
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, nn, vmap
from tg_frontend.nn.functional.ordered import ADDED, ORDERS

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


LAYERS = [name for name in nn.__all__ if isinstance(kind := getattr(nn, name), type) and issubclass(kind, nn.Module)]


def names_in(text: str) -> set[str]:
    """The classes of layers that a message names as what was called."""
    return {name for name in re.findall(r"\b([A-Z]\w+)(?=[.(:])", text) if name in LAYERS}


@pytest.mark.parametrize("name", LAYERS)
def test_errors_name_the_layer_that_was_made_and_no_base_of_it(name: str) -> None:
    for wrong in ((), (1,), (1,) * 30):
        for keywords in ({}, {"zzz": 1}):
            try:
                getattr(nn, name)(*wrong, **keywords)
            except TypeError as error:
                assert names_in(str(error)) == {name} and "__init__" not in str(error), str(error)
            except ValueError as error:
                assert name in names_in(str(error)), str(error)


@pytest.mark.parametrize("method", ["reset_running_stats", "forward", "__call__"])
def test_errors_of_an_inherited_method_name_the_class_of_the_object(method: str) -> None:
    with pytest.raises(TypeError) as raised:
        getattr(nn.InstanceNorm3d(2), method)(1, 2, 3)
    assert names_in(str(raised.value)) == {"InstanceNorm3d"}


FLAGS = [
    *((f"functional.{name}", flag) for name, order in ORDERS.items() for flag in ADDED if flag in order.split()),
    *((name, flag) for name in LAYERS for flag in ADDED if flag in signature(getattr(nn, name)).parameters),
]


@pytest.mark.parametrize(("name", "flag"), FLAGS)
def test_a_flag_is_true_or_false(name: str, flag: str) -> None:
    operation = getattr(nn.functional, name.partition(".")[2]) if "." in name else getattr(nn, name)
    operands = [Tensor.ones(2, 3), Tensor.ones(2, 3)] if "." in name else []
    for wrong in ("zzz", 2, Tensor([0.5, 1.5]), object()):
        with pytest.raises(TypeError, match=rf"^{re.escape(name)}: {flag} is True or False, got "):
            operation(*operands[: 1 if flag == "inplace" else 2], **{flag: wrong})
