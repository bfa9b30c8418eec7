"""Arguments as PyTorch's users write them: what each means, with plain numpy beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tg_dtype import dtypes
from tg_frontend import Tensor

RNG = np.random.default_rng(5)
Spelled: Any = Tensor  # as other libraries spell what it takes, which its types do not say


def f(*shape: int) -> npt.NDArray[np.float32]:
    return RNG.uniform(-2, 2, shape).astype(np.float32)


def same(got: Tensor, want: Any, rtol: float = 1e-5) -> None:
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=1e-5)


def test_the_axis_may_follow_a_list() -> None:
    a, b = f(3, 7), f(3, 7)
    for dim in (0, 1, -1):
        same(Spelled.cat([Tensor(a), Tensor(b)], dim), np.concatenate([a, b], dim))
        same(Spelled.stack([Tensor(a), Tensor(b)], dim), np.stack([a, b], dim))
        same(Spelled.stack([Tensor(a)], dim), np.stack([a], dim))
    with pytest.raises(ValueError, match="one list"):
        Spelled.cat([Tensor(a)], "x")
    with pytest.raises(ValueError, match="one list"):
        Spelled.cat([Tensor(a)], 0, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.int32], ids=["float32", "int32"])
def test_alpha(dtype: type) -> None:
    a: npt.NDArray[Any] = (10 * f(5, 3)).astype(dtype)
    b: npt.NDArray[Any] = (10 * f(3)).astype(dtype)
    same(Tensor(a).add(Tensor(b), alpha=3), a + 3 * b)
    same(Tensor(a).sub(Tensor(b), alpha=2), a - 2 * b)
    same(Tensor(a).sub(3, alpha=2), a - 6)
    same(Tensor(a).sub(b, alpha=2), a - 2 * b)
    assert Tensor(a).add(Tensor(b), alpha=3).dtype == Tensor(a).dtype


def test_max_and_min_of_two() -> None:
    a, b = f(3, 1), f(5)
    same(Tensor(a).max(Tensor(b)), np.maximum(a, b))
    same(Tensor(a).min(Tensor(b)), np.minimum(a, b))


def test_several_axes() -> None:
    x = f(2, 3, 5)
    for axis in ((0, 2), (1,), [0, 1, 2], ()):
        want = np.log(np.exp(x.astype(np.float64)).sum(tuple(axis)))
        same(Tensor(x).logsumexp(axis), want)
        kept = np.log(np.exp(x.astype(np.float64)).sum(tuple(axis), keepdims=True))
        same(Tensor(1000 + x).logsumexp(axis, keepdim=True), 1000 + kept)
    one = Tensor(f(1, 3, 1, 1))
    assert one.squeeze((0, 1, -1)).shape == (3, 1) and one.squeeze([]).shape == (1, 3, 1, 1)
    with pytest.raises(IndexError, match="squeeze"):
        one.squeeze((0, 4))


def test_pooling_and_convolution_ask_for_names() -> None:
    """PyTorch and tinygrad order what follows in two ways: a number without a name would be taken for another."""
    x, w = Spelled(f(1, 2, 9, 9)), Tensor(f(2, 2, 3, 3))
    calls: list[Callable[[], object]] = [
        lambda: x.avg_pool2d(3, 1, 1), lambda: x.max_pool2d(3, 1, 1),
        lambda: x.conv2d(w, None, 1), lambda: x.conv_transpose2d(w, None, 1),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(TypeError, match="positional"):
            call()
    same(x.avg_pool2d(3, 2, divisor_override=5), (x.avg_pool2d(3, 2) * 9 / 5).numpy())
    with pytest.raises(ValueError, match="divisor_override"):
        x.avg_pool2d(3, divisor_override=0)


def test_dropout_that_is_told_to_train() -> None:
    x = Tensor.ones(1009)
    assert set(x.dropout(0.5, training=True).tolist()) == {0.0, 2.0}
    with Tensor.train():
        assert x.dropout(0.5, training=False).tolist() == x.tolist()


def test_softplus_above_its_threshold() -> None:
    x = f(11)
    want = np.where(3 * x > 0.5, x, np.log1p(np.exp(3 * x)) / 3)
    same(Tensor(x).softplus(3, threshold=0.5), want)


def test_weights_of_binary_cross_entropy() -> None:
    x, y, w = f(3, 7), RNG.integers(0, 2, (3, 7)).astype(np.float32), np.abs(f(7))
    p = 1 / (1 + np.exp(-x))
    want = w * -(y * np.log(p) + (1 - y) * np.log(1 - p))
    same(Tensor(p).binary_crossentropy(Tensor(y), weight=Tensor(w)), want.mean(), 1e-4)
    same(Tensor(x).binary_crossentropy_logits(Tensor(y), "none", weight=Tensor(w)), want, 1e-4)


def test_variances_of_rows() -> None:
    """Those of x's shape without its last axis are for rows, also where they would broadcast along columns."""
    x, y, v = f(5, 5), f(5, 5), np.abs(f(5)) + 0.5
    want = (np.log(v)[:, None] + (x - y) ** 2 / v[:, None]) / 2
    same(Tensor(x).gaussian_nll_loss(Tensor(y), Tensor(v), reduction="none"), want)
    same(Tensor(x).gaussian_nll_loss(Tensor(y), Tensor(v[:, None]), reduction="none"), want)


def test_a_histogram_of_nothing() -> None:
    counts, edges = Tensor(f(0, 3)).histogram(4)
    want, places = np.histogram(f(0), 4)
    assert counts.tolist() == want.tolist() and edges.tolist() == places.tolist()


def test_fractions_of_a_quantile_have_a_gradient() -> None:
    x, q = Tensor([1.0, 5.0, 2.0, 9.0]), Tensor([0.3, 0.5], requires_grad=True)
    x.quantile(q).sum().backward()
    assert q.grad is not None
    same(q.grad, [3.0, 9.0])  # the distance of the two neighbours, three times: ranks go from 0 to 3


def test_positions_of_a_wanted_width() -> None:
    edges, x = Tensor([1.0, 2.0]), Tensor([0.5, 2.5, 1.0])
    assert edges.searchsorted(x).dtype == x.bucketize(edges).dtype == dtypes.int32
    assert edges.searchsorted(x, out_int32=False).dtype == x.bucketize(edges, out_int32=False).dtype == dtypes.int64


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_each_element_so_often(axis: int | None) -> None:
    x = f(3, 7)
    n = x.size if axis is None else x.shape[axis]
    for counts in (RNG.integers(0, 4, n), np.zeros(n, np.int64), np.array([2])):
        want = np.repeat(x, counts, axis)
        same(Tensor(x).repeat_interleave(Tensor(counts), axis), want)
        same(Tensor(x).repeat_interleave(counts.tolist(), axis), want)
        size = int(want.size if axis is None else want.shape[axis])
        same(Tensor(x).repeat_interleave(Tensor(counts), axis, output_size=size), want)
    with pytest.raises(ValueError, match="repeats for"):
        Tensor(x).repeat_interleave([1] * (n + 1), axis)
    with pytest.raises(ValueError, match="negative"):
        Tensor(x).repeat_interleave([-1] * n, axis)
    with pytest.raises(TypeError, match="integers"):
        Tensor(x).repeat_interleave(Tensor(np.ones(n, np.float32)), axis)


def test_places_so_often_as_the_tensor_says() -> None:
    assert Tensor([2, 0, 3]).repeat_interleave().tolist() == [0, 0, 2, 2, 2]
    assert Tensor([2, 0, 3]).repeat_interleave(output_size=5).tolist() == [0, 0, 2, 2, 2]
    assert Tensor([0], dtype="uint8").repeat_interleave().shape == (0,)
    for wrong, error in (([[1]], ValueError), ([-1], ValueError), ([1.0], TypeError), ([True], TypeError)):
        with pytest.raises(error, match="repeat"):
            Tensor(wrong).repeat_interleave()


def test_gradient_of_elements_that_come_oftener() -> None:
    x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    (x.repeat_interleave([2, 0, 3]) ** 2).sum().backward()
    assert x.grad is not None
    same(x.grad, [4.0, 0.0, 18.0])


def test_a_grid_of_a_list() -> None:
    a, b = f(3), f(5)
    for got, want in zip(Spelled.meshgrid([Tensor(a), Tensor(b)], indexing="xy"), np.meshgrid(a, b), strict=True):
        same(got, want)


def test_norms_of_half_precision_do_not_overflow() -> None:
    x = np.full(7, 300, np.float16)
    for p in (2, 3, 4.0):
        want = np.linalg.norm(x.astype(np.float64), p)
        same(Tensor(x).dist(Tensor(np.zeros_like(x)), p), want, 1e-3)


def test_a_diagonal_keeps_its_dtype() -> None:
    for dtype in (np.bool_, np.uint8, np.float16):
        x = np.array([1, 0, 1], dtype)
        got = Tensor(x).diag()
        assert got.numpy().dtype == dtype and got.tolist() == np.diag(x).tolist()


def test_the_last_axes_exchanged() -> None:
    x = f(2, 3, 5)
    same(Tensor(x).mT, x.swapaxes(-1, -2))
    with pytest.raises(ValueError, match="mT"):
        _ = Tensor(f(3)).mT


def test_arguments_without_effect_and_those_that_are_refused() -> None:
    x = Spelled(f(3))
    assert x.float(memory_format="contiguous").shape == (3,)
    assert x.relu(inplace=False).shape == (3,)
    with pytest.raises(TypeError, match=r"relu\(\) takes no 'inplace'"):
        x.relu(inplace=True)


def test_windows_do_not_lie_in_the_padding_alone() -> None:
    x = Tensor(f(1, 1, 5, 7))
    assert x.max_pool2d(3, 1, padding=2).shape == (1, 1, 7, 9)
    for pool in (x.max_pool2d, x.avg_pool2d):
        with pytest.raises(ValueError, match="padding alone"):
            pool(3, 1, padding=(0, 3))


def test_equal_distances_from_either_end() -> None:
    for start, stop, steps in ((0.1, 0.7, 7), (-3, 11, 101), (5, 5, 2), (2.5, -1.5, 3), (1, 2, 1)):
        got = Tensor.linspace(start, stop, steps).numpy()
        same(Tensor(got), np.linspace(start, stop, steps), 1e-6)
        assert got[0] == np.float32(start) and (steps == 1 or got[-1] == np.float32(stop))
    whole = Tensor.linspace(123456789, 123456789 + 7 * 1000003, 8, dtype="int64")
    assert whole.tolist() == [123456789 + i * 1000003 for i in range(8)]
    bounds = np.array([0.0, 1.0], np.float32), np.array([2.0, -3.0], np.float32)
    same(Tensor.linspace(Tensor(bounds[0]), Tensor(bounds[1]), 5), np.linspace(*bounds, 5), 1e-6)
    with pytest.raises(TypeError, match="bounds are numbers"):
        Tensor.linspace("0", 2, 2)


@pytest.mark.parametrize("name", ["addmm", "addmv", "addr", "baddbmm", "addbmm", "addcmul"])
def test_floats_times_integers_are_refused_where_the_sum_is_of_integers(name: str) -> None:
    every: dict[str, list[tuple[int, ...]]] = {
              "addmm": [(3, 5), (3, 2), (2, 5)], "addmv": [(3,), (3, 5), (5,)], "addr": [(3, 5), (3,), (5,)],
              "baddbmm": [(2, 3, 5), (2, 3, 7), (2, 7, 5)], "addbmm": [(3, 5), (2, 3, 7), (2, 7, 5)],
              "addcmul": [(3, 5), (3, 5), (5,)]}  # fmt: skip
    whole = [Spelled(RNG.integers(-4, 5, shape)) for shape in every[name]]
    for factor in ("value",) if name == "addcmul" else ("alpha", "beta"):
        with pytest.raises(ValueError, match=f"{name}: {factor} is the float 0.5"):
            getattr(whole[0], name)(*whole[1:], **{factor: 0.5})
        assert getattr(whole[0], name)(*whole[1:], **{factor: 3}).dtype is whole[0].dtype
        for place in range(3):
            mixed = [x.float() if n == place else x for n, x in enumerate(whole)]
            got = getattr(mixed[0], name)(*mixed[1:], **{factor: 0.5})
            assert got.dtype is dtypes.float32
            wanted = getattr(whole[0].float(), name)(*[x.float() for x in whole[1:]], **{factor: 0.5})
            same(got, wanted.numpy())


def test_sizes_of_normal_by_name() -> None:
    for drawn in (Spelled.normal(1000.0, 0.5, size=(3, 5)), Spelled.normal(1000, 0.5, size=[3, 5]),
                  Spelled.normal(mean=1000, std=0.5, size=(3, 5))):  # fmt: skip
        assert drawn.shape == (3, 5) and abs(drawn.mean().item() - 1000) < 2
    assert Spelled.normal(size=(7,)).shape == (7,)
    with pytest.raises(TypeError, match="and size="):
        Spelled.normal(2, 3, 4, size=(2,))


def test_numpy_takes_force() -> None:
    x = Spelled([1.0, 2.0], requires_grad=True)
    assert x.numpy(force=True).tolist() == x.numpy(force=False).tolist() == [1.0, 2.0]


def test_products_and_quotients_that_are_added_are_of_tensors() -> None:
    z = Spelled([1 + 2j, 3.0])
    for name in ("addcdiv", "addcmul"):
        with pytest.raises(TypeError, match=name):
            getattr(z, name)(1, 0)
    same(z.addcdiv(z, 0.5), z.numpy() * 3)
