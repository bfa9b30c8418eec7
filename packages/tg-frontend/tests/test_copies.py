"""Copies of views, elements at strides, numbers next to others, filling and sums to a size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tg_frontend import Tensor

COPIES: dict[str, Callable[[Tensor], Tensor]] = {
    "diagonal": lambda x: x.diagonal_copy(), "expand": lambda x: x.expand_copy(3, 5, 7),
    "narrow": lambda x: x.narrow_copy(1, 2, 3), "permute": lambda x: x.permute_copy(1, 0),
    "squeeze": lambda x: x.squeeze_copy(), "t": lambda x: x.t_copy(), "transpose": lambda x: x.transpose_copy(0, 1),
    "unfold": lambda x: x.unfold_copy(1, 3, 2), "unsqueeze": lambda x: x.unsqueeze_copy(1),
    "view": lambda x: x.view_copy(35), "unbind": lambda x: x.unbind_copy(1)[2],
    "split": lambda x: x.split_with_sizes_copy([2, 3])[1], "alias": lambda x: x.alias_copy(),
}  # fmt: skip
VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "diagonal": lambda x: x.diagonal(), "expand": lambda x: x.expand(3, 5, 7), "narrow": lambda x: x.narrow(1, 2, 3),
    "permute": lambda x: x.permute(1, 0), "squeeze": lambda x: x.squeeze(), "t": lambda x: x.t(),
    "transpose": lambda x: x.transpose(0, 1), "unfold": lambda x: x.unfold(1, 3, 2),
    "unsqueeze": lambda x: x.unsqueeze(1), "view": lambda x: x.view(35), "unbind": lambda x: x.unbind(1)[2],
    "split": lambda x: x.split_with_sizes([2, 3])[1], "alias": lambda x: x,
}  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_has_the_view_s_elements_and_memory_of_its_own(backend: str, name: str) -> None:
    x = Tensor.arange(35).reshape(5, 7).contiguous().realize()
    copy, wanted = COPIES[name](x), VIEWS[name](x).numpy().copy()
    x.zero_()
    np.testing.assert_array_equal(copy.numpy(), wanted)
    copy.fill_(9)
    assert not x.numpy().any()


def test_gradients_flow_through_copies() -> None:
    x = Tensor.ones(5, 7, requires_grad=True)
    (x.permute_copy(1, 0) * 2).sum().backward()
    assert x.grad is not None and x.grad.tolist() == Tensor.full((5, 7), 2.0).tolist()


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [((3, 4), (5, 1), 0), ((2, 3, 2), (1, 1, 1), 3), ((4,), (0,), 7), ((), (), 5), ((0, 3), (9, 9), 0),
     ((1,), (99,), 34), ((7, 5), (1, 7), 0)],
)  # fmt: skip
def test_strides(backend: str, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> None:
    data = np.arange(35, dtype=np.float32).reshape(5, 7)
    wanted = np.lib.stride_tricks.as_strided(data.reshape(-1)[offset:], size, tuple(4 * step for step in stride))
    np.testing.assert_array_equal(Tensor(data).as_strided(size, stride, offset).numpy(), wanted)
    np.testing.assert_array_equal(Tensor(data.T.copy()).T.as_strided(size, stride, offset).numpy(), wanted)
    x = Tensor(data)
    (slope,) = x.as_strided(size, stride, offset).sum().gradient(x)
    counts = np.zeros(35)
    np.add.at(counts, wanted.astype(int).reshape(-1), 1)
    np.testing.assert_array_equal(slope.numpy().reshape(-1), counts)


def test_elements_put_at_strides() -> None:
    out = Tensor.zeros(3, 4).as_strided_scatter(Tensor([[1.0, 2.0], [3.0, 4.0]]), (2, 2), (5, 2), 1)
    assert out.tolist() == [[0, 1, 0, 2], [0, 0, 3, 0], [4, 0, 0, 0]]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_the_next_number(backend: str, kind: type[np.floating]) -> None:
    info = np.finfo(kind)
    special = np.array([0, 1, 2, 0.1, info.max, info.tiny, info.smallest_subnormal, np.inf, np.nan], kind)
    some = np.concatenate([special, -special])
    a, b = (grid.reshape(-1).copy() for grid in np.meshgrid(some, some))
    with np.errstate(all="ignore"):
        wanted = np.nextafter(a, b)
    got = Tensor(a).nextafter(Tensor(b)).numpy()
    np.testing.assert_array_equal(got, wanted)
    assert got.dtype == kind


def test_bfloat16_steps() -> None:
    assert Tensor([1.0], dtype="bfloat16").nextafter(2.0).float().item() == 1 + 2.0**-7


def test_positions_of_a_number_that_is_given(backend: str) -> None:
    x = Tensor([[0, 3, 0], [5, 0, 7]])
    assert x.nonzero_static(size=2).tolist() == [[0, 1], [1, 0]]
    assert x.nonzero_static(size=5, fill_value=-9).tolist() == [[0, 1], [1, 0], [1, 2], [-9, -9], [-9, -9]]
    assert x.argwhere().tolist() == [[0, 1], [1, 0], [1, 2]]


def test_sums_to_a_size() -> None:
    data = np.arange(30.0).reshape(2, 3, 5)
    for size in [(2, 3, 5), (1, 3, 5), (3, 1), (5,), (), (1, 1, 1), (1,)]:
        got = Tensor(data).sum_to_size(size).numpy()
        assert got.shape == size and np.broadcast_to(got, data.shape).shape == data.shape
        assert got.sum() == data.sum()
    assert Tensor(data).sum_to_size(3, 1).tolist() == data.sum((0, 2))[:, None].tolist()
    small = Tensor([100, 100], dtype="int8")
    assert small.sum_to_size(1).dtype.name == "int64" and small.sum_to_size(1).tolist() == [200]
    assert small.sum_to_size(2).dtype.name == "int8" and small.sum_to_size(2).tolist() == [100, 100]


def test_filling_and_subtraction_from() -> None:
    x = Tensor([1.0, 2.0])
    assert x.fill(3).tolist() == [3, 3] and x.tolist() == [1, 2]
    assert x.rsub(10).tolist() == [9, 8] and x.rsub(Tensor([1.0, 1.0]), alpha=2).tolist() == [-1, -3]
    view = x[1:]
    assert view.fill_(7) is view and x.tolist() == [1, 7]
    assert x.zero_() is x and x.tolist() == [0, 0]


def test_bad_input_is_told_by_its_name() -> None:
    x = Tensor.ones(2, 3)
    with pytest.raises(ValueError, match=r"Tensor\.as_strided: element 7 of a tensor of 6"):
        x.as_strided((2, 3), (3, 2))
    with pytest.raises(ValueError, match=r"Tensor\.as_strided: 1 strides for 2 sizes"):
        x.as_strided((2, 3), (1,))
    with pytest.raises(ValueError, match=r"Tensor\.as_strided: .* are 0 or more"):
        x.as_strided((2,), (-1,))
    with pytest.raises(TypeError, match=r"Tensor\.as_strided: sizes are integers, got 2"):
        x.as_strided(2, (1,))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Tensor\.as_strided_scatter: a source of shape \(3,\)"):
        x.as_strided_scatter(Tensor.ones(3), (2,), (1,))
    with pytest.raises(ValueError, match=r"Tensor\.sum_to_size: \(2, 2\) does not expand to shape \(2, 3\)"):
        x.sum_to_size(2, 2)
    with pytest.raises(TypeError, match=r"Tensor\.nextafter: floats of 16 bits or more are wanted"):
        Tensor([1]).nextafter(2)
    with pytest.raises(ValueError, match=r"Tensor\.nonzero_static: -1 elements"):
        x.nonzero_static(size=-1)
