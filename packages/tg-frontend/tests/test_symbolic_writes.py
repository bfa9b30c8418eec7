"""Every way to write to a part with symbolic bounds: caches that one graph fills, and no gradient lost in silence.

A cache is kept from step to step: what a layer gave is written to it as data while no parameter says that it requires a
gradient. What was computed in the same step is written with its graph.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, nn
from tg_shape import Variable

Write = Callable[[Tensor, Any, Tensor], object]
PLACE = Variable("place", 0, 6)
STEPS = (0, 3, 1, 4)
DATA = np.random.default_rng(5).normal(size=(2, 7, 5)).astype(np.float32)


def _set(x: Tensor, at: Any, value: Tensor) -> None:
    x[:, at : at + 1] = value


def _set_without_the_axis(x: Tensor, at: Any, value: Tensor) -> None:
    x[:, at] = value[:, 0]


def _set_all_up_to(x: Tensor, at: Any, value: Tensor) -> None:
    x[:, : at + 1] = value


def _set_at_positions(x: Tensor, at: Any, value: Tensor) -> None:
    x[:, at : at + 1, [4, 0, 1, 2, 3]] = value


def _set_where_a_mask_says(x: Tensor, at: Any, value: Tensor) -> None:
    x[:, at : at + 1][value > 0] = value.sum()


def _set_a_sum(x: Tensor, at: Any, value: Tensor) -> None:
    x[:, at : at + 1] += value


def _add_to_a_view(x: Tensor, at: Any, value: Tensor) -> None:
    view = x[:, at : at + 1]
    view += value


def _assign_to_what_is_seen_otherwise(x: Tensor, at: Any, value: Tensor) -> None:
    x.transpose(0, 1)[at : at + 1].transpose(0, 1).copy_(value)


def _fill_and_multiply(x: Tensor, at: Any, value: Tensor) -> None:
    x[:, at : at + 1].fill_(2.0)
    x[:, at : at + 1].mul_(value)


WAYS: dict[str, Write] = {
    **{write.__name__[1:]: write for write in (
        _set, _set_without_the_axis, _set_all_up_to, _set_at_positions, _set_where_a_mask_says, _set_a_sum,
        _add_to_a_view, _assign_to_what_is_seen_otherwise, _fill_and_multiply,
    )},
    "assign": lambda x, at, value: x[:, at : at + 1].assign(value.detach()),
    "copy_": lambda x, at, value: x[:, at : at + 1].copy_(value),
    "narrow": lambda x, at, value: x.narrow(1, at, 1).copy_(value),
    "select": lambda x, at, value: x[:, at].copy_(value[:, 0]),
    "shrink": lambda x, at, value: x.shrink((None, (at, at + 1), None)).copy_(value),
    "fill_": lambda x, at, value: x[:, at : at + 1].fill_(value.sum()),
    "add_": lambda x, at, value: x[:, at : at + 1].add_(value),
    "lerp_": lambda x, at, value: x[:, at : at + 1].lerp_(value, 0.25),
    "tanh_": lambda x, at, value: x[:, at : at + 1].add_(value).tanh_(),
    "masked_fill_": lambda x, at, value: x[:, at : at + 1].masked_fill_(value > 0, 2.0),
    "index_copy_": lambda x, at, value: x[:, at : at + 1].index_copy_(1, Tensor([0]), value),
    "scatter_": lambda x, at, value: x[:, at : at + 1].scatter_(1, Tensor.zeros(2, 1, 5, dtype="int32"), value),
}  # fmt: skip
every_way = pytest.mark.parametrize("way", WAYS)


def _layers(marked: bool | None = None) -> tuple[nn.Linear, nn.Linear, list[Tensor]]:
    Tensor.manual_seed(11)
    first, second = nn.Linear(5, 5), nn.Linear(5, 5)
    parameters = [p for layer in (first, second) for p in (layer.weight, layer.bias) if p is not None]
    for parameter in parameters:
        parameter.requires_grad = marked
    return first, second, parameters


def _filled(way: str, symbolic: bool, jit: bool) -> list[np.ndarray]:
    """What steps see of a cache into which a layer's results are written."""
    layer, cache = _layers()[0], Tensor.ones(2, 7, 5).contiguous().realize()
    before = cache.lazydata.base.storage

    def step(x: Tensor, at: Any) -> Tensor:
        WAYS[way](cache, at, layer(x))
        return cache[:, : at + 1].sum(1).realize()

    run = TinyJit(step) if jit else step
    seen = [run(Tensor(DATA[:, at : at + 1]), PLACE.bind(at) if symbolic else at).numpy().copy() for at in STEPS]
    if symbolic:
        node = cache._memory().node
        assert node is None or node._ctx.parents == (), "a graph of all steps is kept"
    return [*seen, cache.numpy()] if before is not None else []


@every_way
@pytest.mark.parametrize("jit", [False, True])
def test_a_cache_is_filled_step_by_step(way: str, jit: bool) -> None:
    with Tensor.no_grad():
        wanted = _filled(way, False, False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = _filled(way, True, jit)
    for one, other in zip(wanted, got, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)


def _gradients(way: str, at: Any, marked: bool | None) -> list[np.ndarray | None]:
    first, second, parameters = _layers(marked)
    h = first(Tensor(DATA))
    WAYS[way](h, at, second(Tensor(DATA[:, 2:3])))
    (h * h).sum().backward()
    return [None if p.grad is None else p.grad.numpy() for p in parameters]


@every_way
@pytest.mark.parametrize("marked", [None, True])
def test_what_a_layer_gave_is_written_with_its_graph(way: str, marked: bool | None) -> None:
    for want, got in zip(_gradients(way, 3, True), _gradients(way, PLACE.bind(3), marked), strict=True):
        if want is None or got is None:
            assert not np.any(want if got is None else got)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


GIVEN_UP = [way for way in WAYS if way not in ("assign", "masked_fill_")]  # these write nothing that a layer gave


@pytest.mark.parametrize("way", GIVEN_UP)
def test_no_gradient_is_lost_in_silence(way: str) -> None:
    layer, other, _ = _layers()
    cache = Tensor.ones(2, 7, 5).contiguous().realize()
    WAYS[way](cache, PLACE.bind(2), layer(Tensor(DATA[:, :1])))
    with pytest.raises(RuntimeError, match="symbolic bounds was written as data"):
        cache.sum().backward()
    with pytest.raises(RuntimeError, match="symbolic bounds was written as data"):
        other(cache).sum().backward()
    with pytest.raises(RuntimeError, match="symbolic bounds was written as data"):
        other(cache).sum().gradient(layer.weight)
    other(cache.detach()).sum().backward()
    assert other.weight.grad is not None and layer.weight.grad is None


@pytest.mark.parametrize("way", GIVEN_UP)
def test_a_gradient_that_is_required_is_recorded(way: str) -> None:
    def gradient(at: Any) -> np.ndarray:
        layer = _layers(True)[0]
        cache = Tensor.ones(2, 7, 5).contiguous().realize()
        WAYS[way](cache, at, layer(Tensor(DATA[:, :1])))
        (cache * cache).sum().backward()
        assert layer.weight.grad is not None
        return layer.weight.grad.numpy()

    np.testing.assert_allclose(gradient(PLACE.bind(3)), gradient(3), rtol=1e-4, atol=1e-5)


@every_way
def test_a_cache_whose_first_part_was_written_with_numbers(way: str) -> None:
    layer, cache = _layers()[0], Tensor.zeros(2, 7, 5).contiguous().realize()
    cache[:, :2] = layer(Tensor(DATA[:, :2]))
    for at in (2, 3, 4):
        WAYS[way](cache, PLACE.bind(at), layer(Tensor(DATA[:, at : at + 1])))
        cache[:, : PLACE.bind(at) + 1].sum().realize()
    wanted = Tensor.zeros(2, 7, 5).contiguous()
    with Tensor.no_grad():
        wanted[:, :2] = layer(Tensor(DATA[:, :2]))
        for at in (2, 3, 4):
            WAYS[way](wanted, at, layer(Tensor(DATA[:, at : at + 1])))
    np.testing.assert_allclose(cache.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-5)


def test_what_is_overwritten_as_a_whole_has_its_gradients_again() -> None:
    layer = _layers()[0]
    cache = Tensor.ones(2, 7, 5).contiguous().realize()
    cache[:, PLACE.bind(2)] = layer(Tensor(DATA[:, 0]))
    cache.zero_()
    layer(cache + Tensor(DATA)).sum().backward()
    assert layer.weight.grad is not None
