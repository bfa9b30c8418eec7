"""Constructors: from data, and from nothing."""

from __future__ import annotations

import array
import math
import struct
from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_frontend import Tensor


def test_from_numbers_and_lists(backend: str) -> None:
    assert Tensor(3).shape == () and Tensor(3).dtype is dtypes.int32 and Tensor(3).item() == 3
    assert Tensor(2.5).dtype is dtypes.float32 and Tensor(True).dtype is dtypes.bool
    assert Tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert Tensor(((1.0, 2), (3, True))).dtype is dtypes.float32
    assert Tensor([]).shape == (0,) and Tensor([]).dtype is dtypes.float32
    assert Tensor([[], []]).shape == (2, 0) and Tensor([[[1]]]).shape == (1, 1, 1)
    assert Tensor([1.9, -1.9], dtype="int32").tolist() == [1, -1]
    assert Tensor([np.float32(1.5), np.float32(2.5)]).tolist() == [1.5, 2.5]
    assert Tensor(None).shape == (0,)


@pytest.mark.parametrize("dtype", list(dtypes.all))
def test_every_dtype_goes_in_and_comes_out(dtype: Any) -> None:
    values = [0, 1, 1, 0] if dtype is dtypes.bool else [0, 1, 3, 96]
    t = Tensor(values, dtype=dtype)
    assert t.dtype is dtype and [int(v) for v in t.tolist()] == values
    assert (t.reshape(2, 2).tolist()) == [t.tolist()[:2], t.tolist()[2:]]


def test_from_bytes() -> None:
    assert Tensor(b"\x01\x02\xff").tolist() == [1, 2, 255]
    packed = struct.pack("<3f", 1.0, -2.0, 0.5)
    for data in (packed, bytearray(packed), memoryview(packed)):
        assert Tensor(data, dtype="float32").tolist() == [1.0, -2.0, 0.5]
    assert Tensor(b"").shape == (0,)
    with pytest.raises(ValueError, match=r"5 bytes are not a whole number of float32"):
        Tensor(b"12345", dtype="float32")


def test_from_arrays(backend: str) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert Tensor(array).dtype is dtypes.float32 and Tensor(array).tolist() == array.tolist()
    assert Tensor(array.T).tolist() == array.T.tolist() and Tensor(array[:, ::2]).tolist() == array[:, ::2].tolist()
    assert Tensor(array.astype(">f4")).tolist() == array.tolist()
    assert Tensor(np.float64(2.5)).dtype is dtypes.float64 and Tensor(np.array(7)).item() == 7
    assert Tensor(array, dtype="int8").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert Tensor(array, dtype="bfloat16").dtype is dtypes.bfloat16
    assert Tensor(np.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(TypeError, match="longdouble|float128"):
        Tensor(np.zeros(3, np.longdouble))


def test_an_array_is_copied() -> None:
    array = np.arange(1000, dtype=np.float32)
    t = Tensor(array)
    assert t.data().obj is not None and not np.shares_memory(np.asarray(t.data()), array)
    kept, array[:5] = array[:5].copy(), -1
    assert t[:5].tolist() == kept.tolist()
    array[:5] = kept
    t.assign(t + 1).realize()
    t[3] = 5.0
    t += 1
    assert t.realize()[:5].tolist() == [2.0, 3.0, 4.0, 6.0, 6.0]
    assert array[:5].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_what_comes_out_is_a_copy() -> None:
    t = Tensor([1.0, 2.0]).realize()
    t.numpy()[0] = 9
    assert t.tolist() == [1.0, 2.0]
    assert np.asarray(t).tolist() == [1.0, 2.0] and np.array(t, np.float64).dtype == np.float64
    seen, taken = np.asarray(t), np.array(t)
    seen[0], taken[1] = 7, 8
    assert t.tolist() == [7.0, 2.0]
    t[1] = 6
    assert t.realize() is t and seen.tolist() == [7.0, 6.0]


def test_what_is_handed_out_is_not_the_memory_of_others() -> None:
    t = Tensor([1.0, 2.0]).realize()
    for copy in (t.sum(()), t.pad((0, 0)), t**1):
        for handed in (np.asarray(copy), np.frombuffer(copy.data(), np.float32), np.from_dlpack(copy)):
            if handed.flags.writeable:
                handed[...] = 9
    assert t.tolist() == [1.0, 2.0]
    one, two = Tensor([3.0]).realize(), Tensor([3.0]).realize()
    np.asarray((one + 1).realize())[...] = 9
    assert (one + 1).item() == 4 and two.item() == 3


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[1, 2], [3]], "depth 1 list 0 has 2 elements, list 1 has 1"),
        ([[1, 2], 3], "a number stands beside a list at depth 1"),
        ([1, [2, 3]], "a list stands beside a number at depth 1"),
    ],
)
def test_ragged_lists_are_refused(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match="ragged") as error:
        Tensor(data)
    assert message in str(error.value)


def test_other_data_is_refused() -> None:
    for data, message in (("text", "str"), ([1, "a"], "str"), ({}, "dict"), ([None], "NoneType")):
        with pytest.raises(TypeError, match=message):
            Tensor(data)  # type: ignore[arg-type, unused-ignore]
    with pytest.raises(TypeError, match=r"Tensor\.stack, through which its gradient flows"):
        Tensor([Tensor([1.0], requires_grad=True), Tensor([2.0])])
    with pytest.raises(TypeError, match="tensor already"):
        Tensor(Tensor([1]))
    with pytest.raises(TypeError, match="no gradient"):
        Tensor([1, 2], requires_grad=True)
    with pytest.raises(ValueError, match="float23"):
        Tensor([1], dtype="float23")


def test_constants(backend: str) -> None:
    assert Tensor.zeros(2, 3).tolist() == [[0.0] * 3] * 2 and Tensor.ones((2,), dtype="int8").tolist() == [1, 1]
    assert Tensor.full((2, 2), 7).tolist() == [[7, 7], [7, 7]] and Tensor.full((), 2.5).item() == 2.5
    assert Tensor.full(3, True).dtype is dtypes.bool
    assert Tensor.empty(2, 3).shape == (2, 3)
    x = Tensor.ones(2, 3, dtype="int16")
    assert x.zeros_like().dtype is dtypes.int16 and x.full_like(4).tolist() == [[4] * 3] * 2
    assert x.ones_like(dtype="float32").dtype is dtypes.float32 and x.empty_like().shape == (2, 3)
    assert Tensor.zeros(2, requires_grad=True).requires_grad is True and Tensor.zeros(2).requires_grad is None


def test_ranges(backend: str) -> None:
    cases: list[tuple[Any, ...]] = [(5,), (2, 9), (2, 9, 3), (9, 2, -2), (5, 5), (5, 2), (-3, 3)]
    cases += [(0, 1, 0.25), (1.5, -2.0, -0.5)]
    for arguments in cases:
        got = Tensor.arange(*arguments)
        want = np.arange(*arguments)
        assert got.dtype is (dtypes.float32 if want.dtype.kind == "f" else dtypes.int32)
        np.testing.assert_allclose(got.numpy(), want)
    assert Tensor.arange(5, dtype="float16").tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert Tensor.arange(3, dtype="int64").dtype is dtypes.int64
    np.testing.assert_allclose(Tensor.linspace(-1, 2, 7).numpy(), np.linspace(-1, 2, 7), atol=1e-6)
    assert Tensor.linspace(3, 9, 1).tolist() == [3.0] and Tensor.linspace(3, 9, 0).shape == (0,)
    with pytest.raises(ValueError, match="step is 0"):
        Tensor.arange(0, 3, 0)
    with pytest.raises(OverflowError, match="int8"):
        Tensor.arange(300, dtype="int8")


def test_patterns(backend: str) -> None:
    assert Tensor.eye(3).tolist() == np.eye(3).tolist() and Tensor.eye(2, 4).tolist() == np.eye(2, 4).tolist()
    x = np.arange(24).reshape(2, 3, 4)
    for k in (-2, -1, 0, 1, 3):
        assert Tensor(x).tril(k).tolist() == np.tril(x, k).tolist()
        assert Tensor(x).triu(k).tolist() == np.triu(x, k).tolist()
    assert Tensor([1, 2]).diag().tolist() == [[1, 0], [0, 2]]
    for indexing in ("ij", "xy"):
        got = Tensor([1, 2]).meshgrid(Tensor([3, 4, 5]), indexing=indexing)
        want = np.meshgrid([1, 2], [3, 4, 5], indexing=indexing)
        assert [g.tolist() for g in got] == [w.tolist() for w in want]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_range_of_floats_is_rounded_once(dtype: str) -> None:
    for first, last, step in ((0, 1, 0.1), (-7, 5, 0.3), (3, 700, 1), (2.5, 60.5, 2), (10, -10, -0.7)):
        got = Tensor.arange(first, last, step, dtype=dtype)
        want = first + step * np.arange(math.ceil((last - first) / step), dtype=np.float64)
        digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype]
        near = 2.0 ** -max(24, digits) * max(abs(first), abs(last))  # what a sum in 32 bits or more leaves around 0
        np.testing.assert_allclose(got.cast("float64").numpy(), want, rtol=1.01 * 2.0**-digits, atol=2 * near)


@pytest.mark.usefixtures("collected")
def test_constants_and_ranges_take_no_memory() -> None:
    from tg_runtime import GlobalCounters

    before = GlobalCounters.mem_used
    total = (Tensor.arange(10_000) * Tensor.full((10_000,), 2)).sum().realize()
    assert total.item() == 9_999 * 10_000
    assert GlobalCounters.mem_used - before < 1000


def test_bad_sizes_are_refused() -> None:
    for make in (Tensor.zeros, Tensor.rand, Tensor.eye, Tensor.empty):
        with pytest.raises(ValueError, match="cannot be negative"):
            make(-1)
    with pytest.raises(TypeError, match=r"sizes and axes are integers, got 2\.5"):
        Tensor.ones(2.5)
    with pytest.raises(TypeError, match="str"):
        Tensor.full((2,), "x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no rows and columns"):
        Tensor([1, 2]).tril()


@pytest.mark.parametrize(("data", "dtype"), [
    ([2**31 - 1, -(2**31)], "int32"), ([2**31], "int64"), (-(2**31) - 1, "int64"), ([[1, 2**40]], "int64"),
    ([2**40, 1.5], "float32"), ([True, False], "bool"), (range(3), "int32"), ([range(2), range(2)], "int32"),
    ([np.arange(2), [3, 4]], "int64"), ([np.float32(1), 2], "float32"), ([np.ones(2), np.zeros(2)], "float64"),
    (array.array("h", [1, -2]), "int16"), (array.array("d", [0.5]), "float64"),
    (memoryview(array.array("f", [1, 2])), "float32"), (b"ab", "uint8"),
])  # fmt: skip
def test_every_kind_of_data_keeps_its_values(data: Any, dtype: str) -> None:
    got = Tensor(data)
    assert got.dtype.name == dtype
    want = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else np.array(data)
    np.testing.assert_array_equal(got.numpy(), want.astype(dtype))


def test_lists_of_tensors_and_whatever_offers_an_array() -> None:
    class Offers:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.arange(3, dtype=np.int16)

    class OffersMemory:
        array = np.arange(6, dtype=np.uint16).reshape(2, 3).T

        @property
        def __array_interface__(self) -> Any:
            return self.array.__array_interface__

    assert Tensor(Offers()).dtype.name == "int16"
    lent = Tensor(OffersMemory())
    assert (lent.dtype.name, lent.tolist()) == ("uint16", [[0, 3], [1, 4], [2, 5]])
    mixed = Tensor([OffersMemory(), [[1, 2], [3, 4], [5, 6]]])
    assert (mixed.dtype.name, mixed.tolist()) == ("uint16", [lent.tolist(), [[1, 2], [3, 4], [5, 6]]])
    rows = Tensor([Tensor([1, 2], dtype="uint8"), Tensor([3, 4], dtype="int16")])
    assert (rows.dtype.name, rows.tolist()) == ("int16", [[1, 2], [3, 4]])


@pytest.mark.parametrize("kind", [np.ndarray, np.float32, np.matrix, list, Tensor])
def test_a_class_is_no_data(kind: type) -> None:
    """Though the classes of arrays have the attributes of arrays."""
    with pytest.raises(TypeError, match="^Tensor: data is a type; give"):
        Tensor(kind)
    with pytest.raises(TypeError, match="^Tensor: data holds a type; it must be"):
        Tensor([1, kind])


@pytest.mark.parametrize(("data", "dtype"), [
    ([300], "uint8"), (-1, "uint64"), ([128], "int8"), (2**63, None), ([-(2**63) - 1], None), ([1e10], "int32"),
    (2**64, "uint64"), (math.inf, "int32"),
])  # fmt: skip
def test_a_number_that_a_dtype_has_not_is_refused(data: Any, dtype: str | None) -> None:
    with pytest.raises(OverflowError, match=r"^Tensor: .* is no u?int"):
        Tensor(data, dtype=dtype)
    if not isinstance(data, list):
        with pytest.raises(OverflowError, match=r"^Tensor\.full: .* is no u?int"):
            Tensor.full((2,), data, dtype=dtype)


def test_edges_of_integers_are_kept() -> None:
    assert Tensor(2**63, dtype="uint64").item() == 2**63
    assert Tensor.full((2,), 2**40).tolist() == [2**40] * 2
    assert Tensor([255.9, -0.9], dtype="uint8").tolist() == [255, 0]
    assert Tensor([True]).where(2**40, 0).tolist() == [2**40]
    with pytest.raises(ValueError, match="NaN is no int32"):
        Tensor([1, math.nan], dtype="int32")


def test_a_list_that_holds_itself_is_refused() -> None:
    endless: list[Any] = [1]
    endless[0] = endless
    with pytest.raises(ValueError, match="holds itself"):
        Tensor(endless)


@pytest.mark.parametrize(("given", "name"), [
    (np.float32, "float32"), (np.dtype("int16"), "int16"), ("f2", "float16"), ("<i8", "int64"), ("|u1", "uint8"),
    (float, "float64"), (int, "int64"), (bool, "bool"), ("half", "float16"), (np.bool_, "bool"),
])  # fmt: skip
def test_spellings_of_dtypes(given: Any, name: str) -> None:
    assert Tensor.zeros(2, dtype=given).dtype.name == name
    assert Tensor([1], dtype=given).dtype.name == name
    assert Tensor([1]).cast(given).dtype.name == name


@pytest.mark.parametrize("given", [3, object(), np.clongdouble, [1]])
def test_what_is_no_dtype_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="dtype|counterpart"):
        Tensor.zeros(2, dtype=given)


def test_new_tensors_of_numbers_that_only_uint64_has() -> None:
    x = Tensor([1.0])
    assert x.new_tensor([2**63, 1], dtype="uint64").tolist() == [2**63, 1]
    assert Tensor([1], dtype="uint64").new_tensor(2**64 - 1).item() == 2**64 - 1
    with pytest.raises(OverflowError, match=f"{2**64} is no uint64"):
        x.new_tensor(2**64, dtype="uint64")
    with pytest.raises(OverflowError, match="is no int64"):
        x.new_tensor([2**63], dtype="int64")
