"""numpy's numbers, dtypes, arrays and lists in arguments: each stands for Python's number, our dtype or a tensor."""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinytg as tg
from tg_dtype import dtypes
from tg_frontend import Tensor, nn
from tg_frontend.functions import interp
from tg_frontend.functions.names import _STACKED, names

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128".split()
X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "zeros": lambda i, f: Tensor.zeros(i(2), i(3)),
    "shape": lambda i, f: Tensor.ones((i(2), i(3))),
    "full": lambda i, f: Tensor.full((i(2),), f(0.5)),
    "eye": lambda i, f: Tensor.eye(i(2), i(3)),
    "arange": lambda i, f: Tensor.arange(i(1), i(9), i(2)),
    "arange of floats": lambda i, f: Tensor.arange(f(0.5), f(2.5), f(0.5)),
    "linspace": lambda i, f: Tensor.linspace(f(0.5), i(3), i(4)),
    "reshape": lambda i, f: Tensor(X).reshape(i(4), i(-1)),
    "permute": lambda i, f: Tensor(X).permute(i(2), i(0), i(1)),
    "pad": lambda i, f: Tensor(X).pad(((i(1), i(0)), (i(0), i(2)), (i(0), i(0)))),
    "shrink": lambda i, f: Tensor(X).shrink(((i(0), i(1)), None, (i(1), i(3)))),
    "repeat": lambda i, f: Tensor(X).repeat(i(2), i(1), i(1)),
    "roll": lambda i, f: Tensor(X).roll(i(2), i(1)),
    "sum": lambda i, f: Tensor(X).sum((i(0), i(-1))),
    "split": lambda i, f: Tensor(X).split([i(1), i(2)], dim=i(1))[1],
    "topk": lambda i, f: Tensor(X).topk(i(2), i(1))[0],
    "clip": lambda i, f: Tensor(X).clip(f(1.5), f(7.5)),
    "quantile": lambda i, f: Tensor(X).quantile([f(0.25), f(0.5)], axis=i(0)),
    "unfold": lambda i, f: Tensor(X).unfold(i(2), i(2), i(1)),
    "max_pool1d": lambda i, f: nn.functional.max_pool1d(Tensor(X), i(2), stride=i(1)),
    "hanning": lambda i, f: tg.hanning(i(5)),
    "fft": lambda i, f: tg.fft.rfft(Tensor(X), n=i(8)).abs(),
    "matrix_power": lambda i, f: tg.linalg.matrix_power(Tensor.eye(2) * 2, i(3)),
    "mgrid": lambda i, f: tg.mgrid[i(0) : i(3), f(0.5) : f(2.5)],
    "layer": lambda i, f: nn.Flatten(i(1), i(2))(Tensor(X)),
    "index": lambda i, f: Tensor(X)[i(1), i(0) : i(2)],
}


@pytest.mark.parametrize("name", CALLS)
def test_numbers_of_numpy_are_numbers(name: str) -> None:
    wanted = CALLS[name](int, float)
    for integer, number in ((np.int64, np.float64), (np.int8, np.float32), (lambda v: np.array(v), np.float64)):
        found = CALLS[name](integer, number)
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())


DIGITS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "with a list": lambda f, x, v: f(x, v),
    "beginning with a list": lambda f, x, v: f(v, x),
    "of a list that holds one": lambda f, x, v: f([x, v]),
    "with a list between": lambda f, x, v: f(x, v, x),
    "ending with a list": lambda f, x, v: f(x, x, v),
    "of a list and two": lambda f, x, v: f(v, x, x),
}
ROOMS = {"tinytg": tg, "linalg": tg.linalg, "special": tg.special, "Tensor": Tensor, "numpy": np}
EACH_BY_ITSELF = frozenset("atleast_1d atleast_2d atleast_3d ix_".split())
"""Functions whose arguments do not meet."""


def _with_digits() -> list[str]:
    """Names of functions, with their rooms."""
    offered = {"tinytg": names(), "linalg": tg.linalg.__all__, "special": tg.special.__all__}
    found = []
    for room, home in ROOMS.items():
        for name in offered.get(room, [name for name in dir(home) if not name.startswith("_")]):
            known = getattr(home, name, None)
            callable_ = callable(known) and not isinstance(known, type) and name not in EACH_BY_ITSELF
            if callable_ and name not in ("info", "show_config", "show_runtime", "test", "source"):
                found.append(f"{room}.{name}")
    return found


def _elements(value: Any) -> list[Any]:
    """Those of every tensor in a result, and its numbers."""
    if isinstance(value, (list, tuple)):
        return [part for one in value for part in _elements(one)]
    return [np.asarray(value.detach().numpy())] if isinstance(value, Tensor) else []


def _takes(call: Callable[..., Any], *args: Any) -> bool:
    """Whether a call has a result."""
    try:
        call(*args)
    except Exception:  # numpy refuses in many ways
        return False
    return True


@pytest.mark.drawn(120)
@pytest.mark.parametrize("name", _with_digits())
@pytest.mark.filterwarnings("ignore")
def test_lists_and_numbers_keep_their_digits_beside_float64(name: str) -> None:
    """What a function makes of a list, or a number, is what it makes of a tensor of float64 with the same elements."""
    room, _, last = name.partition(".")
    function = getattr(ROOMS[room], last)
    values = np.random.default_rng().uniform(0.1, 0.9, 3)
    for how, call in DIGITS.items():
        for plain in (sorted(values.tolist()), float(values[1])):
            results = []
            for given in (plain, Tensor(np.array(plain))):
                tg.manual_seed(1)
                try:
                    results.append(_elements(call(function, Tensor(np.sort(1 - values)), given)))
                except AttributeError as error:
                    assert room != "numpy" or not _takes(call, function, np.sort(1 - values), plain), error
                except Exception:  # it takes no lists, or this makes no sense
                    continue
            if len(results) < 2:
                continue
            for found, wanted in zip(*results, strict=False):
                if found.shape == wanted.shape and found.dtype.kind == wanted.dtype.kind:
                    bits = 40 if found.dtype.itemsize > 4 or found.dtype.kind != "f" else 20  # of a default dtype
                    np.testing.assert_allclose(found, wanted, 2.0**-bits, 2.0**-bits, err_msg=f"{how}: {plain}")


@pytest.mark.parametrize("kind", ["longdouble", "clongdouble", "datetime64", "str_", "object_"])
def test_what_python_has_no_number_for_is_refused_or_taken(kind: str) -> None:
    """Arguments are tried again with Python's numbers for numpy's: not for ever with one that stands for itself."""
    number = np.array(1).astype("M8[s]" if kind == "datetime64" else getattr(np, kind))
    calls = [*CALLS.values(), *(lambda _, f, op=op: op(Tensor(X), f(2)) for op in (*OPERATORS, Tensor.pow, Tensor.eq))]
    for given in (number, number[()]):
        for call in calls:
            for parts in ((lambda _: given, float), (int, lambda _: given)):  # noqa: B023
                with contextlib.suppress(TypeError, ValueError, IndexError):
                    call(*parts)
    if kind.endswith("longdouble") and np.dtype(kind).itemsize > np.dtype(complex).itemsize // 2:
        for made in (Tensor, lambda v: Tensor([1.0]) + v, lambda v: Tensor([True]).where(v, 1.0)):
            with pytest.raises(TypeError, match=f"no numpy counterpart of '{np.dtype(kind).name}'"):
                made(number[()])


OPERATORS = (operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
             operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)  # fmt: skip


@pytest.mark.parametrize("kind", ["int8", "uint16", "int64", "float16", "float32", "float64", "bool"])
def test_operators_with_numbers_of_numpy_on_either_side(kind: str) -> None:
    data = np.array([1.0, 2.0, 4.5], np.float32)
    number = np.dtype(kind).type(1 if kind == "bool" else 2)
    for op in OPERATORS:
        for left, right in ((True, False), (False, True)):
            wanted = op(number if left else data, number if right else data)
            found = op(number if left else Tensor(data), number if right else Tensor(data))
            assert isinstance(found, Tensor), (op, left)
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6, err_msg=f"{op} {left}")


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_complex_numbers_of_numpy_on_either_side(kind: str) -> None:
    data, number = np.array([1.0, 2.0], np.float32), np.dtype(kind).type(1 + 2j)
    for op in OPERATORS[:4]:
        np.testing.assert_allclose(op(number, Tensor(data)).numpy(), op(number, data), rtol=1e-6)
        np.testing.assert_allclose(op(Tensor(data), number).numpy(), op(data, number), rtol=1e-6)


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite", "negative", "sqrt", "conj", "square"])
@pytest.mark.parametrize("kind", DTYPES)
def test_a_single_number_of_numpy_is_a_tensor(name: str, kind: str) -> None:
    number = np.dtype(kind).type(1)
    if (kind == "bool" and name in ("negative", "square")) or (kind.startswith("u") and name == "negative"):
        return
    found = getattr(tg, name)(number)
    np.testing.assert_allclose(found.numpy(), getattr(np, name)(number), rtol=1e-3)


@pytest.mark.parametrize("kind", ["float32", "float64", "int32"])
def test_bounds_that_are_nan(kind: str) -> None:
    data, nan = np.array([1, 2]).astype(kind), math.nan
    wide = np.array([nan, 1.5], kind if kind != "int32" else "float64")
    for low, high in ((nan, None), (None, nan), (nan, 3.0), (0.0, nan), (wide, None), (None, wide), (wide, wide)):
        ours = [Tensor(bound) if isinstance(bound, np.ndarray) else bound for bound in (low, high)]
        np.testing.assert_array_equal(Tensor(data).clip(*ours).numpy(), np.clip(data, low, high))


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "nansum", "cumsum", "cumprod"])
def test_reductions_in_a_complex_dtype(name: str) -> None:
    where = {"axis": 0} if name.startswith("cum") else {}
    for data in (np.array([1.0, 2.0], np.float32), np.array([1, 2j], np.complex64)):
        found = getattr(tg, name)(Tensor(data), dtype="complex128", **where)
        wanted = getattr(np, name)(data, dtype="complex128", **where)
        assert found.dtype.name == "complex128"
        np.testing.assert_allclose(found.numpy(), wanted)


def test_an_error_about_a_number_of_numpy_is_that_of_python() -> None:
    for bad in (-2, np.int64(-2)):
        with pytest.raises(ValueError, match=r"Tensor\.zeros: a size cannot be negative, in \(-2,\)"):
            Tensor.zeros(bad)
    with pytest.raises(TypeError, match="sizes and axes are integers, got 2.5"):
        Tensor.zeros(np.float32(2.5))


PLACED: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda d: tg.zeros((2, 3), d),
    "ones": lambda d: tg.ones(3, d),
    "empty": lambda d: tg.empty((2, 3), d),
    "full": lambda d: tg.full((2,), 1, d),
    "array": lambda d: tg.array([0, 1], d),
    "zeros_like": lambda d: tg.zeros_like(Tensor([1, 2]), dtype=d),
    "cast": lambda d: Tensor([0, 1]).cast(d),
    "to": lambda d: Tensor([0, 1]).to(d),
}


@pytest.mark.parametrize("name", DTYPES)
def test_a_dtype_by_every_spelling_and_where_numpy_has_it(name: str) -> None:
    known = np.dtype(name)
    twins = [np.dtype(code) for code in np.typecodes["AllInteger"] if np.dtype(code) == known]  # as longlong of long
    python = [kind for kind in (bool, int, float, complex) if np.dtype(kind) == known]
    for spelled in (known, known.type, name, known.char, known.str, *twins, *python):
        for call, made in PLACED.items():
            assert made(spelled).dtype.name == name, (call, spelled)
    if known.kind != "c":
        assert tg.arange(0, 2, 1, known).dtype.name == name
        assert tg.full_like(Tensor([1, 2]), 1, known).dtype.name == name


def test_a_device_is_no_dtype() -> None:
    assert tg.full((2,), 1, "NUMPY").device == "NUMPY"
    assert tg.zeros_like(Tensor([1]), "NUMPY").device == "NUMPY"
    with pytest.raises(TypeError, match=r"sizes and axes are integers"):
        tg.zeros(2, "NUMPY")


SEVERAL = [([1, 2], [3, 4]), ([[1, 2], [3, 4]], [[5, 6], [7, 8]])]
KINDS: dict[str, Callable[[Any], Any]] = {"lists": lambda v: v, "arrays": np.array, "tensors": Tensor}


@pytest.mark.parametrize("name", sorted(_STACKED))
def test_what_is_joined_may_be_lists_and_arrays(name: str) -> None:
    theirs = getattr(np, {"cat": "concatenate", "concat": "concatenate", "row_stack": "vstack"}.get(name, name))
    for parts in SEVERAL:
        wanted = theirs(parts)
        for first, second in itertools.product(KINDS.values(), repeat=2):
            for given in ([first(parts[0]), second(parts[1])], (first(parts[0]), second(parts[1]))):
                np.testing.assert_array_equal(getattr(tg, name)(given).numpy(), wanted)
    if name not in ("cat", "concat", "concatenate"):
        np.testing.assert_array_equal(getattr(tg, name)([1, 2, 3]).numpy(), theirs([1, 2, 3]))


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_one_by_one_or_in_a_list(kind: str) -> None:
    a, b = (KINDS[kind](v) for v in ([1, 2], [3, 4, 5]))
    for given in ((a, b), ((a, b),), ([a, b],)):
        for found, wanted in zip(tg.meshgrid(*given), np.meshgrid([1, 2], [3, 4, 5], indexing="ij"), strict=True):
            np.testing.assert_array_equal(found.numpy(), wanted)
        assert tg.cartesian_prod(*given).tolist() == [list(p) for p in itertools.product([1, 2], [3, 4, 5])]
        assert tg.block_diag(*given).tolist() == [[1, 2, 0, 0, 0], [0, 0, 3, 4, 5]]


def test_a_list_of_tensors_where_one_is_wanted() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    total = tg.sum([x, x * 2, np.array([1.0, 1.0], np.float32)], 0)
    assert total.tolist() == [4.0, 7.0]
    total.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0, 3.0]
    assert tg.union1d(Tensor([1, 2]), np.int64(3)).tolist() == [1, 2, 3]
    assert tg.prod((np.int64(2), np.int64(3))).item() == 6
    for rows in ((Tensor([1, 0]), Tensor([2, 0])), (np.array([1, 0]), [2, 0]), [[1, 0], [2, 0]]):
        assert tg.ravel_multi_index(rows, (2, 3)).tolist() == [5, 0]
    assert tg.ravel_multi_index((Tensor([1, 0]), 2), (2, 3)).tolist() == [5, 2]


@pytest.mark.filterwarnings("ignore:All-NaN slice")
@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
def test_quantiles_along_several_axes(name: str) -> None:
    data = np.random.default_rng(0).permutation(np.arange(24.0)).reshape(2, 3, 4)
    if name.startswith("nan"):
        data[0, 1, 2] = np.nan
    part = 25 if "cent" in name else 0.25
    for axes in ((0, 1), (-1, 0), (1,), (0, 1, 2), ()):
        for q, keep in ((part, False), ([part, part * 2], True)):
            wanted = getattr(np, name)(data, q, axis=axes, keepdims=keep)
            found = getattr(tg, name)(Tensor(data), q, axis=axes, keepdims=keep)
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found.numpy(), wanted)


def test_a_weighted_quantile_along_several_axes() -> None:
    data = np.random.default_rng(0).permutation(np.arange(24.0)).reshape(2, 3, 4)
    wanted = np.quantile(data, 0.3, axis=(0, 2), weights=data + 1, method="inverted_cdf")
    found = tg.quantile(Tensor(data), 0.3, axis=(0, 2), weights=Tensor(data + 1), method="inverted_cdf")
    np.testing.assert_array_equal(found.numpy(), wanted)
    with pytest.raises(ValueError, match="weights of shape"):
        tg.quantile(Tensor(data), 0.3, axis=(0, 2), weights=Tensor([1.0, 2.0]), method="inverted_cdf")


def test_interpolation_beside_infinities() -> None:
    where = np.array([-np.inf, -1, 0, 0.5, 1, 1.5, 3, np.inf, np.nan])
    pool = (-np.inf, 0.0, 2.5, np.inf, np.nan)
    places = [(0.0, 1.0), (-np.inf, 1.0), (0.0, np.inf), (-np.inf, np.inf)]
    for xp, fp in itertools.product(places, itertools.product(pool, repeat=2)):
        with np.errstate(all="ignore"):
            wanted = np.interp(where, xp, fp)
            parts = np.array([complex(1.0, value) for value in fp])
            both = np.interp(where, xp, parts)
        found = tg.interp(*(Tensor(np.array(v), device="NUMPY") for v in (where, xp, fp)))
        np.testing.assert_array_equal(found.numpy(), wanted, err_msg=f"{xp} {fp}")
        of_both = tg.interp(*(Tensor(np.array(v), device="NUMPY") for v in (where, xp, parts))).numpy()
        np.testing.assert_array_equal(of_both.imag, both.imag, err_msg=f"{xp} {fp}")
    x = Tensor([0.5], requires_grad=True)
    tg.interp(x, Tensor([0.0, 1.0, 2.0]), Tensor([0.0, 10.0, np.inf])).sum().backward()
    assert x.grad is not None and x.grad.item() == 10.0


@pytest.mark.parametrize("edges", [{"prepend": 0}, {"append": 7}, {"prepend": 0.5, "append": [[9], [9]]},
                                   {"n": 0, "prepend": 5}, {"n": 2, "append": 1}])  # fmt: skip
def test_differences_with_numbers_at_the_edge(edges: Any) -> None:
    data = np.array([[1, 2, 4], [3, 5, 9]])
    wanted, found = np.diff(data, **edges), tg.diff(Tensor(data), **edges)
    np.testing.assert_array_equal(found.numpy(), wanted)
    assert (found.dtype.kind == "float") == (wanted.dtype.kind == "f")


PIECES = [([0, 0], [True, False], [1]), ([0, 0], [True, False], [1, 2]), ([0, 0], [[True, False]], [1]),
          (3, True, [4, 0]), ([1.0, 2.0], [[True, False], [True, True]], [5, 6])]  # fmt: skip


@pytest.mark.parametrize("given", PIECES)
def test_conditions_of_pieces(given: Any) -> None:
    np.testing.assert_array_equal(tg.piecewise(*given).numpy(), np.piecewise(*given))


ALONE: dict[str, Callable[[bool], Any]] = {
    "bool": bool, "numpy's bool": np.bool_, "an array": np.array, "a tensor": Tensor,
    "in a tuple": lambda b: (b,), "numpy's in a tuple": lambda b: (np.bool_(b),),
}  # fmt: skip


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize("name", ALONE)
def test_a_single_truth_as_an_index(name: str, truth: bool) -> None:
    data = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    x = Tensor(data)
    np.testing.assert_array_equal(x[ALONE[name](truth)].numpy(), data[truth])
    x[ALONE[name](truth)] = 9
    data[truth] = 9
    np.testing.assert_array_equal(x.numpy(), data)


@pytest.mark.parametrize("make", [bool, np.bool_, np.array, Tensor])
@pytest.mark.parametrize("seed", range(6))
def test_single_truths_among_other_indices_are_masks_of_no_axes(make: Callable[[bool], Any], seed: int) -> None:
    """Reading, writing and the gradient, against numpy; integers as index arrays of one, as numpy takes them there."""
    draw = random.Random(f"truths {seed}")
    for _ in range(8):
        shape = [draw.randint(1, 5) for _ in range(3)]
        data = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
        length, kind = draw.randint(1, 3), draw.choice(["slices", "lists", "mask"])
        terms: list[Any] = [slice(None), slice(draw.randint(0, 1), None), slice(None, None, -1)][: draw.randint(0, 3)]
        if kind == "lists":
            lists = [[draw.randrange(shape[i]) for _ in range(length)] for i in range(len(terms))]
            terms = [draw.choice(pair) for pair in zip(terms, lists, strict=True)]
        elif kind == "mask" and terms:
            terms[0] = [draw.random() < 0.5 for _ in range(shape[0])]
            terms[0][0] = sum(terms[0]) != 1 or terms[0][0]
        if draw.random() < 0.4:
            terms.insert(draw.randint(0, len(terms)), ...)
        if draw.random() < 0.4:
            terms.insert(draw.randint(0, len(terms)), None)
        no_places = kind != "mask" and draw.random() < 0.3 and not any(isinstance(one, list) for one in terms)
        truths = [True, *[not no_places] * draw.randint(1, 2)]
        ours, theirs = list(terms), list(terms)
        for truth in truths:
            place = draw.randint(0, len(ours))
            ours.insert(place, make(truth))
            theirs.insert(place, truth)
        expected = data[tuple(theirs)]
        x = Tensor(data, requires_grad=True)
        part = x[tuple(ours)]
        assert part.shape == expected.shape, (shape, theirs)
        np.testing.assert_array_equal(part.numpy(), expected)
        weight = np.random.default_rng(seed).standard_normal(expected.shape).astype(np.float32)
        (part * Tensor(weight)).sum().backward()
        slope = np.zeros_like(data)
        np.add.at(slope, tuple(theirs), weight)
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-6, atol=1e-6)
        new, held = data.copy(), Tensor(data)
        new[tuple(theirs)] = weight
        held[tuple(ours)] = Tensor(weight)
        np.testing.assert_array_equal(held.numpy(), new)
        into, value = Tensor(data, requires_grad=True) * 1, Tensor(weight, requires_grad=True)
        into[tuple(ours)] = value
        np.testing.assert_array_equal(into.numpy(), new)
        if kind != "lists" and weight.size:  # lists may name a place twice
            (into * into).sum().backward()
            assert value.grad is not None
            np.testing.assert_allclose(value.grad.numpy(), 2 * weight, rtol=1e-6)


def test_tensors_of_no_axes_bound_ranges() -> None:
    draw = random.Random(0)
    for _ in range(12):
        first, last, step = (draw.choice([draw.randint(-7, 9), draw.randint(-28, 36) / 4]) for _ in range(3))
        step = abs(step) + 1 if last > first else -abs(step) - 1
        expected = Tensor.arange(first, last, step)
        found = tg.arange(Tensor(first), Tensor(last), Tensor(step))
        assert found.tolist() == expected.tolist() and found.dtype is expected.dtype
        assert tg.arange(Tensor(last), dtype="float64").tolist() == Tensor.arange(last, dtype="float64").tolist()
    for wrong in (Tensor([1.0]), Tensor(True), Tensor(1j)):
        with pytest.raises(TypeError, match="numbers"):
            tg.arange(wrong)


@pytest.mark.parametrize("name", ["add", "sub", "rsub"])
def test_integers_take_no_float_as_alpha(name: str) -> None:
    draw = random.Random(name)
    for _ in range(6):
        one, other = (draw.choice(["int8", "uint8", "int32", "int64"]) for _ in range(2))
        data, n = [draw.randint(0, 9) for _ in range(draw.randint(1, 7))], draw.randint(1, 5)
        x, y, alpha = Tensor(data, dtype=one), Tensor(n, dtype=other), float(draw.choice([1.1, -0.5, 2.0]))
        for operand in (y, n):
            with pytest.raises(RuntimeError, match=f"{name}: alpha is the float"):
                getattr(x, name)(operand, alpha=alpha)
        factors = {"add": (1, alpha), "sub": (1, -alpha), "rsub": (-alpha, 1)}[name]
        for left, right in ((x.float(), y), (x, float(n)), (x, y.float())):
            found = getattr(left, name)(right, alpha=alpha).numpy()
            np.testing.assert_allclose(found, np.array(data) * factors[0] + n * factors[1], rtol=1e-5, atol=1e-5)
        assert getattr(x.int(), name)(y, alpha=3).dtype in (dtypes.int32, dtypes.int64)


def test_a_buffer_may_want_a_gradient() -> None:
    data = np.random.default_rng(3).standard_normal(7).astype(np.float32)
    x = tg.frombuffer(data.tobytes(), requires_grad=True)
    (x * x).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 2 * data, rtol=1e-6)
    with pytest.raises(TypeError, match="only floats have"):
        tg.frombuffer(data.tobytes(), dtype="int32", requires_grad=True)


def test_tensors_of_nothing_join_along_any_axis() -> None:
    draw = random.Random(1)
    for dim in (0, 1, -1, -3, draw.randint(2, 9)):
        parts = [Tensor.zeros(0, dtype=draw.choice(["float32", "int64"])) for _ in range(draw.randint(1, 4))]
        joined = tg.cat(parts, dim)
        assert joined.shape == (0,)
    with pytest.raises(TypeError, match="dim is an integer"):
        tg.cat([Tensor.zeros(0)] * 2, dim=1.5)
    with pytest.raises(IndexError, match="axis 1 is out of range"):
        tg.cat([Tensor.zeros(0), Tensor.zeros(3)], 1)


def test_integers_beside_truths_take_their_axes_away_as_in_pytorch() -> None:
    data = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    x = Tensor(data)
    assert x[0, True].tolist() == [[0, 1, 2]] and x[..., True, 0].tolist() == [[0], [3]]
    assert x[0, :, True].tolist() == [[0], [1], [2]]  # where numpy puts the axis first
    assert x[False, 1].shape == (0, 3) and x[..., False].shape == (2, 3, 0)
    x[1, True] = Tensor([7, 8, 9])
    x[False, 0] = 5
    assert x.tolist() == [[0, 1, 2], [7, 8, 9]]
    for wrong in ((True, 2), (True, 0, 0, 0), (False, 0, 5)):
        with pytest.raises(IndexError):
            x[wrong]
        with pytest.raises(IndexError):
            x[wrong] = 1
    with pytest.raises(ValueError, match="do not broadcast"):
        x[True, False] = Tensor([[[1.0] * 3] * 2] * 2)
    z = Tensor([1 + 2j, 3 - 1j])
    z[True, 1] = 5j
    assert z[True, True].tolist() == [[1 + 2j, 5j]]


def test_an_axis_of_each_for_tensordot() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(8.0).reshape(4, 2)
    for axes in ((0, 1), (0, -1), ([0], 1), ((0,), (1,))):
        np.testing.assert_array_equal(tg.tensordot(Tensor(a), Tensor(b), axes).numpy(), np.tensordot(a, b, axes))


MATRICES = "eig eigvals eigh eigvalsh svd svdvals qr inv det slogdet pinv cholesky matrix_exp lu lu_factor ldl_factor"


@pytest.mark.parametrize("name", MATRICES.split())
def test_decompositions_keep_their_dtype_beside_another_default(name: str) -> None:
    a = np.random.default_rng(0).random((2, 3, 3)).astype(np.float32)
    symmetric = Tensor(a @ a.swapaxes(1, 2) + np.eye(3, dtype=np.float32), device="NUMPY")
    tg.set_default_dtype(tg.float64)
    try:
        found = getattr(tg.linalg, name)(symmetric)
    finally:
        tg.set_default_dtype(tg.float32)
    for part in found if isinstance(found, tuple) else (found,):
        assert part.dtype.name in ("float32", "complex64", "int32"), name


WITH_A_STATE = ("rand", "manual_seed", "seed", "set_", "normal")
WIDER = {"geomspace", "linspace", "logspace", "frombuffer"}
"""Whose bounds, or whose buffer (from Python 3.12 on), do not say the dtype, as in PyTorch."""


def test_functions_of_one_tensor_keep_its_floats() -> None:
    x, tried = Tensor(np.array([0.25, 0.5, 0.75, 0.5], np.float16), device="NUMPY"), 0
    for name in names():
        function = getattr(tg, name)
        if not callable(function) or isinstance(function, type) or name.startswith(WITH_A_STATE) or name in WIDER:
            continue
        try:
            found = function(x)
        except (TypeError, ValueError, RuntimeError, IndexError):  # takes something else
            continue
        parts = [part for part in (found if isinstance(found, tuple) else (found,)) if isinstance(part, Tensor)]
        assert {part.dtype.name for part in parts if part.dtype.kind == "float"} <= {"float16"}, name
        tried += 1
    assert tried > 150


PAIRS = """add subtract multiply divide floor_divide remainder fmod power maximum minimum fmax fmin arctan2 hypot
    copysign nextafter logaddexp logaddexp2 equal not_equal less less_equal greater greater_equal float_power""".split()
NARROW = "add subtract multiply floor_divide power fmod remainder".split()


@pytest.mark.parametrize("name", PAIRS)
def test_a_number_before_a_tensor_is_one_of_its_dtype(name: str) -> None:
    own = {"equal": "eq", "arctan2": "atan2"}.get(name, name)  # equal is PyTorch's: of all elements
    for data in (np.array([0.1, 2.0]), np.array(0.7), np.array([0.1, 2.0], np.float32)):
        wanted = getattr(np, name)(0.1, data)
        found = getattr(tg, own)(0.1, Tensor(data))
        assert name == "float_power" or found.dtype.name == wanted.dtype.name
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-14 if data.dtype == "float64" else 1e-6)
    if name in NARROW:
        for number, kind in ((300, "uint8"), (-1, "uint16"), (2**40, "int32")):
            for shape in ((2,), ()):
                with pytest.raises(OverflowError, match=f"{number} is no {kind}"):
                    getattr(tg, own)(number, Tensor.ones(shape, dtype=kind))


@pytest.mark.parametrize("kind", ["int8", "int32", "int64"])
def test_signed_integers_compare_exactly_with_uint64(kind: str) -> None:
    signed = np.array([-128, -1, 0, 1, 127] + [2**60, 2**63 - 1, -(2**63)] * (kind == "int64")).astype(kind)
    unsigned = np.array([0, 1, 127, 128, 2**60, 2**60 + 1, 2**63, 2**64 - 1], np.uint64).reshape(-1, 1)
    for op in OPERATORS[-6:]:
        np.testing.assert_array_equal(op(Tensor(signed), Tensor(unsigned)).numpy(), op(signed, unsigned))
        np.testing.assert_array_equal(op(Tensor(unsigned), Tensor(signed)).numpy(), op(unsigned, signed))


def test_spacing_and_sorters() -> None:
    for kind in (np.float16, np.float32, np.float64):
        data = np.array([1.0, -3.0, 0.0, 100.0], kind)
        np.testing.assert_array_equal(np.abs(tg.spacing(Tensor(data)).numpy()), np.abs(np.spacing(data)))
    with pytest.raises(ValueError, match=r"a sorter of shape \(2,\) for a tensor of shape \(3,\)"):
        tg.searchsorted(Tensor([3, 1, 2]), 0, sorter=Tensor([1, 2]))


def test_first_arguments_go_by_the_names_that_numpy_has_for_them() -> None:
    x, held = Tensor(X[0]), [True, False, True]
    assert tg.shape(a=x) == (3, 4) and tg.ndim(a=x) == 2
    np.testing.assert_array_equal(tg.real(val=x).numpy(), X[0])
    np.testing.assert_array_equal(tg.compress(condition=held, a=x, axis=0).numpy(), X[0][[0, 2]])
    np.testing.assert_array_equal(tg.extract(condition=x > 2, arr=x).numpy(), X[0][X[0] > 2])
    assert [one.item() for one in tg.unravel_index(indices=Tensor(5), shape=(2, 3))] == [1, 2]
    conditions = [np.array(True), np.array([False, True])]
    found = tg.select(conditions, [[1, 2], Tensor([[3, 4], [5, 6]])])
    np.testing.assert_array_equal(found.numpy(), np.select(conditions, [[1, 2], np.array([[3, 4], [5, 6]])]))


def test_selections_of_lists() -> None:
    assert tg.select([True], [0], default=[4]).tolist() == [0]
    assert tg.select([[True, False], [True, True]], [[1, 2], [3, 4]]).tolist() == [1, 4]
    with pytest.raises(TypeError, match=r"select: conditions are bools, got a tensor of int32"):
        tg.select([[1, 0]], [[1, 2]])
    assert tg.delete(tg.arange(5), np.array([[0, 1], [2, 1]])).tolist() == [3, 4]
    assert tg.mgrid[0 : 1 : np.complex64(3j)].tolist() == [0.0, 0.5, 1.0]


def test_a_bound_that_is_nan_of_any_kind() -> None:
    x, values = Tensor([1.0, math.nan, -3.0, 5.0]), np.array([1.0, np.nan, -3.0, 5.0], np.float32)
    for bound in (np.float32(np.nan), math.nan, np.array([np.nan, 1, 1, np.nan], np.float32), np.float64(np.nan)):
        np.testing.assert_array_equal(x.clip(bound).numpy(), np.clip(values, bound, None))
        np.testing.assert_array_equal(x.clip(None, bound).numpy(), np.clip(values, None, bound))


INTEGERS = [0, 1, 5, 2**53 + 1, 2**62 + 1, 2**63 - 1]


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_signed_and_unsigned_integers_are_compared_exactly_whatever_holds_them(name: str) -> None:
    signed, unsigned = [*INTEGERS, -1, -(2**63)], [*INTEGERS, 2**63, 2**64 - 1]
    of = getattr(operator, name)
    for a, b in itertools.product(signed, unsigned):
        want = [of(a, b)]
        x, y = Tensor([a], dtype=dtypes.int64), Tensor([b], dtype=dtypes.uint64)
        for left, right in ((x, y), (x, y.numpy()), (x, y[0]), (x[0], y)):
            assert of(left, right).flatten().tolist() == want, (a, b)
        assert of(y, x.numpy()).tolist() == of(y, x[0]).flatten().tolist() == [of(b, a)]


def test_membership_of_signed_and_unsigned_integers() -> None:
    signed, unsigned = [*INTEGERS, -1, -(2**63)], [*INTEGERS[::2], 2**63, 2**64 - 1]
    for mine, others, kind, other in (
        (signed, unsigned, dtypes.int64, dtypes.uint64), (unsigned, signed, dtypes.uint64, dtypes.int64),
    ):  # fmt: skip
        for many in (others, others * 40):
            found = Tensor(mine, dtype=kind).isin(Tensor(many, dtype=other))
            assert found.tolist() == [value in others for value in mine]
            assert Tensor(mine, dtype=kind).isin(Tensor(many, dtype=other), invert=True).tolist() == [
                value not in others for value in mine]


def test_an_integer_of_numpy_that_does_not_fit_is_refused_as_one_of_python_is() -> None:
    x = Tensor([1, 2], dtype=dtypes.int8)
    for value in (300, np.int64(300), np.array(300)):
        for call in (lambda v: x + v, lambda v: x * v, x.maximum, lambda v: x - v):
            with pytest.raises(OverflowError, match="300 is no int8"):
                call(value)
    assert (x + np.int64(3)).tolist() == [4, 5] and (x + np.int64(3)).dtype is dtypes.int8


def test_no_gradient_of_interp_is_lost_beside_a_place_that_is_infinite() -> None:
    for places, want in (([0.0, 1.0, math.inf], ([-0.5, -0.5, 0.0], [0.5, 2.5, 0.0])),):
        xp, fp = (Tensor(v, dtype=dtypes.float64, requires_grad=True) for v in (places, [1.0, 2.0, 4.0]))
        interp(Tensor([0.5, 1.0, 2.0], dtype=dtypes.float64), xp, fp).sum().backward()
        assert xp.grad is not None and fp.grad is not None
        assert (xp.grad.tolist(), fp.grad.tolist()) == want


@pytest.mark.parametrize("name", ["any", "all", "norm", "count_nonzero"])
def test_a_dtype_is_not_swallowed(name: str) -> None:
    for dtype in (complex, "F", dtypes.complex64):
        with pytest.raises(TypeError):
            getattr(Tensor([1.0, 4.0]), name)(dtype=dtype)


def test_an_axis_is_none_of_the_arrays_that_are_joined() -> None:
    x = Tensor([1.0, 2.0])
    for axis in (0, np.int64(0)):
        assert tg.concatenate([x, [3.0]], axis).tolist() == [1, 2, 3]
        assert tg.stack([x, x], axis).shape == (2, 2)


DRAWING: dict[str, Callable[[Any, Any], Any]] = {
    "rand": lambda i, f: Tensor.rand(i(2), i(3)),
    "randint": lambda i, f: Tensor.randint(i(2), i(3), low=i(0), high=i(9)),
    "uniform": lambda i, f: Tensor.uniform(i(3), low=f(0.5), high=f(1.5)),
    "normal_": lambda i, f: Tensor.zeros(4).normal_(f(0.5), f(1.5)),
    "dropout": lambda i, f: Tensor.ones(4).dropout(f(0.5), training=True),
    "bernoulli": lambda i, f: Tensor.ones(4).bernoulli(f(0.5)),
    "multinomial": lambda i, f: Tensor.ones(4).multinomial(i(2)),
    "Linear": lambda i, f: nn.Linear(i(2), i(3)).weight,
    "Conv2d": lambda i, f: nn.Conv2d(i(2), i(4), (i(3), i(3)), groups=i(2)).weight,
    "LSTM": lambda i, f: nn.LSTM(i(2), i(3), i(2)),
    "MultiheadAttention": lambda i, f: nn.MultiheadAttention(i(4), i(2), f(0.5)).in_proj_weight,
    "TransformerEncoderLayer": lambda i, f: nn.TransformerEncoderLayer(i(4), i(2), i(8), f(0.5)).linear1.weight,
    "kaiming_uniform_": lambda i, f: nn.init.kaiming_uniform_(Tensor.zeros(i(2), i(3)), f(0.5)),
}


@pytest.mark.parametrize("name", DRAWING)
def test_nothing_is_drawn_twice_for_numbers_of_numpy(name: str) -> None:
    drawn = []
    for integer, number in ((int, float), (np.int64, np.float32)):
        Tensor.manual_seed(3)
        DRAWING[name](integer, number)
        drawn.append(Tensor.rand(2).tolist())
    assert drawn[0] == drawn[1]


def test_what_is_given_is_called_once_with_numbers_of_numpy() -> None:
    class Broken(nn.Module):
        def forward(self, x: Any) -> Any:
            calls.append(x)
            raise TypeError("no")

    calls: list[Any] = []
    with pytest.raises(TypeError, match="no"):
        nn.Sequential(Broken())(np.float32(1.0))
    assert len(calls) == 1


def test_full_of_one_number_in_a_tensor() -> None:
    five = Tensor(5)
    x = tg.full((2, 2), five)
    x[0, 0] = 7
    assert x.tolist() == [[7, 5], [5, 5]] and five.item() == 5
    assert tg.full((2,), Tensor(2.5), dtype="int8").tolist() == [2, 2]
    with pytest.raises(ValueError, match=r"full: the value is one number, got a tensor of shape \(2,\)"):
        tg.full((2,), Tensor([1, 2]))


@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_cholesky_reads_the_triangle_that_it_gives(kind: str) -> None:
    rng = np.random.default_rng(1)
    a = rng.random((2, 4, 4)).astype(kind) + np.eye(4) * 9
    a = a + 1j * np.tril(a, -1) if kind == "complex128" else a
    for upper in (False, True):
        half = np.triu(a, 1) if upper else np.tril(a, -1)
        whole = half + half.conj().swapaxes(1, 2) + np.real(a) * np.eye(4)
        wanted = np.linalg.cholesky(whole)
        wanted = wanted.conj().swapaxes(1, 2) if upper else wanted
        np.testing.assert_allclose(tg.linalg.cholesky(Tensor(a), upper=upper).numpy(), wanted, atol=1e-12)


@pytest.mark.parametrize("name", sorted(_STACKED))
def test_one_array_is_its_rows_where_several_are_joined(name: str) -> None:
    theirs = getattr(np, {"cat": "concatenate", "concat": "concatenate", "row_stack": "vstack"}.get(name, name))
    for data in (np.arange(6.0).reshape(2, 3), np.arange(24.0).reshape(2, 3, 4)):
        for made in (np.array, Tensor):
            np.testing.assert_array_equal(getattr(tg, name)(made(data)).numpy(), theirs(data))


def test_sums_and_products_of_bools_stay_bools() -> None:
    x, y = Tensor([True, False]), Tensor([True, True])
    assert x.addr(x, y, beta=3, alpha=2).tolist() == [[True, True], [True, False]]
    assert x.addr(x, y, beta=0).dtype is dtypes.bool


def test_an_axis_of_nothing_is_divided() -> None:
    assert Tensor.zeros(4, 0).unflatten(1, (2, 0)).shape == (4, 2, 0)
    with pytest.raises(ValueError, match="unflatten"):
        Tensor.zeros(4, 0).unflatten(1, (0, -1))
