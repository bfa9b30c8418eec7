"""Every function of numpy's namespace that asks a tensor, called with tensors.

What it gives is numpy's own, as a tensor or as what numpy gives that is no array; or an error. It never writes to a
copy in silence, and never gives floats that have lost the gradient of what they were computed from.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor
from tg_lazy import Context

HOMES = {"": np, "linalg.": np.linalg, "fft.": np.fft}
FUNCTIONS = {
    prefix + name: getattr(home, name)
    for prefix, home in HOMES.items()
    for name in dir(home)
    if hasattr(getattr(home, name), "_implementation")
}
UFUNCS = {name: getattr(np, name) for name in dir(np) if isinstance(getattr(np, name), np.ufunc)}

_draw = np.random.default_rng(7)
X = _draw.normal(size=(3, 5)).astype(np.float32)
Y = (_draw.normal(size=(3, 5)) + 3).astype(np.float32)
SQUARE = (np.eye(3) * 4 + _draw.uniform(size=(3, 3))).astype(np.float32)
SYMMETRIC = SQUARE + SQUARE.T
ROW = np.sort(_draw.uniform(0.1, 0.9, size=5)).astype(np.float32)
WHOLE = _draw.integers(0, 3, size=(3, 5)).astype(np.int32)
PLACES = np.array([2, 0, 1])
MASK = WHOLE > 1
COMPLEX = (X + 1j * Y).astype(np.complex64)
BYTES = _draw.integers(0, 255, size=(2, 3)).astype(np.uint8)

POOL: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((X,), {}), ((ROW,), {}), ((SQUARE,), {}), ((WHOLE,), {}), ((PLACES,), {}), ((MASK,), {}), ((COMPLEX,), {}),
    ((BYTES,), {}), ((X,), {"axis": 1}), ((X,), {"axis": 0}), ((X,), {"axis": (0, 1)}),
    ((X,), {"axis": 1, "keepdims": True}), ((X,), {"dtype": "float64"}), ((X,), {"where": MASK, "initial": 1}),
    ((X,), {"where": MASK}), ((X,), {"ddof": 1}), ((X,), {"overwrite_input": True}), ((X,), {"copy": False}),
    ((X, Y), {}), ((ROW, ROW), {}), ((WHOLE, WHOLE), {}), ((SQUARE, SQUARE), {}), ((SQUARE, ROW[:3]), {}),
    ((X, 1), {}), ((X, 2), {"axis": 0}), ((X, 0.4), {}), ((X, (5, 3)), {}), ((X, 0, 1), {}), ((X, (1, 0)), {}),
    ((X, PLACES), {"axis": 0}), ((PLACES, X), {"axis": 0}), ((X, ROW), {}), ((X, "float64"), {}), ((X, (3, 5)), {}),
    (([X, Y],), {}), (((X, Y),), {"axis": 1}), (((X, Y),), {"axis": -1}), (((X, Y),), {"dtype": "float64"}),
    ((X, [1, 2]), {"axis": 0}), ((X, 3), {"axis": 0}), ((X, [1, 3]), {"axis": 1}), ((X, -1, 1), {}), ((X, 0, 0.5), {}),
    ((COMPLEX, COMPLEX), {}), ((COMPLEX,), {"axis": 1}), ((MASK, X), {}), ((MASK, X, Y), {}),
    ((ROW, ROW, 2), {}), ((ROW, 3), {}), ((np.array([1.0, -3.0, 2.0], np.float32),), {}), ((SYMMETRIC,), {}),
    ((np.ones((2, 3, 4, 5), np.float32), np.ones((4, 5, 2), np.float32)), {"axes": 2}),
]  # fmt: skip
"""Arguments that fit many functions; each is tried, and those that numpy refuses are left out."""

CALLS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "apply_along_axis": [((lambda row: row.sum(), 0, X), {})],
    "apply_over_axes": [((np.sum, X, [0]), {})],
    "bincount": [((PLACES, ROW[:3]), {}), ((PLACES,), {"minlength": 5})],
    "choose": [((WHOLE, [X, Y, X]), {}), ((PLACES, [ROW[:3], ROW[:3], ROW[:3]]), {"mode": "clip"})],
    "copyto": [
        ((X, Y), {}), ((X, ROW), {}), ((X, 2), {}), ((X, Y), {"where": MASK}), ((WHOLE, X), {}),
        ((WHOLE, X), {"casting": "unsafe"}), ((X, WHOLE), {}), ((X, COMPLEX), {}), ((COMPLEX, X), {}),
        ((MASK, True), {}), ((X, Y[0, :3]), {}),
    ],
    "put": [
        ((X, [0, 14, -1], [7, 8, 9]), {}), ((X, PLACES, ROW), {}), ((X, 3, 1.5), {}), ((X, 15, 1), {}),
        ((X, [15, 31], 1), {"mode": "wrap"}), ((X, [99, -99], 1), {"mode": "clip"}), ((WHOLE, [1], 2.7), {}),
        ((COMPLEX, [1], 2), {}),
    ],
    "place": [((X, MASK, [1, 2, 3]), {}), ((X, MASK, ROW), {}), ((WHOLE, MASK, [1]), {})],
    "putmask": [((X, MASK, Y), {}), ((X, MASK, [1, 2, 3]), {}), ((WHOLE, MASK, 1), {})],
    "put_along_axis": [
        ((X, np.argsort(X, 1), Y, 1), {}), ((X, PLACES[:, None], 9, 1), {}), ((X, PLACES, ROW[:3], None), {}),
        ((X,), {"indices": PLACES[:, None], "values": Y[:, :1], "axis": 1}),
    ],
    "fill_diagonal": [
        ((SQUARE, 7), {}),
        ((SQUARE, [1, 2, 3]), {}),
        ((SQUARE, ROW), {}),
        ((X.T.copy(), 3), {"wrap": True}),
    ],
    "piecewise": [((ROW, [ROW < 0.5, ROW >= 0.5], [-1, 1]), {})],
    "select": [(([MASK, ~MASK], [X, Y]), {}), (([MASK], [X], 3), {})],
    "insert": [((X, 1, 5, 1), {}), ((X, [1, 2], ROW, 0), {})],
    "delete": [((X, 1, 0), {}), ((X, [1, 2], 1), {})],
    "pad": [((X, 1), {}), ((X, ((1, 2), (0, 1)), "edge"), {}), ((X, 1, "constant"), {"constant_values": 3})],
    "einsum": [(("ij,ij->i", X, Y), {}), (("ij->", X), {}), ((X, [0, 1], [1, 0]), {})],
    "einsum_path": [(("ij,jk->ik", X, Y.T), {})],
    "take_along_axis": [((X, np.argsort(X, 1), 1), {}), ((X, PLACES, None), {})],
    "interp": [((ROW, [0.0, 1.0], [3.0, 4.0]), {}), ((0.5, ROW, ROW), {})],
    "clip": [((X, ROW, 1), {}), ((X,), {"min": 0}), ((X, None, 0.5), {})],
    "full_like": [((X, 3), {}), ((WHOLE, 3), {"dtype": "float64"})],
    "quantile": [
        ((X, [0.1, 0.9], 1), {}),
        ((X, 0.3), {"method": "lower"}),
        ((X, 0.3), {"weights": Y, "method": "inverted_cdf"}),
    ],
    "percentile": [((X, 30), {}), ((X, [10, 90], 0), {})],
    "average": [((X,), {"weights": Y}), ((X, 1), {"weights": ROW}), ((X, 0), {"returned": True})],
    "unwrap": [((X * 9,), {}), ((X,), {"axis": 0})],
    "rollaxis": [((X, 1), {})],
    "unravel_index": [((PLACES, (3, 5)), {})],
    "ravel_multi_index": [(((PLACES, PLACES), (3, 5)), {})],
    "packbits": [((MASK,), {}), ((BYTES,), {})],
    "unpackbits": [((BYTES,), {}), ((BYTES,), {"axis": 1})],
    "gradient": [((X,), {}), ((X, 2.0), {"axis": 1}), ((ROW, ROW), {})],
    "savez": [((io.BytesIO(), X), {})],
    "savez_compressed": [((io.BytesIO(), X), {})],
    "save": [((io.BytesIO(), X), {})],
    "savetxt": [((io.StringIO(), X), {})],
    "lexsort": [(((ROW, ROW),), {}), ((X,), {})],
    "digitize": [((X, ROW), {}), ((ROW, [0.2, 0.5]), {"right": True})],
    "histogram": [((X, 4), {}), ((X, ROW), {}), ((X,), {"range": (0, 1), "weights": Y, "bins": 3})],
    "histogramdd": [((X, (2, 2, 2, 2, 2)), {})],
    "polyfit": [((ROW, ROW * 2, 1), {})],
    "block": [(([[X, Y], [Y, X]],), {})],
    "trim_zeros": [((np.array([0, 1, 2, 0]),), {})],
    "nan_to_num": [
        ((np.array([np.nan, 1, np.inf], np.float32),), {"nan": 3.0}),
        ((np.array([np.nan], np.float32), False), {}),
    ],
    "linalg.multi_dot": [(([SQUARE, SQUARE, ROW[:3]],), {})],
    "linalg.lstsq": [((SQUARE, ROW[:3]), {}), ((X.T.copy(), ROW), {"rcond": None})],
    "linalg.norm": [((X, 1), {}), ((X, "fro", (0, 1)), {}), ((ROW, 3), {}), ((X, 2, 1, True), {})],
    "linalg.cross": [((Y[:, :3], X[:, :3]), {})],
    "linalg.cholesky": [((SYMMETRIC,), {"upper": True})],
    "cross": [((Y[:, :3], X[:, :3]), {}), ((Y[:, :3], X[:, :3], -1, 0, 0), {})],
    "isin": [((WHOLE, [1, 2]), {}), ((WHOLE, PLACES), {"invert": True})],
    "searchsorted": [((ROW, X), {}), ((ROW, 0.5, "right"), {}), ((ROW, X), {"sorter": np.arange(5)})],
    "repeat": [((X, [1, 2, 0], 0), {})],
    "unique": [
        ((WHOLE, True), {}),
        ((WHOLE,), {"return_counts": True, "axis": 0}),
        ((X,), {"return_index": True, "return_inverse": True}),
    ],
    "partition": [((X, 2), {})],
    "cov": [((X, Y), {}), ((X,), {"rowvar": False, "bias": True})],
    "linspace": [((ROW[0], ROW[1], 5), {}), ((X, Y, 4), {"axis": 1})],
    "geomspace": [((ROW, ROW + 1, 4), {})],
    "compress": [((MASK[0], X, 1), {})],
    "extract": [((MASK, X), {})],
    "diff": [((X, 1, 0), {}), ((X, 1, 1, Y[:, :1], Y[:, :2]), {})],
    "ediff1d": [((ROW, 1, 2), {})],
    "resize": [((X, (2, 3)), {})],
    "trace": [((X, 1), {}), ((X, 0, 1, 0), {})],
    "std": [((X, 0), {"mean": X.mean(0, keepdims=True)}), ((X, 1), {"ddof": 2, "keepdims": True})],
    "fft.fft": [((X, 4, 0, "ortho"), {})],
    "fft.fftn": [((X, (2, 2), (0, 1), "forward"), {})],
    "vander": [((ROW, 3), {}), ((ROW, 3, True), {})],
    "dsplit": [((np.ones((2, 2, 4), np.float32), 2), {})],
    "linalg.matrix_power": [((SQUARE, 3), {}), ((SQUARE, -2), {})],
    "linalg.tensorinv": [((np.eye(6, dtype=np.float32).reshape(2, 3, 6) * 2, 2), {})],
}  # fmt: skip
"""Arguments of functions that the pool does not fit, or not all of whose ways it reaches."""

SPARED = {
    "busday_count", "busday_offset", "is_busday", "datetime_as_string", "min_scalar_type", "unstack", "sort_complex",
}  # fmt: skip
"""Functions of dates, or of what is not in a tensor."""
SAY_NOTHING = {"array_repr", "array_str", "array2string"}
"""What the text of a tensor is, is not numpy's text."""
CONSTANT = {
    "zeros_like",
    "ones_like",
    "full_like",
    "empty_like",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "fix",
    "rint",
    "round",
    "around",
}
"""Functions of which no gradient is wanted: it is zero wherever there is one."""
LOOSE = {"empty_like", "shares_memory", "may_share_memory", "linalg.svd", "linalg.qr", "linalg.eig", "linalg.eigh"}
"""Functions whose values are not determined."""
WRAPPING = {"trapezoid"}
"""Functions that add in a narrow dtype in numpy, and wrap around."""


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, (io.BytesIO, io.StringIO)):
        return type(value)()
    if isinstance(value, (list, tuple)):
        return type(value)(map(_copied, value))
    return {key: _copied(part) for key, part in value.items()} if isinstance(value, dict) else value


def _tensors(value: Any, wanting: bool) -> Any:
    if isinstance(value, np.ndarray):
        return Tensor(value, requires_grad=(wanting and value.dtype.kind in "fc") or None)
    if isinstance(value, (list, tuple)):
        return type(value)(_tensors(part, wanting) for part in value)
    return {key: _tensors(part, wanting) for key, part in value.items()} if isinstance(value, dict) else value


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    else:
        yield value


def _plain(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, Tensor) else value


def _same(name: str, got: Any, want: Any, asked: bool) -> None:
    """What was given is what numpy gives, and arrays of numbers are tensors if numpy asked a tensor for them."""
    if isinstance(want, (list, tuple)):
        assert isinstance(got, (list, tuple)), (name, type(got))
        assert len(got) == len(want), (name, len(got), len(want))
        for one, other in zip(got, want, strict=True):
            _same(name, one, other, asked)
        return
    if isinstance(want, (np.ndarray, np.generic)) and want.dtype.kind in "fciub" and want.dtype != np.longdouble:
        assert not asked or isinstance(got, (Tensor, bool, int)), (name, type(got))
        found = _plain(got)
        assert np.shape(found) == want.shape, (name, np.shape(found), want.shape)
        if name in LOOSE:
            return
        assert np.asarray(found).dtype.kind == want.dtype.kind, (name, np.asarray(found).dtype, want.dtype)
        rtol = 2e-4
        if want.dtype == np.float16:  # numpy's choice for narrow integers, where float32 is here
            found, rtol = found.astype(np.float16), 2e-3
        np.testing.assert_allclose(found, np.asarray(want), rtol=rtol, atol=rtol / 10, err_msg=name)
    elif isinstance(want, np.ndarray):
        np.testing.assert_array_equal(got, want)
    elif name not in SAY_NOTHING:
        assert type(_plain(got)) is type(want) or got == want, (name, got, want)


def _attempts(name: str) -> list[tuple[tuple[Any, ...], dict[str, Any], Any, Any]]:
    """Calls that numpy answers, with its answer and what it leaves in the arguments."""
    found = []
    own = CALLS.get(name, [])
    for number, (args, kwargs) in enumerate((*own, *POOL)):
        given = _copied(args), _copied(kwargs)
        try:
            want = FUNCTIONS[name](*given[0], **given[1])
        except Exception:  # numpy says in many ways that arguments do not fit
            if number >= len(own):
                continue
            want = NotImplemented
        found.append((args, kwargs, want, given))
    return found


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), Context(DEV="NUMPY"), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@pytest.mark.drawn(90)
@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - SPARED))
def test_functions(name: str) -> None:
    attempts = _attempts(name)
    assert attempts, f"{name}: no arguments here fit; give it some in CALLS"
    answered = 0
    for args, kwargs, want, left in attempts:
        if name in WRAPPING and isinstance(args[0], np.ndarray) and args[0].dtype.kind in "bu":
            continue
        floats = any(isinstance(x, np.ndarray) and x.dtype.kind in "fc" for x in _leaves([args, kwargs]))
        for wanting in (False, True)[: 1 + floats]:
            given = _tensors(_copied(args), wanting), _tensors(_copied(kwargs), wanting)
            before = _copied(args), _copied(kwargs)
            try:
                got = FUNCTIONS[name](*given[0], **given[1])
            except Exception as error:  # any error is an answer, silence is not
                text = str(error)
                assert text, (name, args, kwargs, error)
                assert "NoneType" not in text and "has no attribute" not in text, (name, text)
                for tensor, old in zip(_leaves(given), _leaves(before), strict=True):
                    if isinstance(tensor, Tensor):
                        np.testing.assert_array_equal(_plain(tensor), old)
                continue
            answered += not wanting
            asked = any(isinstance(value, Tensor) for value in (*given[0], *given[1].values()))
            assert want is not NotImplemented, (name, args, kwargs, "numpy refuses this")
            _same(name, got, want, asked)
            allowed = kwargs.get("overwrite_input")  # numpy does, and what it leaves is not said
            for tensor, after in zip(_leaves(given), _leaves(before if allowed else left), strict=True):
                if isinstance(tensor, Tensor):
                    np.testing.assert_allclose(_plain(tensor), after, rtol=1e-6, err_msg=f"{name}: an argument")
            constant = name in CONSTANT or (name in ("linalg.norm", "where") and args[1:] and isinstance(args[1], int))
            if not constant and any(isinstance(t, Tensor) and t.requires_grad for t in _leaves(given)):
                for part in _leaves(got):
                    if isinstance(part, (Tensor, np.ndarray, np.generic)):
                        kind = (
                            part.dtype.kind
                            if isinstance(part, Tensor)
                            else {"f": "float", "c": "complex"}.get(part.dtype.kind)
                        )
                        assert kind not in ("float", "complex") or getattr(part, "requires_grad", False), (
                            name,
                            "the gradient is lost",
                        )
    assert answered, f"{name}: no arguments are taken"


UFUNC_INPUTS: dict[str, list[np.ndarray]] = {
    "float": [np.clip(X / 4, -0.9, 0.9), np.clip(Y / 4, 0.1, 0.9)],
    "int": [WHOLE, WHOLE + 1],
    "unsigned": [WHOLE.astype(np.uint16), np.full((3, 5), 3, np.uint16)],
    "byte": [_draw.integers(-100, 100, size=(3, 5)).astype(np.int8), np.full((3, 5), 7, np.int8)],
    "bool": [MASK, ~MASK],
    "complex": [COMPLEX, COMPLEX + 1],
}
MATRICES = {"matmul": (SQUARE, SQUARE), "matvec": (SQUARE, ROW[:3]), "vecmat": (ROW[:3], SQUARE), "vecdot": (X, Y)}


def _ways(ufunc: Any, kind: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Ways to call a function, of arrays: a name, and the call."""
    given = UFUNC_INPUTS[kind][: ufunc.nin]
    if ufunc.__name__ in MATRICES:
        given = list(MATRICES[ufunc.__name__])
    if ufunc.__name__ == "ldexp":
        given[1:] = [WHOLE]
    try:
        with_out = ufunc(*given)
    except TypeError:
        yield "", lambda make: ufunc(*map(make, given))
        return
    outs = with_out if isinstance(with_out, tuple) else (with_out,)
    yield "call", lambda make: ufunc(*map(make, given))
    if ufunc.nin == 2:
        yield "an array first", lambda make: ufunc(given[0], make(given[1]))
        if ufunc.signature is None and kind != "bool":
            yield "a number", lambda make: ufunc(make(given[0]), 2)
            yield "a number first", lambda make: ufunc(2, make(given[1]))
    yield "dtype", lambda make: ufunc(*map(make, given), dtype="float64")
    yield "out", lambda make: ufunc(*map(make, given), out=tuple(make(np.zeros_like(part)) for part in outs))
    yield "out, double", lambda make: ufunc(*map(make, given), out=tuple(make(np.zeros(part.shape)) for part in outs))
    yield (
        "out, int",
        lambda make: ufunc(*map(make, given), out=tuple(make(np.zeros(part.shape, np.int16)) for part in outs)),
    )
    yield "out, an array", lambda make: ufunc(*map(make, given), out=tuple(np.zeros_like(part) for part in outs))
    if ufunc.signature is not None:
        return
    yield (
        "where",
        lambda make: ufunc(*map(make, given), where=make(MASK), out=tuple(make(np.zeros_like(part)) for part in outs)),
    )
    yield "where, of arrays", lambda make: ufunc(*given, where=make(MASK), out=tuple(map(np.zeros_like, outs)))
    yield "onto itself", lambda make: [value := make(given[0].copy()), ufunc(value, *map(make, given[1:]), out=value)]
    if ufunc.nin == 1:
        yield "at", lambda make: [value := make(given[0].copy()), ufunc.at(value, [0, 2, 0])]
        return
    yield "at", lambda make: [value := make(given[0].copy()), ufunc.at(value, [0, 2, 0], make(given[1]))]
    for axis in (0, 1, -1, None, (0, 1)):
        yield f"reduce {axis}", lambda make, axis=axis: ufunc.reduce(make(given[0]), axis=axis)
    yield "reduce, initial", lambda make: ufunc.reduce(make(given[0]), 1, None, None, True, 1)
    yield "reduce, dtype", lambda make: ufunc.reduce(make(given[0]), dtype="float64")
    yield "reduce, where", lambda make: ufunc.reduce(make(given[0]), initial=1, where=make(MASK))
    yield "reduce, where, of an array", lambda make: ufunc.reduce(given[0], initial=1, where=make(MASK))
    yield "reduce, out", lambda make: ufunc.reduce(make(given[0]), 1, out=make(np.zeros_like(given[0][:, 0])))
    yield "accumulate", lambda make: ufunc.accumulate(make(given[0]), 1)
    yield "accumulate, out", lambda make: [value := make(given[0].copy()), ufunc.accumulate(value, 1, out=value)]
    yield "reduceat", lambda make: ufunc.reduceat(make(given[0]), [0, 2], axis=1)
    yield "outer", lambda make: ufunc.outer(make(given[0]), make(given[1][0]))
    yield "outer, an array first", lambda make: ufunc.outer(given[0][0], make(given[1][0]))


@pytest.mark.parametrize("kind", sorted(UFUNC_INPUTS))
@pytest.mark.parametrize("name", sorted(UFUNCS))
def test_universal_functions(name: str, kind: str) -> None:
    """Each way of calling a universal function gives numpy's result, also in what it writes into; or an error."""
    for way, call in _ways(UFUNCS[name], kind):
        label = f"{name}, {way}"
        try:
            want = call(lambda array: array)
        except (TypeError, ValueError) as error:
            want = error
        for wanting in (False, True)[: 1 + (kind in ("float", "complex"))]:
            given: list[tuple[Any, Any]] = []

            def made(array: np.ndarray, given: list[Any] = given, wanting: bool = wanting) -> Tensor:
                tensor = Tensor(array, requires_grad=(wanting and array.dtype.kind in "fc") or None)
                given.append((tensor, array.copy()))
                return tensor

            try:
                got = call(made)
            except Exception as error:  # any error is an answer
                assert "NoneType" not in str(error) and "has no attribute" not in str(error), (label, error)
                for tensor, old in given:
                    np.testing.assert_array_equal(_plain(tensor), old, err_msg=label)
                continue
            if kind == "bool" and isinstance(want, Exception):
                continue  # the sign of a bool, say: numpy refuses some of them
            assert not isinstance(want, Exception), (label, "numpy refuses this", want)
            _same(label, got, want, way not in ("out, an array", "where, of arrays"))
            wished = any(isinstance(t, Tensor) and t.requires_grad for t, _ in given)
            if wished and name not in CONSTANT and not way.startswith("at"):
                for part in _leaves(got):
                    kind_of = part.dtype.kind if isinstance(part, Tensor) else ""
                    assert kind_of not in ("float", "complex") or part.requires_grad, (label, "the gradient is lost")
