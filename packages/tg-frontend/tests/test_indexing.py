"""Square brackets, gather and scatter, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tg_dtype import dtypes
from tg_frontend import Tensor
from tg_frontend.autograd.functions.lookup import _index_dtype
from tg_lazy import Context
from tg_shape import Variable

X = np.arange(120).reshape(4, 5, 6)
ROWS, J = np.array([[0, 2, -1], [1, 1, 3]]), np.array([1, 0, 2])
M = X % 7 == 0

INDICES: dict[str, Any] = {
    "int": 1,
    "negative int": -1,
    "ints": (1, -2, 3),
    "slice": slice(1, 3),
    "slice beyond": (slice(-10, 10), slice(3, 1)),
    "step": (slice(None, None, 2), slice(None, None, -1), slice(4, None, -3)),
    "step over": (slice(0, 4, 3), slice(None, None, 7)),
    "ellipsis": (..., 2),
    "ellipsis in the middle": (1, ..., slice(None, None, 2)),
    "new axes": (None, 1, None, slice(1, 2), None),
    "nothing": (),
    "tensor": ROWS,
    "tensor in the middle": (slice(None), J),
    "tensors apart": (J, slice(None), J),
    "tensors together": (slice(None), J, J),
    "tensors that broadcast": (ROWS, None, J[:2, None]),
    "int and tensor together": (slice(None), 0, J),
    "tensor behind a new axis": (None, J),
    "tensor and step": (slice(None, None, -2), J, slice(1, 5, 2)),
    "list": ([0, 2], slice(1)),
    "mask": M,
    "mask of an axis": np.array([True, False, True, True]),
    "mask of two axes": M[:, :, 0],
    "mask and int": (np.array([True, False, True, True]), 1),
    "mask behind a slice": (slice(2), np.array([True, False, True, False, False])),
    "empty list": [],
    "no true": np.zeros(4, bool),
}


def ours(index: Any) -> Any:
    """Arrays as tensors."""
    if isinstance(index, tuple):
        return tuple(ours(term) for term in index)
    return Tensor(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("name", INDICES)
def test_reading(name: str, backend: str) -> None:
    index = INDICES[name]
    want = X[np.array(index, int) if index == [] else index] if name == "empty list" else X[index]
    got = Tensor(X)[ours(index)]
    assert got.shape == want.shape and got.tolist() == want.tolist()


def test_an_int_takes_its_axis_away_first() -> None:
    # as in PyTorch; numpy counts it among the tensors, and puts their axes first
    want = X[0][:, J]
    t = Tensor(X)
    assert t[0, :, Tensor(J)].tolist() == want.tolist() and t[0, :, Tensor(J)].shape == want.shape
    t[0, :, Tensor(J)] = Tensor(want * 2)
    assert t[0, :, Tensor(J)].tolist() == (want * 2).tolist()


def test_arrays_are_indices_too() -> None:
    assert Tensor(X)[J].tolist() == X[J].tolist() and Tensor(X)[M].tolist() == X[M].tolist()


COMPILED = ("ints", "step", "new axes", "tensor", "tensors apart", "mask", "mask of an axis")


WRITTEN = [
    (name, device) for name in INDICES if name != "empty list" for device in ("NUMPY", *["CPU"] * (name in COMPILED))
]
"""Each index on the interpreted device; compiled, those whose graphs differ."""


@pytest.mark.parametrize(("name", "backend"), WRITTEN, indirect=["backend"])
def test_writing(name: str, backend: str) -> None:
    index = INDICES[name]
    want, t = X.copy(), Tensor(X.copy())
    want[index] = -1
    t[ours(index)] = -1
    assert t.tolist() == want.tolist()
    part = want[index]
    if part.ndim and not (isinstance(index, np.ndarray) and index is ROWS):
        values = np.arange(part.size).reshape(part.shape)
        want[index] = values
        t[ours(index)] = Tensor(values)
        if len({*np.arange(120)[X[index].flatten()]}) == part.size:  # where no place is written twice
            assert t.tolist() == want.tolist()


def test_the_last_of_several_writes_stays(backend: str) -> None:
    t = Tensor([0, 0, 0])
    t[Tensor([1, 1, 2, 1])] = Tensor([5, 6, 7, 8])
    assert t.tolist() == [0, 8, 7]


def test_writing_keeps_memory_and_leaves_what_was_computed(backend: str) -> None:
    t = Tensor([1.0, 2.0, 3.0]).contiguous().realize()
    storage, doubled = t.lazydata.storage, t * 2
    t[1] = 9.0
    t[0:1] = Tensor([7.0])
    assert t.realize().lazydata.storage is storage
    assert t.tolist() == [7.0, 9.0, 3.0] and doubled.tolist() == [2.0, 4.0, 6.0]


def test_writing_to_constants_and_results(backend: str) -> None:
    t = Tensor.zeros(2, 3)
    t[1, ::2] = 5
    u = Tensor([1, 2, 3]) + 1
    u[-1] = 0
    assert t.tolist() == [[0, 0, 0], [5, 0, 5]] and u.tolist() == [2, 3, 0]


def test_out_of_range_in_a_tensor_reads_as_zero(backend: str) -> None:
    t = Tensor([[1, 2], [3, 4]])
    assert t[Tensor([0, 2, -3, -1])].tolist() == [[1, 2], [0, 0], [0, 0], [3, 4]]
    assert t[Tensor([0, 5]), Tensor([1, 1])].tolist() == [2, 0] and t[Tensor([0, 1]), Tensor([7, 1])].tolist() == [0, 4]


def test_gather_and_scatter(backend: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 5, 6)).astype(np.float32)
    for axis in (0, 1, 2, -1):
        at = rng.integers(0, x.shape[axis], (3, 4, 2))
        box = tuple(slice(None) if i == axis % 3 else slice(n) for i, n in enumerate(at.shape))
        want = np.take_along_axis(x[box], at, axis)
        np.testing.assert_array_equal(Tensor(x).gather(axis, Tensor(at)).numpy(), want)
    at = np.argsort(rng.standard_normal((4, 5, 6)), 1)[:, :3]
    source = rng.standard_normal((4, 3, 6)).astype(np.float32)
    want = x.copy()
    np.put_along_axis(want, at, source, 1)
    np.testing.assert_array_equal(Tensor(x).scatter(1, Tensor(at), Tensor(source)).numpy(), want)
    np.put_along_axis(want, at, 2.5, 1)
    np.testing.assert_array_equal(Tensor(x).scatter(1, Tensor(at), 2.5).numpy(), want)


REDUCTIONS: dict[str, tuple[Callable[..., Any], float]] = {
    "sum": (np.add, 0), "prod": (np.multiply, 1), "amax": (np.maximum, -np.inf), "amin": (np.minimum, np.inf),
}  # fmt: skip


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("name", [*REDUCTIONS, "mean"])
def test_scatter_reduce(name: str, include: bool, backend: str) -> None:
    rng = np.random.default_rng(0)
    x, source = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((5, 3), (7, 3)))
    at = rng.integers(0, 4, (7, 3))
    want, count = x.copy(), np.full((5, 3), 1 if include else 0)
    function, start = REDUCTIONS.get(name, (np.add, 0))
    if not include:
        for i, j in np.ndindex(7, 3):
            want[at[i, j], j] = start
    for i, j in np.ndindex(7, 3):
        want[at[i, j], j] = function(want[at[i, j], j], source[i, j])
        count[at[i, j], j] += 1
    if name == "mean":
        want = want / np.maximum(count, 1)
    got = Tensor(x).scatter_reduce(0, Tensor(at), Tensor(source), name, include_self=include)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    if include and name in ("sum", "prod"):
        word = "add" if name == "sum" else "multiply"
        np.testing.assert_allclose(Tensor(x).scatter(0, Tensor(at), Tensor(source), word).numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("size", [2, 11, 40])
def test_positions_of_so_many_elements(size: int) -> None:
    """As many as are asked for, filled up where there are fewer."""
    x = np.random.default_rng(size).integers(0, 3, (3, 5, 7)) // 2
    want = np.full((size, 3), -1)
    found = np.argwhere(x)[:size]
    want[: len(found)] = found
    assert Tensor(x).nonzero(size=size, fill_value=-1).tolist() == want.tolist()


def test_one_hot_nonzero_and_masked_select(backend: str) -> None:
    assert Tensor([0, 2, 1]).one_hot(4).tolist() == np.eye(4, dtype=int)[[0, 2, 1]].tolist()
    assert Tensor([[1], [0]]).one_hot().tolist() == [[[0, 1]], [[1, 0]]]
    x = np.array([[0, 3, 0], [5, 0, 7]])
    assert Tensor(x).nonzero().tolist() == np.argwhere(x).tolist() and Tensor(0).nonzero().shape == (0, 0)
    assert Tensor(x).masked_select(Tensor(x > 3)).tolist() == [5, 7]
    assert Tensor(x).masked_select(Tensor([True, False, True])).tolist() == [0, 0, 5, 7]
    assert Tensor(x).nonzero().dtype is dtypes.int32


BAD: dict[str, tuple[Callable[[Tensor], object], type[Exception], str]] = {
    "int": (lambda t: t[4], IndexError, r"index 4 is out of bounds for axis 0 of shape \(4, 5, 6\)"),
    "negative": (lambda t: t[0, -6], IndexError, "index -6 is out of bounds for axis 1"),
    "too many": (lambda t: t[0, 0, 0, 0], IndexError, "too many indices: 4 for shape"),
    "dots": (lambda t: t[..., 0, ...], IndexError, "single ellipsis"),
    "float": (lambda t: t[1.5], TypeError, "a float is no index"),
    "bools": (lambda t: t[True, 0, 0, 0, 0], IndexError, r"too many indices: 4 for shape \(4, 5, 6\)"),
    "float tensor": (lambda t: t[Tensor([1.0])], TypeError, "indices are integers or bools, got a tensor of float32"),
    "mask": (lambda t: t[Tensor([True, False])], IndexError, r"a mask of shape \(2,\) does not fit"),
    "step": (lambda t: t[::0], ValueError, "cannot be 0"),
    "tensors": (lambda t: t[Tensor([0, 1]), Tensor([0, 1, 2])], ValueError, "do not broadcast"),
    "device": (lambda t: t[Tensor([0], device="NULL")], ValueError, "an index on NULL for a tensor on NUMPY"),
    "gather": (lambda t: t.gather(0, Tensor([[1]])), ValueError, r"index of shape \(1, 1\) for shape"),
    "gather type": (lambda t: t.gather(0, Tensor([[[1.0]]])), TypeError, "indices are integers"),
    "gather axis": (lambda t: t.gather(3, Tensor([[[1]]])), IndexError, "gather: axis 3"),
    "scatter": (lambda t: t.scatter(0, Tensor([[[1, 1]]]), Tensor([[[1]]])), ValueError, "smaller than the index"),
    "scatter dtype": (lambda t: t.scatter(0, Tensor([[[1]]]), Tensor([[[1.0]]])), TypeError, "float32 into a"),
    "scatter reduce": (lambda t: t.scatter(0, Tensor([[[1]]]), 1, "min"), ValueError, "reduce 'min'"),
    "scatter_reduce": (lambda t: t.scatter_reduce(0, Tensor([[[1]]]), 1, "min"), ValueError, "amin"),
    "one_hot": (lambda t: t.float().one_hot(3), TypeError, "integers are wanted"),
}


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_named(name: str) -> None:
    function, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        function(Tensor(X))


def test_what_is_written_is_cast(backend: str) -> None:
    t = Tensor([1, 2, 3, 4])
    t[0], t[1:3], t[3] = 5.9, Tensor([-7.5, 8.5]), True
    assert t.dtype is dtypes.int32 and t.tolist() == [5, -7, 8, 1]
    f = Tensor([1.5, 2.5])
    f[1], f[0:1] = 3, Tensor([4])
    b = Tensor([False, False, True])
    b[0], b[1], b[2] = 7, 0.5, 0
    assert f.dtype is dtypes.float32 and f.tolist() == [4.0, 3.0] and b.tolist() == [True, True, False]


def test_mistakes_in_writing_change_nothing() -> None:
    t = Tensor(X)
    for index, value, kind in (
        ((0, 0), Tensor([1, 2]), ValueError), (9, 1, IndexError), (0, "1", TypeError),
        (Tensor([0, 1]), Tensor([[1, 2]]), ValueError), (Tensor(M), Tensor([1, 2]), ValueError),
    ):  # fmt: skip
        with pytest.raises(kind, match=r"setitem|data is a str"):
            t[index] = value
    assert t.tolist() == X.tolist()
    leaf = Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf[0] = 1.0
    with Tensor.no_grad():
        leaf[0] = 5.0
    assert leaf.tolist() == [5.0, 2.0] and leaf.requires_grad


def test_writing_to_an_operand_is_noticed() -> None:
    a = Tensor([1.0, 2.0], requires_grad=True)
    b = a * 2
    c = b * b
    b[0] = 3.0
    with pytest.raises(RuntimeError, match="written to in place"):
        c.sum().backward()


_terms = st.one_of(
    st.integers(-3, 2),
    st.builds(slice, *[st.one_of(st.none(), st.integers(-4, 4))] * 2, st.sampled_from([None, 1, 2, -1, -2])),
    st.just(None),
    st.just(...),
    st.lists(st.integers(-3, 2), min_size=1, max_size=3).map(np.array),
)


def reference(x: Any, terms: list[Any]) -> Any:
    """What numpy makes of the index where integers take their axes away before arrays are looked at."""
    used = sum(term is not None and term is not Ellipsis for term in terms)
    full: list[Any] = []
    for term in terms:
        full.extend([slice(None)] * (x.ndim - used) if term is Ellipsis else [term])
    part = x[tuple(slice(None) if isinstance(term, np.ndarray) else term for term in full)]
    kept = [term if isinstance(term, np.ndarray) else slice(None) for term in full if not isinstance(term, int)]
    return part[tuple(kept)]


@settings(max_examples=100)
@given(st.lists(_terms, min_size=1, max_size=4))
def test_any_index(terms: list[Any]) -> None:
    x = np.arange(27 * 3).reshape(3, 3, 3, 3)
    if sum(term is Ellipsis for term in terms) > 1:
        return
    try:
        want = reference(x, terms)
    except IndexError:
        return  # arrays of lengths that do not broadcast
    with Context(DEV="NUMPY"):
        got = Tensor(x)[ours(tuple(terms))]
        assert got.shape == want.shape and got.tolist() == want.tolist()


def test_writing_at_tensors_costs_positions_times_axis(backend: str) -> None:
    # only the axes that are looked up are compared with the positions: a comparison with every element would not end
    want = np.zeros((6, 200, 5, 100, 4), np.int32)
    t = Tensor(want.copy())
    i, j = np.array([5, 3, 7]), np.array([[0], [99]])
    values = np.arange(2 * 3 * 6 * 5 * 4).reshape(2, 3, 6, 5, 4)
    want[:, i, :, j, :] = values
    t[:, Tensor(i), :, Tensor(j), :] = Tensor(values)
    np.testing.assert_array_equal(t.numpy(), want)
    want[1:, 7, ::2, j[:, 0], 1:] = want[1:, 3, ::2, j[:, 0], 1:]
    t[1:, 7, ::2, Tensor(j[:, 0]), 1:] = Tensor(np.moveaxis(want[1:, 3, ::2, j[:, 0], 1:], 0, 2))
    np.testing.assert_array_equal(t.numpy(), want)


WIDE = [0, 2**32, 2**32 + 1, 2**40 + 2, 2**62, -(2**32), 3]
"""Positions whose low 32 bits point into an axis of four, and two that do."""


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_positions_of_64_bits_do_not_wrap(dtype: str, backend: str) -> None:
    at = [i % 2**64 if dtype == "uint64" else i for i in WIDE]
    x, index = Tensor([10.0, 20.0, 30.0, 40.0], requires_grad=True), Tensor(at, dtype=dtype)
    want = [10.0, 0, 0, 0, 0, 0, 40.0]
    assert x[index].tolist() == x.gather(0, index).tolist() == want
    assert x.reshape(2, 2)[index, index].tolist() == [10.0, 0, 0, 0, 0, 0, 0]
    for read in (x[index], x.gather(0, index)):
        x.grad = None
        read.sum().backward()
        assert x.grad is not None and x.grad.tolist() == [1, 0, 0, 1]
    assert x.detach().scatter(0, index, 7.0).tolist() == [7, 20, 30, 7]
    assert x.detach().scatter_reduce(0, index, 1.0, "sum").tolist() == [11, 20, 30, 41]
    y = x.detach().clone()
    y[index] = 5.0
    assert y.tolist() == [5, 20, 30, 5]
    assert index.one_hot(4).sum(0).tolist() == [1, 0, 0, 1]


def test_unsigned_positions_are_never_negative(backend: str) -> None:
    x = Tensor([1, 2, 3])
    for dtype in ("uint8", "uint16", "uint32", "uint64"):
        highest = dtypes.max(dtypes.from_name(dtype))
        assert x[Tensor([highest, 1], dtype=dtype)].tolist() == [0, 2]
        assert x.gather(0, Tensor([highest, 1], dtype=dtype)).tolist() == [0, 2]
    # an index of bytes that is padded to the size of the tensor has nothing at 255
    wide = Tensor.zeros(300, 2).scatter(0, Tensor([[1], [2]], dtype="uint8"), 1.0)
    assert (wide[255].tolist(), wide.sum().item()) == ([0, 0], 2)


@pytest.mark.parametrize("index", [
    [2**40 + 1], [-5], np.array([[4]]), (slice(None), [6]), (..., [6]), ([0], ..., [-7]), range(5), (None, [4]),
])  # fmt: skip
def test_positions_that_the_host_knows_are_checked_at_once(index: Any) -> None:
    x = Tensor(X.copy())
    with pytest.raises(IndexError, match=r"getitem: index -?\d+ is out of bounds for axis [012] of \(4, 5, 6\)"):
        x[index]
    with pytest.raises(IndexError, match=r"setitem: index"):
        x[index] = 1


def test_pairs_with_a_position_outside_read_zero(backend: str) -> None:
    # row 1, column -5 is no element, though 1 * 4 + (-5 + 4) is the number of one
    x = np.arange(12).reshape(3, 4)
    rows, columns = [1, -1, -3, 2, -4], [-5, -4, 3, 4, 0]
    want = [x[i, j] if -3 <= i < 3 and -4 <= j < 4 else 0 for i, j in zip(rows, columns, strict=True)]
    assert Tensor(x)[Tensor(rows), Tensor(columns)].tolist() == want


def test_one_element_is_an_axis_of_one(backend: str) -> None:
    x = Tensor(3.0)
    assert [x.gather(0, Tensor(i)).item() for i in (0, 1)] == [3, 0]
    assert x.scatter(0, Tensor(0), 5.0).item() == 5
    assert x.scatter_reduce(0, Tensor(0), 5.0, "sum").item() == 8
    assert x.unfold(0, 1, 1).tolist() == [3]
    assert x.masked_select(Tensor(True)).tolist() == [3]
    assert x.masked_select(Tensor(False)).shape == (0,)


def test_masks_and_conditions_are_bools() -> None:
    x = Tensor([1.0, 2.0])
    with pytest.raises(TypeError, match=r"^Tensor\.masked_select: a mask is a tensor of bools, got a tensor of int32"):
        x.masked_select(Tensor([1, 0]))
    with pytest.raises(TypeError, match=r"^Tensor\.where: the condition is a tensor of bools, got int32"):
        Tensor([1, 0]).where(x, 0)
    with pytest.raises(TypeError, match=r"^Tensor\.masked_fill: .*bools, got float32"):
        x.masked_fill(x, 0)


def test_one_hot_of_what_is_no_class() -> None:
    with pytest.raises(ValueError, match="class -1 is negative"):
        Tensor([-1, 2]).one_hot()
    assert Tensor([-1, 2, 3]).one_hot(3).tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 0]]


def test_positions_have_a_dtype_that_holds_the_largest() -> None:
    most = (1 << 31) - 1
    assert [_index_dtype(n) for n in (9, most, most + 1)] == [dtypes.int32, dtypes.int32, dtypes.int64]
    found = [_index_dtype(Variable("n", 1, n)) for n in (9, most, most + 1)]
    assert found == [dtypes.int32, dtypes.int32, dtypes.int64]


WRONG_INDICES: list[Any] = [
    0.0, "a", object(), (0, 0.5), np.array([0.5]), [1.5], (0, 0, 0), 7, (..., ...),
    (np.array([0, 1]), np.array([0, 1, 2])), np.array([True, False, True, True]),
    np.array([[True], [False], [True]]), (0, "a"), {"a": 1}, (slice(None), 5), 1j,
]  # fmt: skip


@pytest.mark.parametrize("index", WRONG_INDICES, ids=[str(i) for i in range(len(WRONG_INDICES))])
def test_what_is_no_index_is_an_index_error_as_numpys(index: Any) -> None:
    array = np.zeros((2, 3), np.float32)
    with pytest.raises(IndexError):
        array[index]
    with pytest.raises(IndexError):
        Tensor(array)[index]
    with pytest.raises(IndexError):
        Tensor(array)[index] = 1.0


@pytest.mark.parametrize("seed", range(24))
def test_an_index_tensor_of_no_axes_is_as_an_integer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.choice([2, 3, 5, 7], size=4))
    data = rng.normal(size=shape)
    listed = [int(at) for at in rng.integers(-2, 2, size=3)]
    kinds = rng.permutation(["number", "number", "slice", "list"])
    numbers = [int(n) for n in rng.integers(-2, 2, size=4)]
    plain: list[Any] = []
    tensors: list[Any] = []
    for kind, number in zip(kinds, numbers, strict=True):
        term: Any = {"number": number, "slice": slice(None), "list": listed}[kind]
        plain.append(term)
        tensors.append(Tensor(term) if kind != "slice" else term)
    want, got = Tensor(data)[tuple(plain)], Tensor(data)[tuple(tensors)]
    assert got.shape == want.shape and got.tolist() == want.tolist()
    x, y = Tensor(data.copy()), Tensor(data.copy())
    value = Tensor(rng.normal(size=want.numpy().shape))
    x[tuple(plain)] = value
    y[tuple(tensors)] = value
    assert x.tolist() == y.tolist()
    one, two = Tensor(data, requires_grad=True), Tensor(data, requires_grad=True)
    (one[tuple(plain)] * value).sum().backward()
    (two[tuple(tensors)] * value).sum().backward()
    assert one.grad is not None and two.grad is not None and one.grad.tolist() == two.grad.tolist()
