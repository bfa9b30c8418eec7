"""Special functions beside mpmath's: by how much they are off, their special values, and slopes of slopes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from tg_frontend import Tensor, special

mp: Any = pytest.importorskip("mpmath")
Array = npt.NDArray[Any]
NAN, INF = math.nan, math.inf


class Function(NamedTuple):
    """A function, and where it is tested.

    Attributes:
      call: ours.
      exact: mpmath's.
      ranges: of arguments.
      bound: the greatest error in units in the last place.
      amplitude: of a function that goes through zero often: errors count beside that.
    """

    call: Callable[[Tensor], Tensor]
    exact: Callable[[Any], Any]
    ranges: tuple[tuple[float, float], ...]
    bound: float = 4.0
    amplitude: Callable[[Any], Any] | None = None


def _quantile(p: Any) -> Any:
    root = mp.sqrt(-2 * mp.log(p))
    guess = mp.log(root * 2.5) / root - root if p < 0.01 else mp.sqrt(2) * mp.erfinv(2 * p - 1)
    return mp.findroot(lambda y: mp.log(mp.erfc(-y / mp.sqrt(2)) / 2) - mp.log(p), guess)


def _amplitude(x: Any) -> Any:
    return min(mp.mpf(1), mp.sqrt(2 / (mp.pi * abs(x))))


def _airy_amplitude(x: Any) -> Any:
    return mp.sqrt(1 / (mp.pi * mp.sqrt(-x))) if x < -1 else mp.airyai(x)


_GREAT = ((1e-20, 0.5), (-8, 8), (8, 80))
_SMALL = ((1e-20, 0.1), (0.1, 2), (2, 60))
_WAVES = ((1e-20, 0.1), (0.1, 4), (4, 8), (8, 30), (30, 1e5))
FUNCTIONS = {
    "lgamma": Function(Tensor.lgamma, lambda x: mp.re(mp.loggamma(x)),
                       ((1e-30, 0.5), (0.5, 3), (3, 8), (8, 1e30), (-0.5, -1e-5))),
    "digamma": Function(Tensor.digamma, mp.digamma, ((1e-30, 1), (1, 2.5), (2.5, 8), (8, 1e30))),
    "polygamma 1": Function(lambda x: x.polygamma(1), lambda x: mp.polygamma(1, x),
                            ((1e-3, 10), (10, 1e6), (-30, -1e-5)), 6),
    "polygamma 4": Function(lambda x: x.polygamma(4), lambda x: mp.polygamma(4, x), ((1e-3, 10), (10, 1e3)), 8),
    "zeta": Function(lambda x: special.zeta(x, 1.0), mp.zeta, ((1.1, 3), (3, 30)), 6),
    "zeta 3": Function(lambda q: special.zeta(q.full_like(3.0), q),
                       lambda q: mp.zeta(3, q), ((1e-3, 1), (1, 1e4)), 6),
    "erfinv": Function(Tensor.erfinv, mp.erfinv, ((1e-30, 0.1), (-0.5, 0.5), (0.5, 1), (-1, -0.999))),
    "erfcx": Function(special.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), ((1e-30, 0.1), (-9, 1), (1, 100)), 6),
    "ndtr": Function(special.ndtr, mp.ncdf, ((-12, 1), (1, 9))),
    "log_ndtr": Function(special.log_ndtr, lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2),
                         ((-100, -1), (-1, 1), (1, 9))),
    "ndtri": Function(special.ndtri, _quantile, ((1e-37, 0.1), (0.1, 0.9), (0.9, 0.999))),
    "i0": Function(Tensor.i0, lambda x: mp.besseli(0, x), _GREAT, 5.0),
    "i1": Function(special.i1, lambda x: mp.besseli(1, x), _GREAT),
    "i0e": Function(special.i0e, lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), (*_GREAT, (80, 1e4))),
    "i1e": Function(special.i1e, lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), (*_GREAT, (80, 1e4))),
    "k0": Function(special.modified_bessel_k0, lambda x: mp.besselk(0, x), _SMALL, 12),
    "k1": Function(special.modified_bessel_k1, lambda x: mp.besselk(1, x), _SMALL, 8),
    "k0e": Function(special.scaled_modified_bessel_k0, lambda x: mp.exp(x) * mp.besselk(0, x), _SMALL, 12),
    "k1e": Function(special.scaled_modified_bessel_k1, lambda x: mp.exp(x) * mp.besselk(1, x), _SMALL, 8),
    "j0": Function(special.bessel_j0, lambda x: mp.besselj(0, x), (*_WAVES, (-9, 0)), 6, _amplitude),
    "j1": Function(special.bessel_j1, lambda x: mp.besselj(1, x), (*_WAVES, (-9, 0)), 6, _amplitude),
    "y0": Function(special.bessel_y0, lambda x: mp.bessely(0, x), _WAVES, 6, _amplitude),
    "y1": Function(special.bessel_y1, lambda x: mp.bessely(1, x), _WAVES, 6, _amplitude),
    "spherical_bessel_j0": Function(special.spherical_bessel_j0, mp.sinc, ((1e-20, 0.1), (-5, 5), (5, 1e4))),
    "airy_ai": Function(special.airy_ai, mp.airyai, ((-500, -8), (-8, -2), (-2, 1), (1, 9)), 20, _airy_amplitude),
    "entr": Function(special.entr, lambda x: -x * mp.log(x), ((1e-30, 1), (1, 1e30))),
}  # fmt: skip


def spread(low: float, high: float, count: int, kind: type[Any]) -> Array:
    """Random numbers between two, evenly in their logarithm if these are far apart."""
    rng = np.random.default_rng(2)
    if low > 0 and high > 20 * low:
        return np.exp(rng.uniform(math.log(low), math.log(high), count)).astype(kind)
    return rng.uniform(low, high, count).astype(kind)


def errors(got: Array, wanted: list[Any], scales: list[Any]) -> list[float]:
    """In units in the last place of what is wanted, or of the scale that is greater."""
    return [
        float(abs(mp.mpf(value) - exact) / float(np.spacing(got.dtype.type(max(abs(exact), scale)))))
        for value, exact, scale in zip(got.tolist(), wanted, scales, strict=True)
    ]


@pytest.mark.drawn(3)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_accuracy(name: str, kind: type[Any]) -> None:
    function = FUNCTIONS[name]
    for low, high in function.ranges:
        data = spread(low, high, 61, kind)
        got = function.call(Tensor(data)).numpy()
        with mp.workdps(40):
            scale = function.amplitude or (lambda x: 0)
            points = [mp.mpf(x) for x in data.tolist()]
            off = errors(got, [function.exact(x) for x in points], [scale(x) for x in points])
        place = int(np.argmax(off))
        assert off[place] <= function.bound, f"{name} of {data[place]!r}: {got[place]!r}, off by {off[place]:.1f}"


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_halves_are_computed_in_float32_and_rounded(name: str, kind: str) -> None:
    data = Tensor(spread(1.2, 3.0, 31, np.float32)).cast(kind)
    wide = FUNCTIONS[name].call(data.float())
    assert (FUNCTIONS[name].call(data) == wide.cast(kind)).logical_or(wide.isnan()).all().item()


EDGES = {
    "lgamma": [(0.0, INF), (-0.0, INF), (-1.0, INF), (-1e30, INF), (1.0, 0.0), (2.0, 0.0), (INF, INF), (-INF, INF),
               (1e-40, 92.10340118408203), (3e38, INF)],
    "digamma": [(0.0, -INF), (-0.0, INF), (-1.0, NAN), (-7.0, NAN), (INF, INF), (-INF, NAN)],
    "erfinv": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (-INF, NAN)],
    "erfcx": [(0.0, 1.0), (INF, 0.0), (-INF, INF), (-30.0, INF)],
    "ndtr": [(0.0, 0.5), (INF, 1.0), (-INF, 0.0), (-100.0, 0.0), (1e30, 1.0)],
    "log_ndtr": [(INF, 0.0), (-INF, -INF), (-1e30, -INF), (1e30, 0.0)],
    "ndtri": [(0.0, -INF), (1.0, INF), (0.5, 0.0), (1.5, NAN), (-0.5, NAN)],
    "i0": [(0.0, 1.0), (INF, INF), (-INF, INF), (1e3, INF), (91.0, 1.3892714061e38)],
    "i1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "i0e": [(0.0, 1.0), (INF, 0.0), (-INF, 0.0)],
    "k0": [(0.0, INF), (-0.0, INF), (-1.0, NAN), (INF, 0.0), (-INF, NAN)],
    "k1": [(0.0, INF), (-1.0, NAN), (INF, 0.0), (1e-38, 1e38)],
    "k1e": [(0.0, INF), (-1.0, NAN), (INF, 0.0)],
    "j0": [(0.0, 1.0), (INF, 0.0), (-INF, 0.0), (4.0, -0.39714980986), (8.0, 0.17165080714)],
    "j1": [(0.0, 0.0), (-0.0, -0.0), (INF, 0.0), (5.5, -0.34143821476), (8.0, 0.23463634685)],
    "y0": [(0.0, -INF), (-1.0, NAN), (INF, 0.0), (3.0, 0.37685001001), (5.5, -0.33948059288), (8.0, 0.22352148939)],
    "y1": [(0.0, -INF), (-1.0, NAN), (INF, 0.0), (4.0, 0.39792571056), (8.0, -0.15806046173)],
    "spherical_bessel_j0": [(0.0, 1.0), (INF, 0.0), (-INF, 0.0)],
    "airy_ai": [(0.0, 0.35502805389), (INF, 0.0), (-INF, 0.0), (-2.0, 0.22740742820), (1.0, 0.13529241631),
                (-8.0, -0.05270505036), (-5.0, 0.35076100902), (1e30, 0.0)],
    "entr": [(0.0, 0.0), (1.0, -0.0), (-1.0, -INF), (-INF, -INF), (INF, -INF)],
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
def test_special_values(backend: str, name: str) -> None:
    data = np.array([x for x, _ in EDGES[name]] + [NAN], np.float32)
    wanted = np.array([y for _, y in EDGES[name]] + [NAN], np.float32)
    np.testing.assert_allclose(FUNCTIONS[name].call(Tensor(data)).numpy(), wanted, rtol=1e-5)


def test_poles_and_domains_of_two_numbers() -> None:
    x, y = Tensor([0.0, 0.0, 0.0, 2.0, NAN]), Tensor([-1.0, NAN, INF, -1.0, 0.0])
    np.testing.assert_array_equal(special.xlog1py(x, y).numpy(), [0, NAN, 0, -INF, NAN])
    s, q = Tensor([1.0, 0.5, 2.0, 2.0, 2.5, 3.0]), Tensor([2.0, 2.0, 0.0, -3.0, -0.5, -0.5])
    with mp.workdps(40):
        wanted = [INF, NAN, INF, INF, NAN, float(mp.zeta(3, mp.mpf(-0.5)))]
    np.testing.assert_allclose(special.zeta(s, q).numpy(), wanted, rtol=1e-6)
    assert Tensor([-1.0, -2.0]).polygamma(1).tolist() == [INF, INF]
    assert Tensor([-1.0, -2.0]).polygamma(2).tolist() == [-INF, -INF]


@pytest.mark.drawn(12)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes(name: str) -> None:
    """The first is mpmath's, and the second that of the first."""
    function = FUNCTIONS[name]
    data = np.array([0.35, 0.6, 0.83]) + (1.0 if name == "zeta" else 0.0)
    x = Tensor(data)
    if name == "zeta":  # of the first argument
        with pytest.raises(TypeError, match="zeta: there is no gradient with respect to the first argument"):
            function.call(Tensor(data, requires_grad=True)).sum().backward()
        return
    (slope,) = function.call(x).sum().gradient(x)
    (bend,) = slope.sum().gradient(x)
    with mp.workdps(40):
        wanted = [[float(mp.diff(function.exact, value, order)) for value in data.tolist()] for order in (1, 2)]
    np.testing.assert_allclose(slope.numpy(), wanted[0], rtol=1e-11)
    np.testing.assert_allclose(bend.numpy(), wanted[1], rtol=1e-10)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (1, 1), (7, 5)])
def test_shapes_and_integers(shape: tuple[int, ...]) -> None:
    for function in FUNCTIONS.values():
        assert function.call(Tensor.full(shape, 0.5)).shape == shape
    whole = Tensor.full(shape, 3)
    assert whole.lgamma().dtype.name == "float32" and whole.lgamma().shape == shape
    assert special.xlog1py(Tensor.ones(7, 1), Tensor.ones(5)).shape == (7, 5)


def test_other_names_do_the_same() -> None:
    x = Tensor([0.3, 1.7])
    pairs = [
        (special.gammaln(x), x.lgamma()), (special.psi(x), x.digamma()), (special.expit(x), x.sigmoid()),
        (special.polygamma(2, x), x.polygamma(2)), (special.multigammaln(x + 1, 2), (x + 1).mvlgamma(2)),
    ]  # fmt: skip
    assert all(a.tolist() == b.tolist() for a, b in pairs)


def test_bad_input_is_told_by_its_name() -> None:
    x = Tensor([1.0])
    with pytest.raises(ValueError, match=r"Tensor\.polygamma: the order is 0 or more, got -1"):
        x.polygamma(-1)
    with pytest.raises(TypeError, match=r"special\.polygamma: n is an integer"):
        special.polygamma(1.5, x)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Tensor\.mvlgamma: the dimension is 1 or more, got 0"):
        x.mvlgamma(0)
    with pytest.raises(TypeError, match=r"special\.erfcx"):
        special.erfcx("x")  # type: ignore[type-var]
    with pytest.raises(TypeError, match=r"special\.ndtr\(\) got an unexpected keyword 'axis'"):
        special.ndtr(x, axis=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match=r"special\.zeta: .*\(2,\).*\(3,\)"):
        special.zeta(Tensor.ones(2), Tensor.ones(3))


POLYNOMIALS: dict[str, Callable[[int, Any], Any]] = {
    "chebyshev_polynomial_t": lambda n, t: mp.chebyt(n, t),
    "chebyshev_polynomial_u": lambda n, t: mp.chebyu(n, t),
    "chebyshev_polynomial_v": lambda n, t: mp.cos((n + 0.5) * mp.acos(t)) / mp.cos(mp.acos(t) / 2),
    "chebyshev_polynomial_w": lambda n, t: mp.sin((n + 0.5) * mp.acos(t)) / mp.sin(mp.acos(t) / 2),
    "hermite_polynomial_h": lambda n, t: mp.hermite(n, t),
    "hermite_polynomial_he": lambda n, t: mp.hermite(n, t / mp.sqrt(2)) / mp.sqrt(mp.mpf(2)) ** n,
    "laguerre_polynomial_l": lambda n, t: mp.laguerre(n, 0, t),
    "legendre_polynomial_p": lambda n, t: mp.legendre(n, t),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_orthogonal_polynomials(name: str) -> None:
    function, exact = getattr(special, name), POLYNOMIALS[name]
    data = np.random.default_rng(4).uniform(-0.99, 0.99, 13)
    degrees = np.array([-2, 0, 1, 2, 3, 5, 7, 11, 13, 4, 6, 9, 0])
    with mp.workdps(30):
        table = {
            n: np.array([float(mp.re(exact(n, mp.mpf(t)))) for t in data.tolist()]) if n >= 0 else np.zeros(13)
            for n in sorted(set(degrees.tolist()))
        }
    for n, wanted in table.items():
        np.testing.assert_allclose(function(Tensor(data), n).numpy(), wanted, rtol=1e-11, atol=1e-11)
    mixed = np.array([table[n][place] for place, n in enumerate(degrees.tolist())])
    np.testing.assert_allclose(function(Tensor(data), Tensor(degrees)).numpy(), mixed, rtol=1e-11, atol=1e-11)
    ends = function(Tensor(float(data[3]), dtype="float64"), Tensor(degrees)).numpy()
    np.testing.assert_allclose(ends, [table[n][3] for n in degrees.tolist()], rtol=1e-11, atol=1e-11)
    if name.startswith("chebyshev"):
        moved = getattr(special, f"shifted_{name}")(Tensor((data + 1) / 2), 5)
        np.testing.assert_allclose(moved.numpy(), function(Tensor(data), 5).numpy(), rtol=1e-9, atol=1e-12)
    x = Tensor(data)
    (slope,) = function(x, 6).sum().gradient(x)
    with mp.workdps(30):
        slopes = [float(mp.diff(lambda t: mp.re(exact(6, t)), mp.mpf(t))) for t in data.tolist()]
    np.testing.assert_allclose(slope.numpy(), slopes, rtol=1e-9)
    with pytest.raises(ValueError, match=rf"special\.{name}: degrees up to 1000 are possible, got 1001"):
        function(x, 1001)
    with pytest.raises(TypeError, match=rf"special\.{name}: the degree is a number or a tensor, got 'n'"):
        function(x, "n")


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_incomplete_gamma_functions(kind: type[Any]) -> None:
    rng = np.random.default_rng(5)
    a = np.concatenate([np.exp(rng.uniform(low, low + 3, 23)) for low in (-5, -1, 2, 4)]).astype(kind)
    x = (a * np.exp(rng.normal(0, 0.5, len(a)))).astype(kind)
    lower, upper = (method(Tensor(a), Tensor(x)).numpy() for method in (Tensor.igamma, Tensor.igammac))
    with mp.workdps(30):
        pairs = [(mp.mpf(b), mp.mpf(y)) for b, y in zip(a.tolist(), x.tolist(), strict=True)]
        p, q = (np.array([float(mp.gammainc(b, *ends, regularized=True)) for b, y in pairs for ends in [of(y)]])
                for of in (lambda y: (0, y), lambda y: (y, mp.inf)))  # fmt: skip
    close = 40 * float(np.finfo(kind).eps)
    np.testing.assert_allclose(lower, p, atol=close, rtol=0)
    np.testing.assert_allclose(upper, q, atol=close, rtol=0)
    tail = np.where(x < a - 1, p, 1) > 1e-30
    np.testing.assert_allclose(lower[tail & (x < a - 1)], p[tail & (x < a - 1)], rtol=20 * close)


def test_incomplete_gamma_functions_at_ends() -> None:
    a = Tensor([0.0, 0.0, 1.0, 1.0, INF, INF, -1.0, 1.0, NAN])
    x = Tensor([1.0, 0.0, 0.0, INF, 1.0, INF, 1.0, -1.0, 1.0])
    np.testing.assert_array_equal(a.igamma(x).numpy(), [1, NAN, 0, 1, 0, NAN, NAN, NAN, NAN])
    np.testing.assert_array_equal(special.gammaincc(a, x).numpy(), [0, NAN, 1, 0, 1, NAN, NAN, NAN, NAN])
    assert special.gammainc(Tensor.ones(3, 1), Tensor.ones(2)).shape == (3, 2)
    assert Tensor.ones(0).igamma(1.0).shape == (0,)
    y = Tensor([0.5, 3.0], dtype="float64")
    (slope,) = Tensor([2.0, 2.0], dtype="float64").igamma(y).sum().gradient(y)
    np.testing.assert_allclose(slope.numpy(), y.numpy() * np.exp(-y.numpy()), rtol=1e-13)
    (bend,) = slope.sum().gradient(y)
    np.testing.assert_allclose(bend.numpy(), (1 - y.numpy()) * np.exp(-y.numpy()), rtol=1e-12)
    with pytest.raises(TypeError, match="igamma: there is no gradient with respect to the first argument"):
        Tensor([2.0], requires_grad=True).igamma(1.0).sum().backward()


def test_zeta_of_one_is_infinite_everywhere() -> None:
    assert special.zeta(Tensor([1.0, 1.0, 1.0]), Tensor([0.0, -1.5, 2.0])).tolist() == [float("inf")] * 3
