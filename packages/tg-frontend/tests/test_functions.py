"""Functions by the names of PyTorch and numpy, beside numpy's."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import tg_frontend.functions
from tg_dtype import dtypes
from tg_frontend import Tensor
from tg_frontend.functions.names import named, names

np: Any = numpy  # whose overloads are not what is tested
functions: Any = tg_frontend.functions
RNG = np.random.default_rng(3)
X = RNG.normal(size=(5, 7)).astype(np.float32)
WHOLE = RNG.integers(-5, 6, (5, 7)).astype(np.int32)
GAPS = X.copy()
GAPS[0, 1] = GAPS[3, :3] = GAPS[2] = np.nan
AXES = (None, 0, 1, -1)


def same(mine: Any, theirs: Any, tolerance: float = 1e-5) -> None:
    """Results, or lists of them, of one shape and with the same values."""
    left = list(mine) if isinstance(mine, (tuple, list)) else [mine]
    right = list(theirs) if isinstance(theirs, (tuple, list)) else [theirs]
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        got, wanted = a.numpy() if isinstance(a, Tensor) else np.asarray(a), np.asarray(b)
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", ["nanmax", "nanmin", "nanprod", "nanvar", "nanstd"])
def test_reductions_without_nan(name: str, axis: int | None) -> None:
    mine, theirs = getattr(functions, name), getattr(np, name)
    for values in (GAPS, WHOLE):
        for keepdims in (False, True):
            same(mine(Tensor(values), axis=axis, keepdims=keepdims), theirs(values, axis=axis, keepdims=keepdims))
    if name in ("nanvar", "nanstd"):
        same(mine(Tensor(GAPS), axis=axis, ddof=4), theirs(GAPS, axis=axis, ddof=4))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("axis", AXES)
def test_statistics_along_an_axis(axis: int | None) -> None:
    for name in ("nancumsum", "nancumprod"):
        same(getattr(functions, name)(Tensor(GAPS), axis), getattr(np, name)(GAPS, axis))
    same(functions.ptp(Tensor(X), axis), np.ptp(X, axis))
    same(functions.percentile(Tensor(X), [10, 50.0, 99], axis), np.percentile(X, [10, 50, 99], axis))
    same(functions.percentile(Tensor(X), Tensor(25.0), axis), np.percentile(X, 25, axis))
    same(functions.nanpercentile(Tensor(GAPS), 30, axis), np.nanpercentile(GAPS, 30, axis))
    weights = np.abs(X)
    same(functions.average(Tensor(X), axis, returned=True), np.average(X, axis, returned=True))
    same(functions.average(Tensor(X), axis, Tensor(weights), True), np.average(X, axis, weights, True))
    if axis is not None:
        each = weights.sum(1 - axis % 2)
        same(functions.average(Tensor(X), axis, Tensor(each)), np.average(X, axis, each))


def test_averages_of_narrow_integers() -> None:
    kinds = (("int8", "int8"), ("uint8", "int8"), ("int32", "int32"), ("bool", "uint8"), ("int8", "float32"))
    for kind, other in kinds:
        values, weights = np.array([127, 100, 3], kind), np.array([100, 27, 5], other)
        same(functions.average(Tensor(values), weights=Tensor(weights)), np.average(values, weights=weights))


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_places_of_extremes_without_nan(axis: int | None) -> None:
    values = GAPS.copy()
    values[2] = [1, np.nan, -np.inf, 3, 3, 2, 1]
    for name in ("nanargmax", "nanargmin"):
        for keepdims in (False, True):
            wanted = getattr(np, name)(values, axis, keepdims=keepdims)
            same(getattr(functions, name)(Tensor(values), axis, keepdims=keepdims), wanted)
        assert getattr(functions, name)(Tensor([math.nan] * 3)).item() == -1
    assert functions.nanargmax(Tensor([math.nan, -math.inf])).item() == 1
    assert functions.nanargmin(Tensor([math.nan, math.inf])).item() == 1
    assert functions.nanargmax(Tensor([1, 9, 3])).item() == 1


def test_gradients_go_around_nan() -> None:
    for name, wanted in (("nanmax", [0.0, 0.0, 1.0]), ("nanmin", [1.0, 0.0, 0.0]), ("nanprod", [3.0, 0.0, 2.0])):
        x = Tensor([2.0, math.nan, 3.0], requires_grad=True)
        getattr(functions, name)(x).backward()
        assert x.grad is not None and x.grad.tolist() == wanted, name
    x = Tensor([2.0, math.nan, 4.0], requires_grad=True)
    functions.nanvar(x).backward()
    assert x.grad is not None and x.grad.tolist() == [-1.0, 0.0, 1.0]


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_elements_put_in_and_taken_out(axis: int | None) -> None:
    size = X.size if axis is None else X.shape[axis]
    chosen = [i % 3 == 1 for i in range(size)]
    for obj in (2, -1, [1, -1], [0, 0], slice(0, 4, 2), slice(None, None, -2), chosen, []):
        index: Any = np.array(obj, int) if obj == [] else obj
        same(functions.delete(Tensor(X), obj, axis), np.delete(X, index, axis))
    same(functions.delete(Tensor(X), Tensor([1, 3]), axis), np.delete(X, [1, 3], axis))
    for obj, value in (
        (2, 9.0),
        (size, 1.0),
        ([1, 3], 5.0),
        ([1], 7.0),
        ([3, 1, 1], 2.0),
        (slice(0, 4, 2), 4.0),
        (-1, 3.0),
    ):
        same(functions.insert(Tensor(X), obj, value, axis), np.insert(X, obj, value, axis))
    for wrong in (size, -size - 1):
        with pytest.raises(IndexError, match=f"delete: place {wrong} of {size}"):
            functions.delete(Tensor(X), wrong, axis)
    with pytest.raises(IndexError, match="insert: place"):
        functions.insert(Tensor(X), [0, size + 1], 1.0, axis)
    with pytest.raises(TypeError, match="places are integers"):
        functions.delete(Tensor(X), [0.5], axis)


def test_blocks_put_in() -> None:
    t = Tensor(X)
    same(functions.insert(t, 1, [[1] * 7, [2] * 7], 0), np.insert(X, 1, [[1] * 7, [2] * 7], 0))
    same(functions.insert(t, 1, [1, 2, 3, 4, 5], 1), np.insert(X, 1, [1, 2, 3, 4, 5], 1))
    column = [[1], [2], [3], [4], [5]]
    same(functions.insert(t, [1], column, 1), np.insert(X, [1], column, 1))
    same(functions.insert(t[0], [2, 2, 0], [7, 8, 9]), np.insert(X[0], [2, 2, 0], [7, 8, 9]))
    same(functions.insert(Tensor(WHOLE), 3, 2.7), np.insert(WHOLE, 3, 2.7))
    values = Tensor([1.0, 2.0], requires_grad=True)
    (functions.insert(t[0], [1, 3], values) * Tensor.arange(9)).sum().backward()
    assert values.grad is not None and values.grad.tolist() == [1.0, 4.0]


def test_append_resize_and_trim() -> None:
    same(functions.append(Tensor(X), Tensor(X[0])), np.append(X, X[0]))
    same(functions.append(Tensor(X), Tensor(X[:2]), 0), np.append(X, X[:2], 0))
    assert functions.append([1, 2], [0.5]).dtype is dtypes.float32
    for shape in (3, (2, 3), (4, 5, 3), (0,), ()):
        same(functions.resize(Tensor(X), shape), np.resize(X, shape))
    row = np.array([0, 0, 1, 0, 2, 0.0])
    for trim in ("f", "b", "fb"):
        same(functions.trim_zeros(Tensor(row), trim), np.trim_zeros(row, trim))
        same(functions.trim_zeros(Tensor(row * 0), trim), np.trim_zeros(row * 0, trim))
    field = np.zeros((5, 6))
    field[1:3, 2:4] = [[1, 0], [0, 3]]
    same(functions.trim_zeros(Tensor(field)), field[1:3, 2:4])


@pytest.mark.parametrize("order", [1, 2])
def test_slopes_of_values(order: int) -> None:
    x = X.astype(np.float64)
    same(functions.gradient(Tensor(x), edge_order=order), np.gradient(x, edge_order=order))
    wanted = np.gradient(x, 0.5, axis=1, edge_order=order)
    same(functions.gradient(Tensor(x), spacing=0.5, dim=1, edge_order=order), wanted)
    same(functions.gradient(Tensor(x), spacing=[0.5], axis=-1, edge_order=order), wanted)
    places = [np.cumsum(RNG.uniform(0.2, 1, size)) for size in x.shape]
    wanted = np.gradient(x, *places, edge_order=order)
    same(functions.gradient(Tensor(x), spacing=[Tensor(p) for p in places], edge_order=order), wanted, 1e-10)
    assert functions.gradient(Tensor([1, 2, 4]))[0].tolist() == [1.0, 1.5, 2.0]
    with pytest.raises(ValueError, match="edges of order"):
        functions.gradient(Tensor(x[:order]), dim=0, edge_order=order)
    with pytest.raises(ValueError, match="an axis is given twice"):
        functions.gradient(Tensor(x), dim=(1, -1))
    with pytest.raises(ValueError, match="3 spacings for 2 axes"):
        functions.gradient(Tensor(x), spacing=[1, 2, 3])


def test_values_between() -> None:
    xp, fp = np.sort(RNG.normal(size=6)), RNG.normal(size=6)
    x = np.concatenate([RNG.normal(size=23) * 2, xp])
    t = [Tensor(a) for a in (x, xp, fp)]
    same(functions.interp(*t), np.interp(x, xp, fp))
    same(functions.interp(*t, left=-9, right=8), np.interp(x, xp, fp, left=-9, right=8))
    same(functions.interp(*t, period=1.7), np.interp(x, xp, fp, period=1.7))
    same(functions.interp(t[0], t[1][:1], t[2][:1]), np.interp(x, xp[:1], fp[:1]))
    same(functions.interp(0.25, [0, 1], [2, 4]), 2.5)
    where, height = Tensor([0.5, 2.0], requires_grad=True), Tensor([1.0, 3.0, 7.0], requires_grad=True)
    functions.interp(where, Tensor([0.0, 1.0, 2.0]), height).sum().backward()
    assert where.grad is not None and where.grad.tolist() == [2.0, 4.0]
    assert height.grad is not None and height.grad.tolist() == [0.5, 0.5, 1.0]
    most = np.finfo(np.float64).max
    for places, heights in (([-most, most], [0.0, 1.0]), ([0.0, 1.0], [-most, most]), ([-most, 0.0], [most, -most])):
        parts = np.array([[1, 0.75, 0.5, 0], [0, 0.25, 0.5, 1]])  # numpy's differences overflow
        given = (Tensor(np.array(part)) for part in (places @ parts, places, heights))
        np.testing.assert_allclose(functions.interp(*given).numpy(), heights @ parts, rtol=1e-12)
    with pytest.raises(ValueError, match="places of shape"):
        functions.interp(Tensor(x), Tensor(xp), Tensor(fp[1:]))


@pytest.mark.parametrize("axis", [0, 1])
def test_unwrap(axis: int) -> None:
    angles = RNG.normal(size=(4, 9)) * 8
    same(functions.unwrap(Tensor(angles), axis=axis), np.unwrap(angles, axis=axis))
    same(functions.unwrap(Tensor(angles), 5.0, axis=axis), np.unwrap(angles, 5.0, axis=axis))
    same(functions.unwrap(Tensor(angles), axis=axis, period=4.0), np.unwrap(angles, axis=axis, period=4.0))
    half = np.array([[0, np.pi, 2 * np.pi, 0.0]] * 3)
    same(functions.unwrap(Tensor(half), axis=axis), np.unwrap(half, axis=axis))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("n", "m"), [(7, 3), (3, 7), (4, 4), (5, 2), (2, 5), (6, 4), (4, 6), (1, 1)])
def test_rows_convolved(n: int, m: int, mode: Any) -> None:
    a, b = RNG.normal(size=n), RNG.normal(size=m)
    same(functions.convolve(Tensor(a), Tensor(b), mode), np.convolve(a, b, mode))
    for one, other in ((a, b), (a + 1j * a[::-1], b - 2j * b)):
        same(functions.correlate(Tensor(one), Tensor(other), mode), np.correlate(one, other, mode))
    whole = np.arange(n), np.arange(m) - 2
    same(functions.convolve(Tensor(whole[0]), Tensor(whole[1]), mode), np.convolve(*whole, mode))


def test_differences_of_all_elements() -> None:
    same(functions.ediff1d(Tensor(X), X[0], X[1]), np.ediff1d(X, X[0], X[1]))
    same(functions.ediff1d(Tensor(WHOLE)), np.ediff1d(WHOLE))


def test_sets() -> None:
    a, b = RNG.integers(0, 9, 11), RNG.integers(3, 12, (2, 4))
    for name in ("intersect1d", "union1d", "setdiff1d", "setxor1d"):
        wanted = getattr(np, name)(a, b.reshape(-1))
        same(getattr(functions, name)(Tensor(a), Tensor(b)), wanted)
        same(getattr(functions, name)(Tensor(a), Tensor(b.astype(np.float64))), wanted)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[-3, 0, 1, 4], [4, 1, 0, -3], [1, 1, 2], [2]])
def test_digitize(bins: list[int], right: bool) -> None:
    same(functions.digitize(Tensor(WHOLE), bins, right), np.digitize(WHOLE, bins, right))
    same(functions.digitize(Tensor(X), Tensor(bins), right), np.digitize(X, bins, right))
    with pytest.raises(ValueError, match="neither rise nor fall"):
        functions.digitize(Tensor(X), [1, 3, 2])


def test_chosen_elements() -> None:
    x, t = X, Tensor(X)
    same(functions.select([t < 0, t > 0.5], [t, t * 2], 7.0), np.select([x < 0, x > 0.5], [x, x * 2], 7.0))
    same(functions.select(t, 1, -2), x[:, -2])
    same(functions.select([Tensor(False), t < 0], [1.0, t], 7.0), np.select([np.array(False), x < 0], [1.0, x], 7.0))
    pieces = np.piecewise(x, [x < 0, x > 0.5, x > 1], [lambda x: -x, 2.0, lambda x: x * x])
    same(functions.piecewise(t, [t < 0, t > 0.5, t > 1], [lambda x: -x, 2.0, lambda x: x * x]), pieces)
    same(functions.piecewise(t, t > 0, [1.0, -1.0]), np.piecewise(x, [x > 0], [1.0, -1.0]))
    for mode in ("wrap", "clip"):
        wanted = np.choose(WHOLE, [x, x * 2, x * 3], mode=mode)
        same(functions.choose(Tensor(WHOLE), [t, t * 2, t * 3], mode), wanted)
    with pytest.raises(ValueError, match="out of range for 3 choices"):
        functions.choose(Tensor(WHOLE), [t, t, t])
    for axis in (None, 0, 1):
        same(functions.compress([True, False, True], t, axis), np.compress([True, False, True], x, axis))
    same(functions.extract(t > 0, t), np.extract(x > 0, x))
    same(functions.flatnonzero(Tensor(WHOLE)), np.flatnonzero(WHOLE))
    same(functions.where(Tensor(WHOLE), t, 0.0), np.where(WHOLE, x, 0))
    same(functions.where(True, 1.0, t), np.where(True, 1.0, x))
    with pytest.raises(TypeError, match="either two values"):
        functions.where(t > 0, t)


def test_elements_and_vectors() -> None:
    same(functions.cbrt(Tensor(X)), np.cbrt(X))
    odd = np.array([1.5, -0.0, np.inf, -np.inf, np.nan, -2.25])
    mine, theirs = functions.modf(Tensor(odd)), np.modf(odd)
    same(mine, theirs)
    assert (np.signbit(mine[0].numpy()) == np.signbit(theirs[0])).all()
    a = RNG.normal(size=(2, 3, 5))
    same(functions.matvec(Tensor(a), Tensor(a[:, 0])), np.einsum("bij,bj->bi", a, a[:, 0]))
    z = a[:, :, 0] + 1j
    same(functions.vecmat(Tensor(z), Tensor(a)), np.einsum("bi,bij->bj", z.conj(), a))
    assert functions.array_equiv(Tensor([1, 2]), Tensor([[1, 2]])) and not functions.array_equiv(
        Tensor([1, 2]), Tensor([1])
    )
    assert functions.array_equiv(Tensor([1, 2]), Tensor([1, 2, 3])) is False


def test_places_and_rows_of_numbers() -> None:
    for shape in ((2, 3), (4,), (1, 2, 3)):
        same(functions.indices(shape), np.indices(shape))
    same(functions.fromfunction(lambda i, j: i - j, (3, 2)), np.fromfunction(lambda i, j: i - j, (3, 2)))
    same(functions.geomspace(1, 1000, 7), np.geomspace(1, 1000, 7))
    same(functions.geomspace(-2, -64, 5, endpoint=False), np.geomspace(-2, -64, 5, endpoint=False))
    same(functions.tri(3, 5, -1), np.tri(3, 5, -1))
    for name in ("tril_indices_from", "triu_indices_from"):
        same(getattr(functions, name)(Tensor(X), 1), getattr(np, name)(X, 1))
    same(functions.diag_indices(4, 3), np.diag_indices(4, 3))
    same(functions.histogram2d(Tensor(X[0]), Tensor(X[1]), bins=(3, 2)), np.histogram2d(X[0], X[1], bins=(3, 2)))
    same(functions.histogram_bin_edges(Tensor(X), 5), np.histogram_bin_edges(X, 5))
    same(functions.frombuffer(X.tobytes(), count=3, offset=8), np.frombuffer(X.tobytes(), np.float32, 3, 8))
    with pytest.raises(ValueError, match="4 elements of float32 behind"):
        functions.frombuffer(bytes(12), count=4)


def test_limits_and_meeting_points_of_dtypes() -> None:
    for name in ("float16", "float32", "float64"):
        mine, theirs = functions.finfo(name), np.finfo(name)
        for key in ("bits", "eps", "max", "min", "tiny", "smallest_normal"):
            assert getattr(mine, key) == getattr(theirs, key)
        assert mine.resolution == pytest.approx(float(theirs.resolution), rel=1e-3) and mine.dtype == name
    assert functions.finfo("bfloat16").max == 3.3895313892515355e38 and functions.finfo().dtype == "float32"
    for name in ("int8", "uint8", "int64", "uint64"):
        assert functions.iinfo(name)[:3] == (np.iinfo(name).bits, np.iinfo(name).max, np.iinfo(name).min)
    with pytest.raises(TypeError, match="ask iinfo"):
        functions.finfo("int32")
    order = ("bool", "int32", "float16", "complex64")
    for i, low in enumerate(order):
        for j, high in enumerate(order):
            assert functions.can_cast(low, high) == (i <= j)
    assert functions.result_type(Tensor(1.0), "int8") is dtypes.float32
    assert functions.result_type(2.5, "int8", Tensor([1], dtype="float16")) is dtypes.float16


def test_modes() -> None:
    before = functions.is_grad_enabled()
    with functions.set_grad_enabled(False):
        assert not functions.is_grad_enabled()
    functions.set_grad_enabled(False)
    try:
        assert not functions.is_grad_enabled()
        with functions.set_grad_enabled(True), functions.inference_mode():
            assert not functions.is_grad_enabled() and functions.is_inference_mode_enabled()
        assert not functions.is_grad_enabled()
    finally:
        functions.set_grad_enabled(before)

    inside = functions.set_grad_enabled(False)(lambda: functions.is_grad_enabled())
    assert functions.is_grad_enabled() and not inside() and functions.is_grad_enabled()
    with pytest.raises(TypeError, match="True or False"):
        functions.set_grad_enabled(0)


def test_tensors_of_data() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    copied = functions.tensor(x, dtype="float64")
    assert copied.dtype is dtypes.float64 and not copied.requires_grad
    assert functions.as_tensor(x) is x and functions.as_tensor(X).shape == X.shape
    same(functions.from_numpy(X), X)
    with pytest.raises(TypeError, match="array of numpy"):
        functions.from_numpy([1.0])
    with pytest.raises(ValueError, match="by a copy only"):
        functions.asarray([1.0], copy=False)
    assert functions.asarray(x, copy=True, requires_grad=False) is not x
    theirs = np.arange(5, dtype=np.float32)
    mine, taken = functions.asarray(theirs, copy=False), functions.asarray(theirs.__dlpack__())
    theirs[3] = -1.0
    assert mine.tolist() == taken.tolist() == theirs.tolist()
    with pytest.raises(ValueError, match="by a copy only"):
        functions.asarray(theirs, dtype="float64", copy=False)
    diagonal = named("block_diag")
    assert diagonal().shape == (1, 0) and diagonal([1, 2], [3]).tolist() == [[1, 2, 0], [0, 0, 3]]
    for bad in ((), (3,), (1, 2, 3)):
        with pytest.raises(TypeError, match="upper bound"):
            functions.randint(*bad)
    assert functions.randint(5, 6, size=(2, 1)).tolist() == [[5], [5]] == functions.randint(5, 6, (2, 1)).tolist()



@pytest.mark.parametrize("name", "lt less le gt greater_equal eq not_equal maximum minimum fmax fmin".split())
def test_no_keyword_is_lost_behind_a_number(name: str) -> None:
    x = Tensor([1, 5])
    for args in ((x, 3), (3, x), (3.5, x), (np.int64(3), x)):
        with pytest.raises(TypeError, match="unexpected keyword"):
            named(name)(*args, zzz=1)
        out = Tensor([7.0, 7.0])
        assert named(name)(*args, out=out) is out
        assert out.tolist() == named(name)(*args).tolist()


def test_names_lead_to_methods_dtypes_and_numbers() -> None:
    x = Tensor(X)
    same(named("cat")([x, x], dim=1), np.concatenate([X, X], 1))
    same(named("add")(input=x, other=x), X + X)
    same(named("power")(2.0, Tensor(WHOLE)), np.power(2.0, WHOLE))
    same(named("sub")(1, x), 1 - X)
    assert named("sub")(1, Tensor(2, dtype="uint8") * 0).dtype is dtypes.uint8
    assert named("mul")(2.0, Tensor([1, 2])).dtype is dtypes.float32
    same(named("maximum")(X, x), X)
    same(named("expand_dims")(x, axis=1), X[:, None])
    assert named("float") is dtypes.float32 and named("bool_") is dtypes.bool and named("uint") is dtypes.uint64
    assert named("pi") == math.pi and named("newaxis") is None and named("shape")(x) == (5, 7)
    assert named("arange")(start=0, end=5, step=2).tolist() == [0, 2, 4]
    for name in names():
        named(name)
    for name, said in (("cumsum", "dim is to be given"), ("transpose", "dim0 and dim1 are"), ("flip", "dims are")):
        with pytest.raises(TypeError, match=said):
            named(name)(x)
    for name, said in (
        ("FloatTensor", "dtype='float32'"),
        ("storage", "DLPack"),
        ("nothing", "nothing'$"),
    ):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'.*{said}|{said}"):
            named(name)


def test_a_dtype_is_no_answer_to_whether_axes_are_kept() -> None:
    with pytest.raises(TypeError, match="keepdim is True or False, got 'float64'"):
        named("sum")(Tensor(X), 0, "float64")


def test_dtypes_by_the_names_of_pytorch() -> None:
    x = Tensor([1.5, 2.0])
    for name, kind in (("torch.float64", "float64"), ("torch.LongTensor", "int64"), ("torch.BoolTensor", "bool")):
        assert x.type(name).dtype.name == kind == x.to(name).dtype.name == Tensor([1], dtype=name).dtype.name
    for wrong in ("torch.FloatTensors", "FloatTensor", "torch."):
        with pytest.raises(ValueError, match="no dtype is named"):
            x.type(wrong)
