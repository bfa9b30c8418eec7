"""numpy's functions, called with tensors and with arrays that are drawn: they give the same, of tensors as tensors."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor

NP: Any = np  # called with what its stubs do not know
Random = np.random.Generator
KINDS = """bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64
    complex128""".split()
UFUNCS = [
    name for name, found in sorted(vars(np).items())
    if isinstance(found, np.ufunc) and found.__name__ == name and found.signature is None and name != "isnat"
]  # fmt: skip
EXACT = frozenset(
    """absolute add bitwise_and bitwise_count bitwise_or bitwise_xor conjugate equal floor_divide fmax fmin fmod greater
    greater_equal invert less less_equal logical_and logical_not logical_or logical_xor maximum minimum multiply
    negative not_equal positive remainder sign square subtract divmod""".split()
)
"""Functions whose integers may be those at the ends of their dtypes: no float is rounded on the way."""
DIVIDING = ("divmod", "floor_divide", "fmod", "remainder")
"""Functions of which integers divided by 0 are 0 in numpy, with a warning, and something documented here."""
BESIDE: list[Any] = [
    True, 3, 2.5, 1.5 + 0.5j, np.float64(0.5), np.complex64(1 + 2j), np.array([2], object), np.array([3], "m8[s]"),
    np.array([0.5], np.longdouble),
]  # fmt: skip
"""What stands beside arrays: Python's numbers and numpy's, and arrays of which there are no tensors."""
DIGITS = {"float16": 4e-3, "float32": 3e-4, "complex64": 3e-4}
"""How much two results may differ, as a part of the greatest element; 1e-9 where both have more digits."""


def drawn(rng: Random, shape: tuple[int, ...], kind: str, ends: bool = False) -> Any:
    """An array with special values: infinities, NaN, zeros of both signs; ``ends``: the ends of integer dtypes."""
    dtype: Any = np.dtype(kind)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if dtype.kind in "iu":
        found = np.asarray(rng.integers(0 if dtype.kind == "u" else -5, 6, shape)).astype(dtype)
        info = np.iinfo(dtype)
        special: Any = np.array([info.min, info.max, 0, 1] if ends else [0, 1], dtype)
    else:
        found, special = np.asarray(rng.standard_normal(shape) * 3), np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 0.5])
    found = np.where(rng.random(shape) < 0.15, rng.choice(special, shape), found)
    return (found + 1j * rng.standard_normal(shape) if dtype.kind == "c" else found).astype(dtype)


def check(found: Any, wanted: Any, what: str, signs: bool = False, mixed: bool = False) -> None:
    """Sees to it that tensors have the elements of arrays, in a dtype of the same kind, with the signs of zeros.

    Integers may be of the other kind where both kinds met: dtypes promote by other rules.
    """
    if isinstance(wanted, (tuple, list)):
        assert isinstance(found, (tuple, list)) and len(found) == len(wanted), what
        for one, other in zip(found, wanted, strict=True):
            check(one, other, what, signs, mixed)
        return
    assert isinstance(found, Tensor), f"{what} gives a {type(found).__name__}"
    array, wanted = found.numpy(), np.asarray(wanted)
    assert array.shape == wanted.shape, what
    kinds = array.dtype.kind, wanted.dtype.kind
    assert kinds[0] == kinds[1] or (mixed and set(kinds) == {"i", "u"}), f"{what}: {array.dtype} for {wanted.dtype}"
    digits = max(DIGITS.get(dtype.name, 1e-9) for dtype in (array.dtype, wanted.dtype))
    if kinds[1] not in "fc":
        np.testing.assert_array_equal(array, wanted, err_msg=what)
        return
    wanted = wanted.astype(array.dtype)
    size = np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
    np.testing.assert_allclose(array, wanted, rtol=digits, atol=digits * min(float(size), 1.0), err_msg=what)
    if kinds[1] == "f" and signs:
        zeros = (array == 0) & (wanted == 0)
        np.testing.assert_array_equal(np.signbit(array[zeros]), np.signbit(wanted[zeros]), err_msg=f"-0.0 of {what}")


def _tensor(x: Any) -> Tensor:
    return Tensor(x, device="NUMPY")


def compare(call: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], tensors: list[bool], what: str) -> None:
    """A call with arrays beside one in which some of them are tensors.

    Words may say that complex numbers have no order.
    """
    shown = ", ".join(f"{x.dtype.name}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x) for x in args)
    what = f"{what}({shown}, {kwargs}), tensors: {tensors}"
    copies = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
    try:
        wanted = call(*args, **kwargs)
    except (TypeError, ValueError):
        return  # nothing is promised where numpy refuses
    given = [_tensor(x) if t and isinstance(x, np.ndarray) else x for x, t in zip(copies, tensors, strict=True)]
    if not any(isinstance(x, Tensor) for x in given):
        return
    try:
        found = call(*given, **kwargs)
    except TypeError as error:
        assert "complex" in str(error), what
        return
    check(found, wanted, what, isinstance(call, np.ufunc), {np.asarray(x).dtype.kind for x in args} >= {"i", "u"})


def shapes(rng: Random, count: int) -> list[tuple[int, ...]]:
    """Shapes that broadcast."""
    most = tuple(int(n) for n in rng.integers(1, 5, int(rng.integers(0, 4))))
    parts = [most[int(rng.integers(0, len(most) + 1)) if rng.random() < 0.2 else 0 :] for _ in range(count)]
    return [tuple(n if rng.random() < 0.75 else 1 for n in part) for part in parts]


def operands(rng: Random, name: str, count: int) -> list[Any]:
    kinds = [str(rng.choice(KINDS if name != "nextafter" else KINDS[9:12]))] * count
    if name != "nextafter" and rng.random() < 0.4:
        kinds = [str(rng.choice(KINDS)) for _ in kinds]
    found = [drawn(rng, s, kind, name in EXACT) for s, kind in zip(shapes(rng, count), kinds, strict=True)]
    if name in DIVIDING and found[-1].dtype.kind in "iu":
        found[-1][found[-1] == 0] = 1
    if name in ("power", "float_power", "left_shift", "right_shift", "ldexp") and found[-1].dtype.kind == "i":
        found[-1] = np.abs(found[-1])
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", UFUNCS)
def test_universal_functions(name: str, seed: int) -> None:
    rng, ufunc = np.random.default_rng([seed, UFUNCS.index(name)]), getattr(NP, name)
    for _ in range(12):
        args = operands(rng, name, ufunc.nin)
        kwargs: dict[str, Any] = {"dtype": str(rng.choice(KINDS))} if rng.random() < 0.15 else {}
        compare(ufunc, args, kwargs, [i == 0 or bool(rng.random() < 0.7) for i in range(ufunc.nin)], name)
        places = rng.integers(0, 5, 3)

        def at(x: Any, *others: Any) -> Any:
            ufunc.at(x, places, *others)  # noqa: B023
            return x

        if ufunc.nout == 1:
            into = [drawn(rng, (5,), args[0].dtype.name, name in EXACT), *(x.reshape(-1)[:1] for x in args[1:])]
            compare(at, into, {}, [True, False][: ufunc.nin], f"{name}.at")
        if ufunc.nin != 2 or ufunc.nout != 1:
            continue
        compare(ufunc.outer, args, {}, [True, bool(rng.random() < 0.7)], f"{name}.outer")
        x = args[0].reshape(-1) if args[0].ndim < 1 else args[0]
        axis = int(rng.integers(-x.ndim, x.ndim))
        if name in DIVIDING or name == "power":
            continue
        compare(ufunc.accumulate, [x], {"axis": axis}, [True], f"{name}.accumulate")
        compare(ufunc.reduceat, [x, [0]], {"axis": axis}, [True, False], f"{name}.reduceat")
        how: dict[str, Any] = {"axis": None if rng.random() < 0.2 else axis, "keepdims": bool(rng.random() < 0.5)}
        how |= {"initial": 1} if rng.random() < 0.2 else {}
        how |= {"where": rng.random(x.shape) < 0.7} if rng.random() < 0.2 else {}
        compare(ufunc.reduce, [x], how, [True], f"{name}.reduce")


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", UFUNCS)
def test_results_written_to_tensors(name: str) -> None:
    rng, ufunc = np.random.default_rng(UFUNCS.index(name)), getattr(NP, name)
    for _ in range(8):
        args = operands(rng, name, ufunc.nin)
        try:
            wanted = ufunc(*args)
        except TypeError:
            continue
        several = wanted if isinstance(wanted, tuple) else (wanted,)
        outs = tuple(_tensor(np.zeros(np.shape(part), np.asarray(part).dtype)) for part in several)
        for given in (args, list(map(_tensor, args))):
            found = ufunc(*given, out=outs)
            assert all(map(operator.is_, found if isinstance(found, tuple) else (found,), outs))
            check(outs, several, f"{name} of {[x.dtype for x in args]}")


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", [name for name in UFUNCS if getattr(NP, name).nin == 2])
def test_what_stands_beside_a_tensor(name: str) -> None:
    rng, ufunc = np.random.default_rng(UFUNCS.index(name)), getattr(NP, name)
    for other in BESIDE:
        x = drawn(rng, (3,), str(rng.choice(KINDS)))
        x = np.where(np.isfinite(x) & (x != 0), x, x.dtype.type(1))  # of others complex numbers have several limits
        for flipped in (False, True):
            args = [other, x] if flipped else [x, other]
            try:
                wanted = ufunc(*args)
            except (TypeError, ValueError, OverflowError, AttributeError):
                continue
            what = f"{name}({args[0]!r}, {args[1]!r})"
            try:
                found = ufunc(*(_tensor(part) if part is x else part for part in args))
            except Exception as error:
                raise AssertionError(what) from error
            if ufunc.nout == 1 and np.asarray(wanted).dtype.char in "OmgG":
                assert not isinstance(found, Tensor), what
                np.testing.assert_array_equal(found, wanted, err_msg=what)
            elif np.asarray(wanted).dtype.char not in "OmgG":
                check(found, wanted, what)


REDUCTIONS = """sum prod max min mean std var any all argmax argmin median ptp nansum nanmax nanmin nanmean nanstd
    nanprod count_nonzero average cumsum cumprod nancumsum""".split()
CALLS: dict[str, Callable[[Any], Any]] = {
    "outer": lambda v: np.outer(v, v), "ravel in Fortran's order": lambda v: np.ravel(v, order="F"),
    "reshape in Fortran's order": lambda v: np.reshape(v, (-1,), order="F"), "imag": np.imag, "real": np.real,
    "diff between numbers": lambda v: NP.diff(v, prepend=0, append=1), "diff": lambda v: np.diff(v, 2, 0),
    "sort": lambda v: np.sort(v, axis=0, kind="quicksort"), "clip": lambda v: np.clip(v, 1, 3), "rint": np.rint,
    "round": lambda v: np.round(v, 1), "pad": lambda v: np.pad(v, 1, mode="reflect"),
    "kron": lambda v: np.kron(v, v[0]),
    "unique": lambda v: np.unique(v, return_counts=True), "tile": lambda v: np.tile(v, (2, 1)), "flip": np.flip,
    "repeat": lambda v: np.repeat(v, 2), "take": lambda v: np.take(v, [[0, 1], [2, 5]], mode="clip"),
    "roll": lambda v: np.roll(v, 2),
    "insert": lambda v: np.insert(v, 1, 7, axis=1), "delete": lambda v: np.delete(v, [0], axis=0),
    "isin": lambda v: np.isin(v, [1, 2]), "searchsorted": lambda v: np.searchsorted(np.sort(v[0]), v[1], side="right"),
    "quantile": lambda v: np.quantile(v, 0.3, axis=0), "nanquantile": lambda v: np.nanquantile(v, 0.3, axis=1),
    "percentile": lambda v: np.percentile(v, 70, axis=0),
    "inverted_cdf": lambda v: np.quantile(v, 0.4, method="inverted_cdf"), "corrcoef": np.corrcoef, "cov": np.cov,
    "trace": lambda v: np.trace(v, 1), "tri": lambda v: np.tril(v, 1), "rot90": np.rot90, "nonzero": np.nonzero,
    "gradient": lambda v: np.gradient(np.add(v, np.zeros(v.shape)), axis=1),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    rng = np.random.default_rng(REDUCTIONS.index(name))
    for kind in ("bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"):
        for _ in range(4):
            shape = tuple(int(n) for n in rng.integers(1, 5, int(rng.integers(1, 4))))
            x = drawn(rng, shape, kind)
            axis = int(rng.integers(-x.ndim, x.ndim))
            how: dict[str, Any] = {"axis": axis} if rng.random() < 0.7 else {}
            if "cum" not in name:
                how |= {"keepdims": True} if rng.random() < 0.4 else {}
            if name in ("sum", "mean", "std", "nansum", "nanmean", "any") and rng.random() < 0.3:
                how |= {"where": rng.random(shape) < 0.7}
            if name in ("std", "var", "nanstd") and rng.random() < 0.3:
                how |= {"ddof": float(rng.choice([0.5, 1.0]))}
            if name in ("sum", "mean", "cumsum", "prod") and rng.random() < 0.3:
                how |= {"dtype": "float64"}
            if name == "max" and x.dtype.kind != "b" and rng.random() < 0.3:
                how |= {"initial": 2}
            compare(getattr(NP, name), [x], how, [True], name)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CALLS)
def test_functions(name: str) -> None:
    rng = np.random.default_rng(sorted(CALLS).index(name))
    for kind in ("int8", "uint8", "int32", "uint64", "int64", "float32", "float64", "complex128"):
        shape = (int(rng.integers(3, 6)), int(rng.integers(3, 6)))
        x = np.asarray(rng.integers(0, 9, shape) if kind[0] in "iu" else rng.standard_normal(shape) * 3).astype(kind)
        compare(CALLS[name], [x], {}, [True], f"{name} of {kind}")


PRODUCTS = "dot vdot inner outer kron tensordot matmul linalg.outer linalg.matmul linalg.vecdot".split()
"""Functions of two arrays with any numbers of axes."""


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_over_any_number_of_axes(name: str) -> None:
    """Numbers of axes that fit give numpy's shape; others are refused, be the numbers real or complex."""
    rng, call = np.random.default_rng(PRODUCTS.index(name)), operator.attrgetter(name)(NP)
    for kind, first, second in itertools.product(("float64", "complex128", "uint8"), range(4), range(4)):
        args = [rng.integers(0, 4, (3,) * axes).astype(kind) for axes in (first, second)]
        for given in ([_tensor(args[0]), _tensor(args[1])], [args[0].tolist(), _tensor(args[1])]):
            what = f"{name} of {kind}, axes: {first} and {second}"
            try:
                wanted = call(*args)
            except (ValueError, IndexError):
                with pytest.raises((TypeError, ValueError, IndexError)):
                    call(*given)
                continue
            check(call(*given), wanted, what, mixed=kind == "uint8")


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_sizes_that_differ_are_those_that_numpy_has(name: str) -> None:
    """An axis of size 1 is repeated where numpy repeats one, and refused where it refuses one."""
    call = operator.attrgetter(name)(NP)
    shapes: list[tuple[int, ...]] = [(), (0,), (1,), (3,), (1, 3), (3, 1), (3, 3), (2, 1, 3)]
    ways: list[dict[str, Any]] = [{}] if name != "tensordot" else [{"axes": 1}, {"axes": ((-1,), (-1,))}]
    for first, second, how in itertools.product(shapes, shapes, ways):
        args, what = [np.ones(first), np.full(second, 2.0)], f"{name}{how} of {first} and {second}"
        try:
            wanted = call(*args, **how)
        except (ValueError, IndexError, TypeError):
            with pytest.raises((TypeError, ValueError, IndexError)):
                pytest.fail(f"{what}: {call(*map(_tensor, args), **how)}")
            continue
        check(call(*map(_tensor, args), **how), wanted, what)


@pytest.mark.parametrize("kind", ["int64", "float64", "complex128"])
def test_vdot_is_of_vectors(kind: str) -> None:
    square = _tensor(np.ones((2, 2), kind))
    for given in ((square, square), (square[0], square), (square, square[0])):
        with pytest.raises(ValueError, match="vdot: a vector is wanted"):
            given[0].vdot(given[1])


def test_the_mask_alone_is_a_tensor() -> None:
    mask = np.array([True, False, True])
    calls: list[Callable[[Any], Any]] = [
        lambda m: NP.sum([1, 2, 3], where=m), lambda m: NP.prod(np.arange(1.0, 4.0), where=m),
    ]  # fmt: skip
    for call in calls:
        check(call(_tensor(mask)), call(mask), "where")


WRONG: list[Callable[[Any], Any]] = [
    lambda v: np.flip(v, 5), lambda v: np.sum(v, axis=9), lambda v: np.concatenate([v, v[0]]), lambda v: np.dot(v, v),
    lambda v: np.rot90(v, axes=(0, 3)), lambda v: np.diff(v, axis=4), lambda v: np.reshape(v, (5, 5, 5)),
    lambda v: np.linalg.inv(v[:2, :3]), lambda v: NP.sum(v, axis="x"),
    lambda v: np.bincount(v[0].astype(int) if isinstance(v, np.ndarray) else v[0].cast("int64").abs(), minlength=-1),
]  # fmt: skip


@pytest.mark.parametrize("call", WRONG)
def test_a_wrong_argument_is_the_error_that_numpy_has(call: Callable[[Any], Any]) -> None:
    x = np.arange(12.0).reshape(3, 4)
    with pytest.raises(Exception) as wanted:
        call(x)
    with pytest.raises(wanted.type):
        call(_tensor(x))
    with pytest.raises((TypeError, ValueError, IndexError)):
        call(Tensor(x, device="NUMPY", requires_grad=True))
