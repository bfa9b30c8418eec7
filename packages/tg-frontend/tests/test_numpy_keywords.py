"""Functions that have a name of numpy's take its keywords, too, or a reason is recorded here why they do not.

A keyword is taken if a call with it reaches an argument; words that refuse it do not count. What the keywords do is
compared with numpy, for tensors of random sizes.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, fft, linalg
from tg_frontend.functions.names import named
from tg_frontend.keywords import _Signature
from tg_frontend.spellings import HARMLESS, IGNORED, REFUSED
from tg_lazy import Context

ROOMS: dict[str, tuple[Any, Callable[[str], Any]]] = {
    "": (np, named), "linalg.": (np.linalg, lambda name: getattr(linalg, name)),
    "fft.": (np.fft, lambda name: getattr(fft, name)),
}  # fmt: skip
NOWHERE = {
    "out": "results are not written into another tensor, and words say so",
    "order": "elements are in C's order",
    "subok": "there is one class of tensors",
    "like": "there is one class of tensors",
    "kind": "all sorting is stable, and takes one algorithm",
    "casting": "casts are asked for by a dtype, whatever it is",
    "overwrite_input": "nothing is written into an argument",
    "optimize": "einsum finds its own order",
    "ndmax": "nested lists are numbers to their last depth",
}
"""Keywords that no function takes, each with the reason."""
MEANT = {
    "asanyarray copy": "it is as_tensor(), which copies where it must",
    "histogram_bin_edges weights": "numpy's own result does not depend on them",
    "linspace retstep": "the step is (stop - start) / (num - 1), or / num without the end",
    "meshgrid copy": "results are views that nothing is written into",
    "nan_to_num copy": "the result is always another tensor", "reshape copy": "clone() copies",
    "polyfit full": "the coefficients alone are given", "polyfit cov": "the coefficients alone are given",
    "swapaxes axis2": "PyTorch's names are axis0 and axis1",
    "transpose axes": "it is PyTorch's, of two axes; permute() takes all",
    "typename char": "it is PyTorch's, of any object",
}  # fmt: skip
"""Keywords that one function does not take, each with the reason."""


def keywords(function: Any) -> dict[str, Any]:
    """What a function of numpy's takes by name, with defaults."""
    kinds = inspect.Parameter
    return {
        one.name: one.default for one in inspect.signature(function).parameters.values()
        if one.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    }  # fmt: skip


def both() -> Iterator[tuple[str, Any, Any]]:
    """Functions that have a name of numpy's, with numpy's and ours."""
    for room, (theirs, find) in ROOMS.items():
        for name in sorted(theirs.__all__):
            wanted = getattr(theirs, name)
            if isinstance(wanted, np.ufunc) or inspect.isclass(wanted) or not callable(wanted):
                continue
            try:
                found = find(name)
            except AttributeError:
                continue
            if inspect.isroutine(found):
                yield room + name, wanted, found


def lost(wanted: Any, found: Any) -> list[str]:
    """Keywords of numpy's function that do not reach an argument of ours."""
    function = inspect.unwrap(found)
    bound = inspect.ismethod(found) or function.__qualname__.startswith("Tensor.")
    signature = _Signature(getattr(function, "__func__", function), "tinytg", bound)
    out = []
    for place, (name, default) in enumerate(keywords(wanted).items()):
        args = (None,) if bound and place else ()
        given, taken = signature.translated(args, {name: default})
        reaches = len(given) > len(args) or (bool(taken) and signature.complaint("", taken) is None)
        if not (reaches or name in NOWHERE):
            out.append(name)
    return out


def test_keywords_of_numpy_are_taken() -> None:
    said = {f"{name} {keyword}" for name, wanted, found in both() for keyword in lost(wanted, found)}
    assert said == set(MEANT), (sorted(said - set(MEANT)), sorted(set(MEANT) - said))


def test_what_is_taken_nowhere_is_known() -> None:
    assert {name for name in NOWHERE if name not in HARMLESS and name not in IGNORED and name not in REFUSED} == set()


@pytest.mark.parametrize("name", sorted(set(REFUSED) & set(NOWHERE) - {"out"}))  # which is written: test_outs
def test_what_is_refused_is_refused_in_words(name: str) -> None:
    with pytest.raises(TypeError, match=f"takes no '{name}': "):
        ANY([[1.0]]).sum(**{name: "F"})


RNG = np.random.default_rng(29)
NP: Any = np  # called with what its stubs do not know
ANY: Any = Tensor  # likewise
RANK: Any = linalg.matrix_rank  # likewise


@pytest.fixture(autouse=True)
def _on_numpy() -> Iterator[None]:
    """The keywords are what is tested, on the device that compiles nothing."""
    with Context(DEV="NUMPY"):
        yield


def sizes(axes: int, most: int = 6) -> tuple[int, ...]:
    return tuple(int(n) for n in RNG.integers(1, most, axes))


def same(mine: Any, theirs: Any, rtol: float = 1e-5) -> None:
    if isinstance(theirs, (tuple, list)):
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            same(one, other, rtol)
        return
    array = mine.numpy() if isinstance(mine, Tensor) else np.asarray(mine)
    assert array.shape == np.shape(theirs), (array.shape, np.shape(theirs))
    np.testing.assert_allclose(array, theirs, rtol=rtol, atol=rtol)


def numbers(shape: tuple[int, ...], kind: str) -> Any:
    if kind == "bool":
        return RNG.integers(0, 2, shape).astype(bool)
    whole = RNG.integers(-9, 9, shape)
    if kind[0] in "iu":
        return np.abs(whole).astype(kind) if kind[0] == "u" else whole.astype(kind)
    return ((whole + 1j * RNG.integers(-9, 9, shape)) / 4).astype(kind) if kind[0] == "c" else (whole / 4).astype(kind)


REDUCED = {
    **dict.fromkeys(("sum", "prod", "nansum", "nanprod"), (True, False)),
    **dict.fromkeys(("max", "min", "amax", "amin", "nanmax", "nanmin"), (True, True)),
    **dict.fromkeys(("mean", "std", "var", "nanmean", "nanstd", "nanvar", "any", "all"), (False, False)),
}
"""Reductions: whether they take an initial value, and whether they need one beside a mask."""


@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.filterwarnings("ignore")
def test_reductions_of_what_counts(name: str, kind: str) -> None:
    begins, needs = REDUCED[name]
    if kind == "complex64" and (needs or name.startswith("nan")):
        return
    for axes in RNG.integers(1, 4, 2).tolist():
        shape = sizes(axes)
        x = numbers(shape, kind)
        if name.startswith("nan") and kind[0] == "f":
            x[RNG.integers(0, 4, shape) == 0] = np.nan
        along: Any = (None, int(RNG.integers(-axes, axes)), tuple(range(axes)))[int(RNG.integers(0, 3))]
        for mask in (RNG.integers(0, 2, shape).astype(bool), RNG.integers(0, 2, shape[-1]).astype(bool), np.False_):
            for keepdims in (False, True):
                given: dict[str, Any] = {"axis": along, "keepdims": keepdims}
                given |= {"initial": 1} if needs or (begins and keepdims) else {}
                more = {"correction": 0} if name in ("std", "var") else {}
                with np.errstate(all="ignore"):
                    theirs = getattr(np, name)(x, where=mask, **given)
                ours = Tensor(mask) if mask.ndim else bool(mask)
                mine = named(name)(Tensor(x), where=ours, **given, **more)
                same(mine, theirs)


def test_initial_values_of_nothing_and_of_other_kinds() -> None:
    for name in ("max", "min", "sum", "prod"):
        for kind in ("float32", "int32", "uint8", "bool"):
            x = np.zeros((0, 3), kind)
            same(named(name)(Tensor(x), 0, initial=1), getattr(np, name)(x, 0, initial=1))
    assert Tensor([1, 2]).max(initial=7).dtype.name == "int32"
    wrong: list[Callable[[], Tensor]] = [
        lambda: Tensor([1, 2]).max(initial=0.5), lambda: Tensor([1, 2]).sum(where=Tensor([1, 0])),
        lambda: Tensor([1, 2]).sum(initial="1"),
    ]  # fmt: skip
    for call in wrong:
        with pytest.raises(TypeError, match=r"^Tensor\.\w+: "):
            call()
    with pytest.raises(ValueError, match="give an initial value"):
        Tensor([1, 2]).max(where=Tensor([True, False]))
    with pytest.raises(ValueError, match="does not broadcast to the shape"):
        Tensor([1, 2]).sum(where=Tensor([[True, False], [True, True]]))
    with pytest.raises(OverflowError):
        Tensor([1, 2], dtype="uint8").max(initial=-1)


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanvar", "nanstd", "nancumsum", "nancumprod"])
@pytest.mark.filterwarnings("ignore")
def test_complex_numbers_of_which_a_part_is_nan(name: str) -> None:
    x = numbers(sizes(2), "complex128")
    x[RNG.integers(0, 3, x.shape) == 0] = complex(math.nan, 5)
    x[RNG.integers(0, 4, x.shape) == 0] = complex(3, math.nan)
    x[0, 0] = complex(math.nan, 5)
    ways: list[dict[str, Any]] = [{}, {"axis": 0}, {"axis": -1}]
    if not name.startswith("nancum"):
        ways += [{"axis": 1, "keepdims": True, "where": RNG.integers(0, 2, x.shape).astype(bool)}]
    ways += [{"initial": 3}, {"initial": 2 - 1j, "axis": 0}] if name in ("nansum", "nanprod") else []
    for given in ways:
        ours = {key: Tensor(value) if key == "where" else value for key, value in given.items()}
        ours |= {"correction": 0} if name in ("nanstd", "nanvar") else {}
        same(named(name)(Tensor(x), **ours), getattr(np, name)(x, **given))
    if name not in ("nanstd", "nanvar"):
        assert named(name)(Tensor(x.astype("complex64")), dtype="complex128").dtype.name == "complex128"


def test_variances_beyond_a_dtype_and_of_too_few() -> None:
    for name in ("nanvar", "nanstd"):
        assert named(name)(Tensor([1e30, -1e30])).item() == math.inf
        assert named(name)(Tensor([10**18, -(10**18)] * 2), where=Tensor([True, False, True, True])).item() > 1e17
        x = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, 2.0], [np.nan] * 3])
        for ddof in (0, 1, 2):
            with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
                same(named(name)(Tensor(x), 1, ddof=ddof), getattr(np, name)(x, 1, ddof=ddof))


def test_extremes_of_two_tensors_take_no_keywords_of_axes() -> None:
    x = Tensor([1.0, 2.0])
    wrong: list[dict[str, Any]] = [{"where": x > 1}, {"initial": 9.0}, {"keepdim": True}]
    for name, given in product(("max", "min"), wrong):
        with pytest.raises(TypeError, match="are for an axis"):
            getattr(x, name)(x, **given)


def test_keywords_of_one_meaning_are_taken_once() -> None:
    for order in permutations([("unbiased", True), ("ddof", 0)]):
        with pytest.raises(TypeError, match="twice"):
            ANY([1.0, 2.0]).var(**dict(order))
    with pytest.raises(TypeError, match="twice"):
        ANY([1.0, 2.0]).var(unbiased=True, correction=0)


def test_gradients_of_what_counts() -> None:
    mask = Tensor([True, False, True])
    wanted: list[tuple[Callable[[Tensor], Tensor], list[float]]] = [
        (lambda x: x.sum(where=mask, initial=9.0), [1, 0, 1]), (lambda x: x.prod(where=mask, initial=2.0), [10, 0, 4]),
        (lambda x: x.mean(where=mask), [0.5, 0, 0.5]), (lambda x: x.max(where=mask, initial=0.0), [0, 0, 1]),
        (lambda x: x.max(where=mask, initial=9.0), [0, 0, 0]),
        (lambda x: x.var(where=mask, correction=0), [-1.5, 0, 1.5]),
    ]  # fmt: skip
    for call, slopes in wanted:
        x = Tensor([2.0, math.nan, 5.0], requires_grad=True)
        call(x).backward()
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), slopes)


def test_means_and_dtypes_of_variances() -> None:
    x = RNG.normal(size=sizes(3)).astype(np.float32)
    for axis in (0, 1, (0, 2), None):
        mean = x.mean(axis, keepdims=True)
        for name in ("var", "std"):
            same(named(name)(Tensor(x), axis, ddof=0, mean=Tensor(mean)), getattr(np, name)(x, axis, mean=mean), 1e-4)
            mine = named(name)(Tensor(x), axis, ddof=0, dtype="float64")
            assert mine.dtype.name == "float64"
            same(mine, getattr(np, name)(x, axis, dtype="float64"), 1e-12)
    with pytest.raises(ValueError, match="a mean of shape"):
        Tensor(x).var(0, mean=Tensor([1.0]))


@pytest.mark.parametrize("name", ["cov", "corrcoef"])
def test_covariances(name: str) -> None:
    for _ in range(3):
        m, n = (int(i) for i in RNG.integers(3, 7, 2))
        x, y = RNG.normal(size=(m, n)), RNG.normal(size=(m, n))
        ways: list[dict[str, Any]] = [{}, {"rowvar": False}, {"y": y}, {"y": y, "rowvar": False}]
        for given in ways:
            ours = {key: Tensor(value) if key == "y" else value for key, value in given.items()}
            same(named(name)(Tensor(x), **ours), getattr(np, name)(x, **given))
            if name == "cov":
                for bias, ddof in product((True, False), (None, 0, 1, 2)):
                    for more in ({"bias": bias, "ddof": ddof}, {"ddof": ddof, "bias": bias}, {"bias": bias}):
                        same(named(name)(Tensor(x), **ours, **more), NP.cov(x, **given, **more))
        same(named(name)(Tensor(x[0]), y=Tensor(y[0]), dtype="float32"), getattr(np, name)(x[0], y[0], dtype="float32"))
    with pytest.raises(ValueError, match="observations"):
        Tensor.ones(2, 3).cov(y=Tensor.ones(2, 4))


METHODS = "inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen weibull linear " \
    "median_unbiased normal_unbiased lower higher midpoint nearest"  # fmt: skip


@pytest.mark.drawn(4)
@pytest.mark.parametrize("method", METHODS.split())
@pytest.mark.filterwarnings("ignore")
def test_quantiles_by_every_method(method: str) -> None:
    for n in (1, 2, 3, 8, int(RNG.integers(9, 40))):
        x = RNG.permutation(np.arange(3.0 * n)).reshape(3, n)
        q = [0.0, 0.125, 0.25, 0.5, 0.77, 1.0, float(RNG.uniform())]
        for axis in (0, 1, None):
            for name in ("quantile", "nanquantile"):
                same(named(name)(Tensor(x), q, axis, method=method), getattr(np, name)(x, q, axis, method=method))
                x[0, 0] = np.nan if name == "quantile" else 0.25
    if method == "inverted_cdf":
        w = RNG.integers(0, 4, x.shape).astype(float)
        w[:, 0] = w[0] = 1
        for axis in (0, 1, None):
            for name in ("quantile", "nanquantile"):
                theirs = getattr(np, name)(x, q, axis, method=method, weights=w, keepdims=True)
                same(named(name)(Tensor(x), q, axis, True, method, weights=Tensor(w)), theirs)
            same(named("percentile")(Tensor(x), 40.0, axis, method=method, weights=Tensor(w)),
                 NP.percentile(x, 40.0, axis, method=method, weights=w))  # fmt: skip
        same(ANY(x).quantile(0.5, 1, method=method, weights=Tensor(w[1])),
             NP.quantile(x, 0.5, 1, method=method, weights=w[1]))  # fmt: skip
        same(ANY(x).quantile(0.5, 1, method=method, weights=w[1].tolist()),
             NP.quantile(x, 0.5, 1, method=method, weights=w[1]))  # fmt: skip
    else:
        with pytest.raises(ValueError, match="weights are known to the method"):
            ANY(x).quantile(0.5, method=method, weights=Tensor(x))


def test_weights_are_summed_exactly_and_looked_into() -> None:
    x, q = np.arange(100, dtype=np.float32), [i / 10 for i in range(11)]
    each = np.full(100, 0.1)
    wanted = NP.quantile(x, q, method="inverted_cdf", weights=each)
    for weights in (each, each.tolist(), Tensor(each), Tensor(each).float()):
        same(ANY(x).quantile(q, method="inverted_cdf", weights=weights), wanted)
    assert ANY(x[:4]).quantile(1.0, method="inverted_cdf", weights=Tensor([2.0**24, 1, 1, 1])).item() == 3
    for wrong in ([1.0, -1.0], [0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0]):
        for call in (ANY(x[:2]).quantile, ANY(x[:2]).nanquantile):
            with pytest.raises(ValueError, match="weights are finite"):
                call(0.5, method="inverted_cdf", weights=wrong)
            assert math.isnan(call(0.5, method="inverted_cdf", weights=Tensor(wrong)).item())
    assert math.isnan(ANY([math.nan, 1.0]).nanquantile(0.5, method="inverted_cdf", weights=[1.0, 0.0]).item())


def test_geometric_progressions() -> None:
    whole: list[Any] = [(1, 1000), ([1, 3], [1000, 3000]), (Tensor([1, 3]), Tensor([1000, 3000]))]
    for bounds in whole:
        found = named("geomspace")(*bounds, 4, dtype="int32").reshape(4, -1)
        assert [row[0] for row in found.tolist()] == [1, 10, 100, 1000]
        assert [row[-1] for row in found.tolist()] in ([1, 10, 100, 1000], [3, 30, 300, 3000])
    assert named("geomspace")(1, 2**40, 41, dtype="int64").tolist() == [2**i for i in range(41)]
    same(named("geomspace")(Tensor([3, 7]), 11, 5, dtype="float64"), np.geomspace([3, 7], 11, 5), 1e-14)
    same(named("geomspace")(1e-200, 1e200, 5, dtype="float64"), np.geomspace(1e-200, 1e200, 5), 1e-12)
    for first, last in ((1j, 1000j), (-1, 5 + 0j), (np.array([1j, 2]), np.array([5, 3j]))):
        for end in (True, False):
            ours = (_given(one) for one in (first, last))
            same(named("geomspace")(*ours, 4, endpoint=end, dtype="complex128"),
                 np.geomspace(first, last, 4, endpoint=end))  # fmt: skip
    wrong: list[Any] = [(0.0, 1.0), (-1.0, 1.0), ([1.0, 0.0], [2.0, 2.0]), (np.array([-1.0]), 2.0), (0j, 1.0)]
    for bounds in wrong:
        with pytest.raises(ValueError, match="no multiple leads"):
            named("geomspace")(*bounds, 4)
    assert np.isnan(named("geomspace")(Tensor([0.0, -1.0]), 4.0, 3).numpy()).all()
    with pytest.raises(TypeError, match="complex bounds of float32"):
        named("geomspace")(1j, 2j, dtype="float32")


def test_whole_numbers_of_a_range_without_its_end_are_rounded_down() -> None:
    for first, last, n in ((1, -3, 7), (-7, 5, 9), (-0.5, 4.5, 6), (2, 9, 4)):
        same(Tensor.linspace(first, last, n, dtype="int64", endpoint=False),
             np.linspace(first, last, n, dtype=np.int64, endpoint=False))  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_interpolation_beside_infinite_values() -> None:
    places, at = np.arange(4.0), np.arange(-1, 5, 0.5)
    for values in product((1.0, 3.0, math.inf, -math.inf, math.nan), repeat=4):
        if RNG.integers(0, 12) == 0:
            same(named("interp")(Tensor(at), Tensor(places), Tensor(np.array(values))), np.interp(at, places, values))
    one = [math.inf, 2.0, math.inf, math.inf]
    same(named("interp")(Tensor(at), Tensor(places), Tensor(one)), np.interp(at, places, one))


def test_complex_numbers_in_other_keywords() -> None:
    one, other = np.array([1.0, 2.0]), np.array([3.0, 1j])
    for name, dtype in product(("concatenate", "stack", "hstack", "vstack"), ("complex64", "complex128")):
        for given in ([one, one], [one, other], [other, other]):
            mine = named(name)([Tensor(x) for x in given], dtype=dtype)
            same(mine, getattr(np, name)(given, dtype=dtype))
            assert mine.dtype.name == dtype
    same(ANY.cat([Tensor(one), Tensor([one, one])], None), np.concatenate([one, [one, one]], axis=None))
    with pytest.warns(UserWarning, match="discards"):
        same(Tensor(other).var(dtype="float32", correction=0), np.var(other.real))
    for make in (Tensor([1.0]).new, Tensor([1.0]).new_tensor, Tensor([True]).new_tensor):
        with pytest.raises(TypeError, match="complex numbers into a tensor of"):
            make([1j])


def test_tolerances_for_each_matrix() -> None:
    x = np.array([np.diag([3.0, 0.5]), np.diag([3.0, 1.0])])
    for bound in (np.array([0.1, 0.3]), np.array([0.3, 0.1]), np.array([[0.2, 0.3], [0.5, 0.1]])):
        for given in (bound, Tensor(bound), bound.tolist()):
            for key in ("tol", "rtol"):
                same(RANK(Tensor(x), **{key: given}), NP.linalg.matrix_rank(x, **{key: bound}))
            if bound.ndim == 1:
                same(linalg.pinv(Tensor(x), rcond=given), NP.linalg.pinv(x, rcond=bound))


def test_a_symmetric_matrix_has_a_symmetric_gradient() -> None:
    grads = []
    calls: list[Callable[[Any], Any]] = [
        lambda x: linalg.svd(x, hermitian=True).S, lambda x: linalg.svd(x, True, False, hermitian=True),
    ]  # fmt: skip
    for call in calls:
        x = Tensor([[2.0, 9.0], [1.0, -3.0]], requires_grad=True)
        call(x).sum().backward()
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), x.grad.numpy().T, atol=1e-6)
        grads.append(x.grad.numpy())
    np.testing.assert_allclose(grads[0], grads[1], atol=1e-6)


def test_nothing_is_not_interpolated() -> None:
    for mode in ("nearest", "nearest-exact", "linear"):
        with pytest.raises(ValueError, match="nothing to interpolate"):
            ANY.zeros(1, 1, 0).interpolate(size=4, mode=mode)


def test_cross_products_of_axes() -> None:
    x, y = RNG.normal(size=(3, 4, 2)), RNG.normal(size=(4, 2, 3))
    same(Tensor(x).cross(Tensor(y), axisa=0, axisc=1), np.cross(x, y, axisa=0, axisc=1))
    z = RNG.normal(size=(4, 3, 2))
    same(Tensor(x).cross(Tensor(z), axisa=0, axisb=1, axisc=-2), np.cross(x, z, axisa=0, axisb=1, axisc=-2))
    same(ANY(y).cross(Tensor(y + 1), axis=-1, axisc=0), np.cross(y, y + 1, axis=-1, axisc=0))


def _taken(x: Any, at: Any, axis: int | None, mode: str) -> Any:
    """numpy's elements by a mode; numpy takes no unsigned positions of 64 bits, so they are Python's integers here."""
    size = x.size if axis is None else x.shape[axis]
    places = [int(place) % size if mode == "wrap" else min(max(int(place), 0), size - 1) for place in at.flat]
    return np.take(x, np.array(places).reshape(at.shape), axis)


def test_positions_by_mode() -> None:
    x = RNG.normal(size=sizes(3))
    at = RNG.integers(-50, 50, (2, 3))
    for mode in ("wrap", "clip"):
        for axis in (0, 1, -1, None):
            for kind in ("int64", "int32", "int8", "uint8", "uint16", "uint32", "uint64"):
                same(Tensor(x).take(Tensor(at.astype(kind)), axis, mode=mode), _taken(x, at.astype(kind), axis, mode))
            assert Tensor(x[:0]).take(Tensor(at[:0]), mode=mode).shape == (0, 3)
            assert Tensor(x[:0]).put(Tensor(at[:0]), Tensor(x[:0]), mode=mode).shape == (0, *x.shape[1:])
        wanted = x.copy()
        places = RNG.permutation(x.size)[: min(6, x.size)] + x.size
        np.put(wanted, places if mode == "wrap" else [-3, 9999], -1.0, mode=mode)
        given = Tensor(places if mode == "wrap" else np.array([-3, 9999]))
        same(Tensor(x).put(given, Tensor.full(given.shape, -1.0, dtype="float64"), mode=mode), wanted)
    with pytest.raises(ValueError, match="mode 'what'"):
        Tensor(x).take(Tensor([0]), mode="what")


CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *(("eye", (n, m), {"k": k}) for n, m, k in ((3, 4, 1), (4, 2, -2), (3, 3, 9), (2, 5, -1))),
    *((name, (0.5, 2.0, n), {"endpoint": end}) for name in ("linspace", "logspace", "geomspace") for n in (0, 1, 2, 7)
      for end in (True, False)),
    *((name, (np.array([1.0, 2.0]), np.array([[3.0, 4.0]] * 3), 5), {"axis": axis, "endpoint": end})
      for name in ("linspace", "geomspace") for axis in (0, 1, -1) for end in (True, False)),
    ("concatenate", ([np.ones((2, 3)), np.zeros(4)],), {"axis": None}),
    ("concatenate", ([np.ones((2, 3)), np.zeros((1, 3))],), {"dtype": "float32"}),
    ("stack", ([np.ones(3), np.zeros(3)],), {"axis": 1, "dtype": "float32"}),
    ("hstack", ([np.ones(3), np.zeros(3)],), {"dtype": "float32"}),
    ("vstack", ([np.ones(3), np.zeros(3)],), {"dtype": "float32"}),
    ("array", ([1.0, 2.0],), {"ndmin": 3}), ("array", (np.ones((2, 1)),), {"ndmin": 1}),
    *(("trace", (RNG.normal(size=(3, 4, 5)),), given) for given in
      ({}, {"offset": 1}, {"axis1": 2, "axis2": 0}, {"offset": -1, "axis1": 1, "axis2": 2, "dtype": "float32"})),
    ("angle", (np.array([1j, -1.0, 2 + 2j]),), {"deg": True}), ("angle", (np.array([1.0, -1.0]),), {"deg": True}),
    *(("array_equal", (np.array([np.nan, one]), np.array([np.nan, 1.0])), {"equal_nan": nan})
      for one in (1.0, 2.0) for nan in (True, False)),
    ("array_equal", (np.array([np.nan, 1j]), np.array([np.nan, 1j])), {"equal_nan": True}),
    ("indices", ((2, 3),), {"sparse": True}), ("indices", ((2, 3),), {}),
    ("meshgrid", (np.arange(3), np.arange(4), np.arange(2)), {"sparse": True, "indexing": "xy"}),
    ("meshgrid", (np.arange(3), np.arange(4)), {"sparse": True, "indexing": "ij"}),
    ("intersect1d", (np.array([3, 1, 2, 3]), np.array([5, 3, 1])), {"return_indices": True}),
    ("intersect1d", (np.array([3, 1, 2]), np.array([5, 3, 1])), {"assume_unique": True}),
    ("setdiff1d", (np.array([3, 1, 2, 7]), np.array([5, 3])), {"assume_unique": True}),
    ("setxor1d", (np.array([3, 1, 2]), np.array([5, 3, 1])), {"assume_unique": True}),
    *((name, (np.ones((2, 3), np.float32), *more), {"shape": shape}) for name, more in
      (("zeros_like", ()), ("ones_like", ()), ("full_like", (7,))) for shape in ((4, 1), (), 3)),
    ("zeros_like", (np.ones((2, 3), np.complex64),), {"shape": (4,)}),
    ("full_like", (np.ones((2, 3), np.complex64), 2j), {"shape": (4,)}),
    *(("trim_zeros", (np.pad(np.ones((2, 2)), 2),), {"trim": trim, "axis": axis})
      for trim in ("f", "b", "fb") for axis in (0, -1, (0, 1), None)),
    *((name, (np.array([1.0, np.nan, 3.0], np.float32),), {"dtype": "float64"})
      for name in ("nancumsum", "nancumprod", "nansum", "nanprod", "nanmean", "nanvar", "nanstd")),
    *(("sort", (RNG.normal(size=(3, 4)),), {"axis": None, "kind": "stable"}) for _ in range(1)),
    ("argsort", (RNG.normal(size=(3, 4)),), {"axis": None}),
    ("histogram", (RNG.normal(size=9),), {"bins": 4, "range": (-2.0, 2.0), "weights": np.arange(9.0), "density": True}),
    *(("average", (RNG.normal(size=(3, 4, 5)),), {"axis": axis, "weights": RNG.uniform(size=shape)}) for axis, shape in
      (((0, 2), (3, 5)), ((2, 0), (5, 3)), ((1,), (4,)), (-1, (5,)), (None, (3, 4, 5)))),
    ("average", (RNG.normal(size=(3, 4, 5)),), {"axis": (0, -1)}),
    *(("expand_dims", (np.ones((2, 3)),), {"axis": axis}) for axis in (0, -1, (0, 1), (-1, 0), (1, 3), ())),
    ("corrcoef", (RNG.normal(size=(2, 5)), RNG.normal(size=(2, 5))), {}),
    *((name, args, {}) for name, args in (
        ("bitwise_count", (1023,)), ("fabs", (-1,)), ("modf", (-0.5,)), ("nancumsum", (1,)), ("nanprod", (2.5,)),
        ("polyval", ([3, 0, 1], 5)), ("polyval", (np.array([3.0, 0.5]), 5)), ("unique_values", ([2, 1, 2],)),
        ("matrix_transpose", ([[1, 2], [3, 4]],)), ("ptp", ([1, 5],)), ("percentile", ([1.0, 2.0], 50)),
    )),
    ("trapezoid", ([1.0, 2.0, 4.0],), {"x": [4.0, 6.0, 9.0]}), ("average", ([1.0, 2.0],), {"weights": [1.0, 3.0]}),
    ("linalg.outer", (np.arange(3.0), np.arange(4.0)), {}),
    ("linalg.tensordot", (RNG.normal(size=(2, 3, 4)), RNG.normal(size=(3, 4, 5))), {}),
    ("linalg.tensordot", (RNG.normal(size=(2, 3)), RNG.normal(size=(4, 2))), {"axes": ((0,), (1,))}),
    ("linalg.trace", (RNG.normal(size=(2, 3, 4)),), {"offset": 1, "dtype": "float32"}),
    ("linalg.matrix_transpose", (RNG.normal(size=(2, 3, 4)),), {}),
    *(("linalg.matrix_rank", (np.diag([3.0, 1.0, 0.01]),), given) for given in
      ({"tol": 0.1}, {"tol": 0.0}, {"rtol": 0.5}, {"hermitian": True}, {"tol": 2.0, "hermitian": True})),
    *(("linalg.matrix_rank", (np.diag([3.0, 1.0, 0.01]),), {key: np.array([[0.1, 0.5]])}) for key in ("tol", "rtol")),
    ("linalg.pinv", (np.diag([3.0, 1.0, 0.01]),), {"rcond": 0.1}),
    ("linalg.pinv", (np.diag([3.0, 1.0, 0.01]),), {"rtol": 0.4, "hermitian": True}),
    ("linalg.svd", (RNG.normal(size=(3, 2)),), {"compute_uv": False}),
    ("linalg.svd", (np.array([[2.0, 9.0], [1.0, -3.0]]),), {"compute_uv": False, "hermitian": True}),
]  # fmt: skip
"""Calls with keywords of numpy's, which give what numpy gives."""


def _given(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return Tensor(value)
    return [_given(one) for one in value] if isinstance(value, list) and isinstance(value[0], np.ndarray) else value


@pytest.mark.parametrize("case", CALLS, ids=lambda case: case[0])
@pytest.mark.filterwarnings("ignore")
def test_beside_numpy(case: tuple[str, tuple[Any, ...], dict[str, Any]]) -> None:
    name, args, given = case
    room, _, last = name.rpartition(".")
    theirs = getattr(getattr(np, room) if room else np, last)(*args, **given)
    ours = getattr(linalg, last) if room else named(last)
    kinds = {"dtype": "float64"} if last in ("eye", "linspace", "logspace", "geomspace") else {}
    mine = ours(*map(_given, args), **{key: _given(value) for key, value in given.items()}, **kinds)
    if last in ("sort", "argsort"):
        mine = mine[0] if last == "sort" else mine
    same(mine, theirs)
    if isinstance(mine, Tensor) and "dtype" in given:
        assert mine.dtype.name == given["dtype"]
