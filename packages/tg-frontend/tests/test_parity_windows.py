"""Convolutions and pools over a grid of parameters, against sums over numpy's windows."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tg_frontend import Tensor
from tg_frontend.ops.interpolation import cheapest_order

Array = npt.NDArray[Any]


def windows(x: Array, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]) -> Array:
    """(…, *counts, *kernel)"""
    n = len(kernel)
    reach = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    lead = (slice(None),) * (x.ndim - n)
    view = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(x.ndim - n, x.ndim)))
    return view[(*lead, *(slice(None, None, s) for s in stride), *(slice(None, None, d) for d in dilation))]


def correlate(
    x: Array, w: Array, groups: int, stride: tuple[int, ...], padding: list[tuple[int, int]], dilation: tuple[int, ...]
) -> Array:
    n = w.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *padding])
    found = windows(x, w.shape[2:], stride, dilation)
    batch, outputs, inputs = x.shape[0], w.shape[0] // groups, w.shape[1]
    rows = found.reshape(batch, groups, inputs, *found.shape[2:])
    kernels = w.reshape(groups, outputs, inputs, *w.shape[2:])
    spatial = "xyz"[:n]
    window = "uvw"[:n]
    out: Array = np.einsum(f"bgi{spatial}{window},goi{window}->bgo{spatial}", rows, kernels)
    result: Array = out.reshape(batch, groups * outputs, *out.shape[3:])
    return result


def cases() -> list[dict[str, Any]]:
    rng = random.Random(7)
    out: list[dict[str, Any]] = []
    while len(out) < 24:
        n = rng.choice([1, 2, 2, 2, 3])
        groups = rng.choice([1, 1, 2, 3])
        case: dict[str, Any] = {
            "x": (rng.choice([1, 2]), groups * rng.choice([1, 2, 4]), *(rng.choice([3, 5, 6, 9]) for _ in range(n))),
            "outputs": groups * rng.choice([1, 2, 3]), "groups": groups,
            "kernel": tuple(rng.choice([1, 2, 3]) for _ in range(n)),
            "stride": tuple(rng.choice([1, 1, 2, 3]) for _ in range(n)),
            "padding": [(rng.randrange(3), rng.randrange(3)) for _ in range(n)],
            "dilation": tuple(rng.choice([1, 1, 2]) for _ in range(n)),
        }  # fmt: skip
        sizes = [i + sum(p) for i, p in zip(case["x"][2:], case["padding"], strict=True)]
        if all(d * (k - 1) + 1 <= i for i, k, d in zip(sizes, case["kernel"], case["dilation"], strict=True)):
            out.append(case)
    return out


@pytest.mark.parametrize("number", range(24))
def test_convolutions_and_their_gradients(number: int, backend: str) -> None:
    case = cases()[number]
    rng = np.random.default_rng(number)
    groups, stride, padding, dilation = case["groups"], case["stride"], case["padding"], case["dilation"]
    x = rng.uniform(-1, 1, case["x"])
    w = rng.uniform(-1, 1, (case["outputs"], case["x"][1] // groups, *case["kernel"]))
    b = rng.uniform(-1, 1, case["outputs"])
    s, t, u = (Tensor(a, requires_grad=True) for a in (x, w, b))
    got = s.conv2d(t, u, groups=groups, stride=stride, dilation=dilation, padding=padding)
    want = correlate(x, w, groups, stride, padding, dilation) + b.reshape(-1, *(1,) * len(stride))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-9, atol=1e-9)
    # the operation is linear in each operand: its gradient is found by trying every unit vector, here a random one
    weights = rng.uniform(-1, 1, want.shape)
    (got * Tensor(weights)).sum().backward()
    for leaf, array, place in ((s, x, 0), (t, w, 1), (u, b, 2)):
        direction = rng.uniform(-1, 1, array.shape)
        operands: list[Any] = [x, w]
        if place < 2:
            operands[place] = direction
            moved = correlate(operands[0], operands[1], groups, stride, padding, dilation)
        else:
            moved = np.broadcast_to(direction.reshape(-1, *(1,) * len(stride)), want.shape)
        assert leaf.grad is not None
        np.testing.assert_allclose((leaf.grad.numpy() * direction).sum(), (moved * weights).sum(), rtol=1e-8)


@pytest.mark.parametrize("kernel", [(2, 2), (3, 2), (1, 3), (3,), (2, 2, 2)], ids=str)
@pytest.mark.parametrize("stride", [None, 1, 2, 3])
def test_pools(kernel: tuple[int, ...], stride: int | None, backend: str) -> None:
    n = len(kernel)
    steps = kernel if stride is None else (stride,) * n
    x = np.random.default_rng(n).uniform(-1, 1, (2, 3, *(7, 6, 5)[:n]))
    t = Tensor(x)
    pairs = []
    for padding in (0, 1):
        if padding * 2 > min(kernel):
            continue
        for dilation in (1, 2):
            if any(dilation * (k - 1) + 1 > i + 2 * padding for k, i in zip(kernel, x.shape[2:], strict=True)):
                continue
            around = [(0, 0), (0, 0), *((padding, padding),) * n]
            axes = tuple(range(-n, 0))
            low = windows(np.pad(x, around, constant_values=-np.inf), kernel, steps, (dilation,) * n)
            zero = windows(np.pad(x, around), kernel, steps, (dilation,) * n)
            ones = windows(np.pad(np.ones_like(x), around), kernel, steps, (dilation,) * n)
            arguments: dict[str, Any] = {
                "kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation,
            }  # fmt: skip
            pairs += [
                (t.max_pool2d(**arguments), low.max(axes)),
                (t.avg_pool2d(**arguments), zero.mean(axes)),
                (t.avg_pool2d(**arguments, count_include_pad=False), zero.sum(axes) / ones.sum(axes)),
            ]
            maxima, where = t.max_pool2d(**arguments, return_indices=True)
            flat = x.reshape(2, 3, -1)
            found = np.take_along_axis(flat, where.numpy().reshape(2, 3, -1), -1).reshape(maxima.shape)
            np.testing.assert_array_equal(found, maxima.numpy())
    for got, want in pairs:
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-9)


def test_unpooling_puts_maxima_back(backend: str) -> None:
    x = np.random.default_rng(0).uniform(0.1, 1, (2, 3, 6, 9)).astype(np.float32)
    maxima, where = Tensor(x).max_pool2d(3, return_indices=True)
    back = maxima.max_unpool2d(where, 3).numpy()
    assert back.shape == x.shape and (back != 0).sum() == maxima.numel() and np.all((back == 0) | (back == x))
    assert maxima.max_unpool2d(where, 3, output_size=(6, 9)).tolist() == back.tolist()
    with pytest.raises(ValueError, match="max_unpool2d: maxima of shape"):
        maxima.max_unpool2d(where[:1], 3)
    with pytest.raises(TypeError, match="indices are integers"):
        maxima.max_unpool2d(where.float(), 3)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_padding_modes_and_their_gradients(mode: str, backend: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (2, 4, 5))
    numpy = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    for amounts in ([(0, 0), (1, 2), (3, 0)], [(0, 0), (0, 3), (2, 4)], [(0, 0), (-1, 0), (1, -2)]):
        positive = [(max(a, 0), max(b, 0)) for a, b in amounts]
        cut = x[tuple(slice(max(-a, 0), d - max(-b, 0)) for (a, b), d in zip(amounts, x.shape, strict=True))]
        t = Tensor(x, requires_grad=True)
        got = t.pad(amounts, mode=mode).realize()  # so that the gradient reads it from memory
        want = np.pad(cut, positive, mode=numpy)  # type: ignore[call-overload]
        np.testing.assert_array_equal(got.numpy(), want)
        weights = rng.uniform(-1, 1, want.shape)
        ((got + 1) * Tensor(weights)).mean().backward()
        direction = rng.uniform(-1, 1, x.shape)
        moved = direction[tuple(slice(max(-a, 0), d - max(-b, 0)) for (a, b), d in zip(amounts, x.shape, strict=True))]
        moved = np.pad(moved, positive, mode=numpy)  # type: ignore[call-overload]
        assert t.grad is not None
        np.testing.assert_allclose((t.grad.numpy() * direction).sum(), (moved * weights).mean(), rtol=1e-8)


def test_interpolation_of_integers(backend: str) -> None:
    x = np.arange(16, dtype=np.int16).reshape(4, 4) * 16
    got = Tensor(x).interpolate((7, 7))
    want = Tensor(x.astype(np.float32)).interpolate((7, 7)).numpy()
    assert got.tolist() == np.round(want).astype(int).tolist() and got.dtype.name == "int16"
    octets = Tensor(x.astype(np.uint8)).interpolate((7, 7)).numpy()  # rounded once an axis
    assert octets.dtype == np.uint8 and np.abs(octets - want).max() <= 1


def test_unpooling_puts_the_last_of_several_maxima(backend: str) -> None:
    maxima = Tensor([[[[5.0, 5.0], [7.0, 8.0]]]])
    where = Tensor([[[[4, 4], [4, 8]]]])
    out = maxima.max_unpool2d(where, 2, stride=1)
    assert out.tolist() == [[[[0, 0, 0], [0, 7, 0], [0, 0, 8]]]]


def drawn_windows(seed: int) -> dict[str, Any]:
    """Sizes of windows that overlap, leave gaps, hang over, or do several of it, and of an input that has some.

    Those of every third seed are disjoint.
    """
    rng = random.Random(seed)
    n = rng.choice([1, 2, 2, 3])
    kernel = tuple(rng.randint(1, 5) for _ in range(n))
    dilation = tuple(rng.choice([1, 1, 2, 3]) for _ in range(n))
    stride = tuple(rng.randint(1, 4) for _ in range(n))
    if seed % 3 == 2:
        stride = tuple(d * (k - 1) + rng.randint(1, 3) for k, d in zip(kernel, dilation, strict=True))
    return {
        "kernel_size": kernel, "dilation": dilation, "stride": stride,
        "padding": tuple(rng.randint(0, k // 2) for k in kernel), "ceil_mode": rng.random() < 0.5,
        "spatial": tuple(d * (k - 1) + 1 + rng.choice([0, 1, 2, 4, 6]) for k, d in zip(kernel, dilation, strict=True)),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_gradients_of_pools_to_second_order(seed: int) -> None:
    sizes = drawn_windows(seed)
    spatial = sizes.pop("spatial")
    kernel, padding = sizes["kernel_size"], sizes["padding"]
    rng = np.random.default_rng(seed)
    x = rng.permutation(2 * int(np.prod(spatial))).reshape(2, *spatial) / 64 - 1  # no two are the same
    t = Tensor(x, requires_grad=True)
    most, means = t.max_pool2d(**sizes), t.avg_pool2d(**sizes)
    around = [(0, 0), *((p, p + 2 * max(sizes["stride"]) + k) for p, k in zip(padding, kernel, strict=True))]
    places = np.pad(np.arange(x.size).reshape(x.shape), around, constant_values=-1)
    found = windows(places, kernel, sizes["stride"], sizes["dilation"])
    found = found[(slice(None), *(slice(0, int(c)) for c in most.shape[1:]))].reshape(*most.shape, -1)
    # one row for each place and window: which of them hold the maximum, and which part of the mean each element is
    values = np.where(found < 0, -np.inf, x.reshape(-1)[found])
    best = np.take_along_axis(found, values.argmax(-1)[..., None], -1)[..., 0].reshape(-1)
    share = np.zeros((best.size, x.size))
    np.add.at(share, (np.arange(best.size)[:, None], np.maximum(found.reshape(best.size, -1), 0)),
              (found >= 0).reshape(best.size, -1))  # fmt: skip
    hangs = windows(np.pad(np.pad(np.ones_like(x), [(0, 0), *((p, p) for p in padding)], constant_values=1),
                           [(0, 0), *((0, a - p) for (_, a), p in zip(around[1:], padding, strict=True))]),
                    kernel, sizes["stride"], sizes["dilation"])  # fmt: skip
    hangs = hangs[(slice(None), *(slice(0, int(c)) for c in most.shape[1:]))]
    share /= hangs.reshape(best.size, -1).sum(-1)[:, None]
    picked = np.zeros_like(share)
    picked[np.arange(best.size), best] = 1
    weights, direction = rng.uniform(-1, 1, best.size), rng.uniform(-1, 1, x.size)
    for got, rows in ((most, picked), (means, share)):
        want = rows @ x.reshape(-1)
        np.testing.assert_allclose(got.numpy().reshape(-1), want, rtol=1e-9, atol=1e-9)
        (slope,) = (got.reshape(-1) ** 3 * Tensor(weights)).sum().gradient(t)
        np.testing.assert_allclose(slope.numpy().reshape(-1), rows.T @ (3 * want**2 * weights), rtol=1e-9, atol=1e-9)
        (second,) = (slope.reshape(-1) * Tensor(direction)).sum().gradient(t)
        bent = rows.T @ (6 * want * weights * (rows @ direction))
        np.testing.assert_allclose(second.numpy().reshape(-1), bent, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_ties_of_a_window_share_its_gradient_and_padding_has_none(seed: int) -> None:
    sizes = drawn_windows(seed)
    spatial, kernel, padding = sizes.pop("spatial"), sizes["kernel_size"], sizes["padding"]
    rng = np.random.default_rng(seed)
    x = rng.choice([-np.inf, -np.inf, -np.inf, -1, 0], size=(2, *spatial))
    t = Tensor(x, requires_grad=True)
    most = t.max_pool2d(**sizes)
    around = [(0, 0), *((p, p + 2 * max(sizes["stride"]) + k) for p, k in zip(padding, kernel, strict=True))]
    cut = (slice(None), *(slice(0, int(c)) for c in most.shape[1:]))
    values, places = (
        windows(np.pad(array, around, constant_values=-1), kernel, sizes["stride"], sizes["dilation"])[cut]
        for array in (x, np.arange(x.size).reshape(x.shape))
    )
    values = np.where(places < 0, -np.inf, values).reshape(*most.shape, -1)
    places = places.reshape(values.shape)
    best = values.max(-1)
    hit = (values == best[..., None]) & (places >= 0)
    weights = rng.uniform(-1, 1, most.shape)
    want = np.zeros(x.size)
    np.add.at(want, places[hit], (hit * (weights / np.maximum(hit.sum(-1), 1))[..., None])[hit])
    np.testing.assert_array_equal(most.numpy(), best)
    (slope,) = (most * Tensor(weights, requires_grad=True)).sum().gradient(t)
    np.testing.assert_allclose(slope.numpy().reshape(-1), want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("kernel", "dilation"), [(2, 1), (7, 1), (3, 2)])
def test_gradients_of_disjoint_pools_are_one_kernel(kernel: int, dilation: int, dtype: str) -> None:
    x = Tensor(np.random.default_rng(0).normal(size=(3, 29, 31)).astype(dtype), requires_grad=True).realize()
    for out in (x.max_pool2d(kernel, 7, dilation=dilation), x.avg_pool2d(kernel, 7, dilation=dilation)):
        weights = Tensor(np.ones(out.shape, dtype)).realize()
        out.realize()
        (slope,) = (out * weights).sum().gradient(x)
        assert len(slope.schedule()) == 1  # a second one would count ties, or add up what nothing overlaps


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_gradients_of_pools_keep_no_windows(stride: int) -> None:
    x = Tensor(np.random.default_rng(0).normal(size=(3, 29, 31)).astype(np.float32), requires_grad=True).realize()
    for out in (x.max_pool2d(5, stride, padding=2), x.avg_pool2d(5, stride, padding=2)):
        (slope,) = (out * out).sum().gradient(x)
        sizes = [int(buffer.size) for item in slope.schedule() for buffer in item.bufs]
        assert sizes and max(sizes) < 2 * x.numel()  # windows side by side are 25, 6 or 2.7 times as large


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_elements_by_whole_factors(mode: str, dtype: str) -> None:
    wide: Any = np.float64 if dtype == "float64" else np.float32
    repeated = 0
    for old in (1, 2, 5, 13, 41, 97):
        x = np.arange(2 * old).reshape(2, old).astype(dtype)
        for times in (2, 3, 4, 5, 7, 11):
            i = np.arange(old * times).astype(wide)
            places = np.floor((i + (0.5 if mode == "nearest-exact" else 0)) * wide(1 / times)).astype(int)
            got = Tensor(x).realize().interpolate(scale_factor=times, mode=mode)
            repeated += len(got.contiguous().schedule()) == 1
            np.testing.assert_array_equal(got.numpy(), x[:, np.minimum(places, old - 1)])
    assert repeated > 24  # of 36: where rounded positions agree, nothing is looked up


def _linear_weights(old: int, new: int) -> Array:
    """A row for each new element: the weights of the old ones."""
    at = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
    weights: Array = np.maximum(0, 1 - np.abs(at[:, None] - np.arange(old)))
    return weights


@pytest.mark.parametrize(
    ("old", "new"),
    [((5, 7), (11, 13)), ((11, 13), (5, 7)), ((5, 13), (17, 3)), ((13, 5), (3, 17)), ((3, 4, 5), (7, 2, 9))],
)
def test_linear_interpolation_multiplies_by_weights(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (2, 3, *old))
    want = x
    for axis, (have, wanted) in enumerate(zip(old, new, strict=True), 2):
        want = np.moveaxis(np.tensordot(want, _linear_weights(have, wanted), (axis, 1)), -1, axis)
    np.testing.assert_allclose(Tensor(x).interpolate(new, mode="linear").numpy(), want, rtol=1e-12, atol=1e-12)


def test_the_last_axis_waits_for_others_that_shrink() -> None:
    def first(old: tuple[int, ...], new: tuple[int, ...]) -> list[int]:
        return [axis for axis, _, _ in cheapest_order(old, [(n, size, 1.0) for n, size in enumerate(new)])]

    assert first((9, 9), (20, 20)) == [1, 0] and first((20, 20), (9, 9)) == [0, 1]
    assert first((9, 20), (20, 9)) == [1, 0] and first((5, 5, 5), (11, 4, 11)) == [1, 2, 0]
