"""Layers that differ in training say so where a program trains without ever having said that it does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from tg_frontend import Tensor, nn
from tg_frontend.autograd.differentiation import Mode

LAYERS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "Dropout": (lambda: nn.Dropout(0.3), (3, 5)),
    "Dropout2d": (lambda: nn.Dropout2d(0.3), (2, 3, 5, 7)),
    "AlphaDropout": (lambda: nn.AlphaDropout(0.3), (3, 5)),
    "RReLU": (nn.RReLU, (3, 5)),
    "BatchNorm": (lambda: nn.BatchNorm(5), (3, 5)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3, affine=False), (2, 3, 5, 7)),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(3, track_running_stats=True), (2, 3, 5)),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(6, 2, 7), (3, 2, 6)),
    "LSTM": (lambda: nn.LSTM(5, 3, num_layers=2, dropout=0.3), (3, 2, 5)),
}


@pytest.fixture(autouse=True)
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the beginning of a program."""
    monkeypatch.setattr(Mode, "told", False)


def said(layer: Any, shape: tuple[int, ...], wanted: bool = True) -> list[str]:
    """What is warned of in two calls behind something that learns, if ``wanted``."""
    first = nn.Linear(shape[-1], shape[-1])
    optimiser = nn.optim.SGD([*nn.state.get_parameters(first), *nn.state.get_parameters(layer)]) if wanted else None
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(2):
            inputs = first(Tensor.ones(*shape))
            layer(*[inputs] * 3) if isinstance(layer, nn.MultiheadAttention) else layer(inputs)
    del optimiser
    assert all(w.filename == __file__ for w in found), "the line that is told is the program's"
    return [str(w.message) for w in found]


@pytest.mark.parametrize("name", LAYERS)
def test_one_warning_where_a_gradient_is_wanted(name: str) -> None:
    make, shape = LAYERS[name]
    found = said(make(), shape)
    assert (
        len(found) == 1 and "behaves as in inference, which is the default" in found[0] and "model.train()" in found[0]
    )


def test_attention_that_drops_weights_warns() -> None:
    (found,) = said(nn.MultiheadAttention(6, 2, dropout=0.3), (3, 2, 6))
    assert found.startswith("MultiheadAttention behaves")


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.Dropout(0.0), (3, 5)),
        (lambda: nn.BatchNorm(5, track_running_stats=False), (3, 5)),
        (lambda: nn.InstanceNorm1d(3), (2, 3, 5)),
        (lambda: nn.MultiheadAttention(6, 2), (3, 2, 6)),
        (lambda: nn.LayerNorm(5), (3, 5)),
    ],
)
def test_what_does_not_differ_says_nothing(make: Callable[[], Any], shape: tuple[int, ...]) -> None:
    assert not said(make(), shape)


@pytest.mark.parametrize("name", LAYERS)
def test_nobody_is_told_without_a_gradient(name: str) -> None:
    make, shape = LAYERS[name]
    assert not said(make(), shape, wanted=False)
    with Tensor.no_grad():
        assert not said(make(), shape)


@pytest.mark.parametrize(
    "say",
    [
        lambda layer: layer.train(),
        lambda layer: layer.eval(),
        lambda layer: Tensor.train(),
        lambda layer: Tensor.train(False),
    ],
)
def test_who_has_said_it_is_not_told(say: Callable[[Any], Any]) -> None:
    layer = nn.BatchNorm(5)
    context = say(layer)
    with nullcontext() if context is layer else context:
        assert not said(layer, (3, 5))
    assert not said(nn.Dropout(0.3), (3, 5))


def test_calls_with_hooks_and_checkpoints_say_nothing_by_themselves() -> None:
    layer = nn.Linear(5, 5)
    layer.register_forward_hook(lambda *args: None)
    nn.checkpoint(layer, Tensor.ones(3, 5).requires_grad_()).sum().backward()
    assert len(said(nn.Dropout(0.3), (3, 5))) == 1


@pytest.mark.parametrize("name", ["Dropout", "Dropout2d", "AlphaDropout", "RReLU"])
@pytest.mark.parametrize("word", ["x", "input"])
def test_what_is_named_is_told_of_and_taken(name: str, word: str) -> None:
    make, shape = LAYERS[name]
    layer, x = make(), Tensor.ones(*shape, requires_grad=True)
    with pytest.warns(UserWarning, match="behaves as in inference"):
        got = layer(**{word: x})
    assert got.tolist() == layer(x).tolist()


def test_a_call_that_says_whether_it_trains_is_told_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.Dropout2d(0.3)(Tensor.ones(2, 3, 5, 7, requires_grad=True), training=False)


@pytest.mark.parametrize("make", [nn.ReLU, nn.Dropout2d, nn.Hardtanh])
@pytest.mark.parametrize("word", ["x", "input"])
def test_what_is_named_is_changed_in_place(make: Callable[..., Any], word: str) -> None:
    x = Tensor.full((2, 3, 5, 7), -0.5).contiguous()
    want = make()(x).tolist()
    assert make(inplace=True)(**{word: x}) is x and x.tolist() == want


def test_words_are_in_any_order() -> None:
    x = Tensor.ones(2, 3, 5, 7).contiguous()
    assert nn.Dropout2d(inplace=True)(training=False, input=x) is x
