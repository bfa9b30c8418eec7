"""What PyTorch's own samples found: each was wrong, or refused, and is as PyTorch has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_frontend import Tensor
from tg_frontend.nn import functional as F


def test_slices_of_a_number() -> None:
    x, at = Tensor(1.0), Tensor([0])
    assert x.index_add(0, at, Tensor(2.0), alpha=3).item() == 7.0
    assert x.index_copy(0, at, Tensor(2.0)).item() == 2.0
    assert x.index_fill(0, at, 4.0).item() == 4.0
    assert x.index_reduce(0, at, Tensor(5.0), "prod").item() == 5.0
    assert Tensor([1.0, 2.0]).index_fill(0, Tensor(1), 9.0).tolist() == [1.0, 9.0]


def test_an_index_of_bools_stands_for_positions() -> None:
    x, mask = np.arange(12).reshape(3, 4), np.arange(12).reshape(3, 4) % 3 == 0
    got = Tensor(x).index_put((Tensor(mask),), Tensor(np.arange(4)))
    want = x.copy()
    want[mask] = np.arange(4)
    assert got.tolist() == want.tolist()
    with pytest.raises(TypeError, match="index_put: indices are a tuple"):
        Tensor([1]).index_put(Tensor([0]), Tensor([2]))  # type: ignore[arg-type]


def test_positions_along_an_axis_count_from_its_end() -> None:
    x = Tensor([[3, 1, 2], [2, 5, 7]])
    assert x.take_along_dim(Tensor([[-1], [0]]), 1).tolist() == [[2], [2]]
    assert x.take_along_dim(Tensor([-1, 0])).tolist() == [7, 3]


def test_deviation_as_pytorch_spells_it() -> None:
    x = np.random.default_rng(0).normal(size=(3, 5))
    assert np.isclose(Tensor(x).var(False).item(), x.var())
    assert np.isclose(Tensor(x).std(True).item(), x.std(ddof=1))
    assert np.isclose(Tensor(x).std(correction=None).item(), x.std(ddof=1))
    np.testing.assert_allclose(Tensor(x).var(1, correction=0.5).numpy(), x.var(1) * 5 / 4.5)


def test_a_mask_larger_than_the_tensor() -> None:
    x, mask = Tensor([1, 2]), Tensor([[True, False], [False, True]])
    assert x.masked_scatter(mask, Tensor([7, 8])).tolist() == [[7, 2], [1, 8]]
    assert Tensor([True, False]).masked_fill(Tensor([False, True]), 10).dtype is dtypes.bool


def test_nothing_joins_with_tensors_of_any_shape() -> None:
    assert Tensor.cat(Tensor.zeros(0), Tensor([[1.0], [2.0]]), dim=1).tolist() == [[1.0], [2.0]]
    assert Tensor.cat(Tensor([[1, 2]]), Tensor.zeros(0), dim=0).dtype is dtypes.float32
    assert Tensor.cat(Tensor.zeros(0), Tensor.zeros(0)).shape == (0,)
    with pytest.raises(ValueError, match="do not join"):
        Tensor.cat(Tensor.zeros(1), Tensor([[1.0]]), dim=0)


def test_bounds_and_sizes_of_random_integers() -> None:
    assert Tensor.randint(10, (2, 3)).shape == (2, 3) and Tensor.randint(10, ()).shape == ()
    assert sorted(set(Tensor.randint(3, 5, (200,)).tolist())) == [3, 4]
    assert Tensor.randint(3, 5, (2,), dtype="float64").dtype is dtypes.float64
    assert Tensor.randint(4, low=3, high=4).tolist() == [3] * 4
    assert Tensor.zeros(50).randint_like(1).tolist() == [0.0] * 50
    assert set(Tensor.zeros(50).randint_like(4, 6).tolist()) == {4.0, 5.0}
    with pytest.raises(TypeError, match="randint_like: bounds are one number or two"):
        Tensor.zeros(2).randint_like(1, 2, 3)


def test_bins_by_their_edges() -> None:
    x = np.random.default_rng(1).uniform(-1, 5, 97)
    edges = np.array([0.0, 0.5, 2.0, 4.0])
    for density in (False, True):
        counts, found = Tensor(x).histogram(Tensor(edges), density=density)
        np.testing.assert_allclose(counts.numpy(), np.histogram(x, edges, density=density)[0])
        np.testing.assert_allclose(found.numpy(), edges)
    counts, _ = Tensor([0.0, 4.0]).histogram(Tensor(edges.astype(np.float32)), weight=Tensor([1.0, 3.0]))
    assert counts.tolist() == [1.0, 0.0, 3.0]
    with pytest.raises(ValueError, match="histogram: edges of shape"):
        Tensor([1.0]).histogram(Tensor([1.0]))


def test_axes_of_size_1_pair_with_any() -> None:
    a, b = np.ones((1, 1, 3)), np.arange(8.0).reshape(2, 2, 2)
    got = Tensor(a).tensordot(Tensor(b), ([0, 1], [2, 0]))
    assert got.tolist() == np.broadcast_to(b.sum((0, 2)), (3, 2)).tolist()


def test_windows() -> None:
    x = Tensor.ones(1, 1, 4, 4)
    assert F.avg_pool2d(x, (2, 2), ()).shape == (1, 1, 2, 2)
    assert F.avg_pool2d(x, (2,), (2,), (1,)).shape == (1, 1, 3, 3)
    with pytest.raises(ValueError, match="is negative"):
        F.max_pool2d(x, 2, padding=-1)
    assert Tensor.zeros(0, 3, 3).pad((1, 2), "reflect").shape == (0, 3, 6)


def test_bounds_of_integers() -> None:
    assert F.hardtanh(Tensor([-3, 0, 2])).dtype is dtypes.int32
    with pytest.raises(ValueError, match="hardtanh: min_val"):
        F.hardtanh(Tensor([1.0]), 1.0, -1.0)
    loss = F.multi_margin_loss(Tensor([0.1, 0.2]), Tensor([1]))
    assert loss.shape == ()


def test_brackets() -> None:
    x = Tensor([1, 2, 3])
    assert x[Tensor(1) : np.int64(3)].tolist() == [2, 3] and x[: Tensor(2)].tolist() == [1, 2]
    assert x[True].tolist() == [[1, 2, 3]] and x[Tensor(False)].shape == (0, 3)
    assert Tensor(5)[Tensor(True)].tolist() == [5]
    assert x[np.int32(1)].item() == 2
    wrong: list[tuple[Any, str]] = [
        ((0, 0), "too many indices"), (5, "out of bounds"), ((..., ...), "single ellipsis"),
        (Tensor([1.5]), "integers or bools"),
    ]  # fmt: skip
    for index, words in wrong:
        with pytest.raises(IndexError, match=words):
            x[index]
    with pytest.raises(TypeError, match="the bounds of a slice"):
        x[: Tensor([3])]


def test_a_wrong_value_is_an_error_of_numpys_kind_and_of_pytorchs() -> None:
    for kind in (ValueError, RuntimeError):
        with pytest.raises(kind, match=r"^Tensor.matmul: shapes"):
            Tensor.zeros(2, 3).matmul(Tensor.zeros(2, 3))
        with pytest.raises(kind, match=r"^Tensor.reshape"):
            Tensor.zeros(2, 3).reshape(5)


def test_limits_of_dtypes() -> None:
    for dtype in dtypes.all:
        assert dtype.min == dtypes.min(dtype) and dtype.max == dtypes.max(dtype)
    assert dtypes.int8.min == -128 and dtypes.uint16.max == 65535


def test_what_a_tensor_is() -> None:
    x = Tensor.arange(24).reshape(2, 3, 4).float().realize()
    assert (x.dim(), x.ndimension(), x.nelement(), x.itemsize) == (3, 3, 24, 4)
    assert x.stride() == (12, 4, 1) and x.stride(-1) == 1 and x.permute(2, 0, 1).stride() == (1, 12, 4)
    assert x[1:, :, 1].storage_offset() == 13 and not x[:, :, 1].is_contiguous() and x.is_contiguous()
    assert (x + 1).stride() == (12, 4, 1) and Tensor.zeros(0, 3).T.is_contiguous()
    assert x.to_device("NUMPY").cpu().is_cpu and not x.is_cuda
    with pytest.raises(ValueError, match="to_device: a stream"):
        x.to_device("CPU", stream=1)
    assert Tensor([1], dtype="uint8").is_signed() is False and Tensor([0]).is_nonzero() is False
    assert x.type() == "float32" and x.type("int8").dtype is dtypes.int8
    assert Tensor([1.0], dtype="float64").new_tensor(Tensor([2])).dtype is dtypes.float64
    assert Tensor([1j]).new_tensor([2]).tolist() == [2 + 0j] and Tensor([1j]).new_tensor(3, dtype="int8").item() == 3
    assert Tensor([1.0]).new_tensor(Tensor([2j]), dtype="complex64").tolist() == [2j]
    for like in (Tensor([1], dtype="int8"), Tensor([1j])):
        assert [like.new(*args).shape for args in ((), (2, 3), ((2, 3),), ((),), (2,))] == [
            (0,), (2, 3), (2, 3), (), (2,)]  # fmt: skip
        for data in ([2, 3], np.array([2, 3]), Tensor([2, 3]), (2.0, 3.0)):
            made = like.new(data)
            assert made.tolist() == [2, 3] and made.dtype is like.dtype
        with pytest.raises(ValueError, match="cannot be negative"):
            like.new(2, -1)
    y = Tensor([1.0], requires_grad=True)
    assert y.is_leaf and (y * 2).grad_fn is not None and not (y * 2).is_leaf and (+y).tolist() == [1.0]


def test_to_as_pytorch_spells_it() -> None:
    x = Tensor([1.5])
    assert x.to("float64", True, True).dtype is dtypes.float64 and x.to("NUMPY", "int32", True).tolist() == [1]
    assert x.to("float32") is x and x.to("float32", False, True) is not x and x.to(copy=True, dtype="float32") is not x


def test_bounds_may_be_tensors() -> None:
    low, high = np.array([0.0, 3.0], np.float32), np.array([1.0, -2.0], np.float32)
    np.testing.assert_allclose(Tensor.linspace(Tensor(low), Tensor(high), 7).numpy(), np.linspace(low, high, 7), 1e-6)
    np.testing.assert_allclose(Tensor.logspace(Tensor(0.0), 2, 3).numpy(), [1, 10, 100], 1e-6)
    assert Tensor.linspace(Tensor(2), 5, 1).tolist() == [2.0] and Tensor.linspace(Tensor(2), 5, 0).shape == (0,)
    assert Tensor.tril_indices(2, dtype="int64").dtype is dtypes.int64


def test_normal_numbers_as_pytorch_draws_them() -> None:
    Tensor.manual_seed(3)
    mean, std = Tensor([-100.0, 100.0]).expand(4000, 2), Tensor([[1.0], [2.0]]).expand(2, 2000).reshape(4000, 1)
    drawn = Tensor.normal(mean, std).numpy()
    np.testing.assert_allclose(drawn.mean(0), [-100, 100], atol=0.2)
    np.testing.assert_allclose(drawn.reshape(2, 2000, 2).std((1, 2)) > 90, True)
    np.testing.assert_allclose((drawn - mean.numpy()).reshape(2, -1).std(1), [1, 2], atol=0.1)
    assert Tensor.normal(2.5, Tensor([0.0, 0.0])).tolist() == [2.5, 2.5]
    assert Tensor.normal(1.5, 0.0, (2, 3)).tolist() == [[1.5] * 3] * 2
    assert Tensor.normal(3, mean=2, std=0).tolist() == [2.0] * 3
    with pytest.raises(TypeError, match="normal: sizes"):
        Tensor.normal(Tensor([1.0]), 1.0, (2,))


def test_other_small_things() -> None:
    ones = Tensor.ones(2, 2, 2, dtype="int32")
    assert Tensor.zeros(2, 2, dtype="int32").addbmm(ones, ones).dtype is dtypes.int32
    assert Tensor([[1.0, 2.0]]).cdist(Tensor([[1.0, 0.0]]), 0.0, "use_mm_for_euclid_dist").tolist() == [[1.0]]
    with pytest.raises(ValueError, match="isclose: tolerances"):
        Tensor([1.0]).isclose(1.0, rtol=-1)
    assert Tensor(3).gather(0, Tensor([0, 0])).tolist() == [3, 3]
    assert F.gaussian_nll_loss(Tensor([1.0, 2.0]), Tensor(1.0), Tensor([1.0])).shape == ()


def test_bools_are_counted() -> None:
    x = Tensor([True, False])
    assert x.square().dtype is x.pow(2).dtype
    assert x.square().tolist() == [1, 0]
    assert x.sum_to_size(1).dtype is dtypes.int64 and x.sum_to_size(2).dtype is dtypes.bool


def test_a_bilinear_form_of_integers_keeps_their_dtype() -> None:
    x, y = (np.arange(1, 1 + n, dtype=np.int32) for n in (3, 4))
    weight = np.arange(1, 61, dtype=np.int32).reshape(5, 3, 4)
    found = F.bilinear(*map(Tensor, (x, y, weight)))
    assert found.dtype is dtypes.int32
    assert found.tolist() == np.einsum("i,kij,j->k", x, weight, y).tolist()


def test_weights_of_covariances_are_checked() -> None:
    x = Tensor([[0.0, 1.0, 3.0], [2.0, 1.0, 0.5]])
    with pytest.raises(TypeError, match=r"Tensor\.cov: fweights are integers, got a tensor of float32"):
        x.cov(fweights=Tensor([1.0, 2.0, 1.0]))
    assert np.isnan(x.cov(fweights=Tensor([1, -2, 5])).numpy()).all()
    assert np.isnan(x.cov(aweights=Tensor([0.5, -1.0, 2.0])).numpy()).all()
