"""Functions of complex numbers on cuts, at infinities and NaN, and next to the largest and smallest numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tg_frontend import Tensor

EDGES = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 30.0, -30.0, 1e300, -1e300, np.inf, -np.inf, np.nan]
GRID = np.array([complex(a, b) for a in EDGES for b in EDGES])
OF_NUMPY = {
    "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    "exp exp2 sinh cosh tanh sin cos tan asinh acosh atanh asin acos atan sqrt log log2 log10 log1p abs".split(),
)
def test_every_pair_of_places_is_as_numpy_has_it(name: str) -> None:
    """Zeros of both signs, cuts, infinities and NaN: C99's Annex G. Of what stands beside a NaN the sign is open."""
    with np.errstate(all="ignore"):
        want = getattr(np, OF_NUMPY.get(name, name))(GRID)
    got = getattr(Tensor(GRID), name)().numpy()
    for at, g, w in zip(GRID, got, want, strict=True):
        for mine, theirs, beside in ((g.real, w.real, w.imag), (g.imag, w.imag, w.real)):
            if np.isnan(theirs) or np.isinf(theirs):
                mine, theirs = (abs(mine), abs(theirs)) if np.isnan(beside) else (mine, theirs)
                np.testing.assert_array_equal(mine, theirs, str(at))
            else:
                np.testing.assert_allclose(mine, theirs, rtol=1e-9, err_msg=str(at))
                assert mine or np.isnan(at) or np.signbit(mine) == np.signbit(theirs), (at, g, w)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["sqrt", "log", "log2", "log10", "asin", "acos", "atan", "asinh", "acosh", "atanh"])
def test_numbers_next_to_the_largest_are_not_infinite(name: str, dtype: str) -> None:
    large = 0.9 * float(np.finfo(dtype).max)
    edges = [0.0, 1.0, -1.0, large, -large, large / 7]
    z = np.array([complex(a, b) for a in edges for b in edges if large in (abs(a), abs(b)) and abs(a) != abs(b)], dtype)
    want = getattr(np, OF_NUMPY.get(name, name))(z)
    got = getattr(Tensor(z), name)().numpy()
    tolerance = 1e-5 if dtype == "complex64" else 1e-12
    for at, g, w in zip(z, got, want, strict=True):
        np.testing.assert_allclose([g.real, g.imag], [w.real, w.imag], rtol=tolerance, atol=1e-30, err_msg=str(at))


def test_next_to_one_the_slope_of_atanh_is_there() -> None:
    z = Tensor(np.array([1 + 1e-170j, -1 - 3e-170j, 1 - 1e-200j]), requires_grad=True)
    values = z.atanh()
    np.testing.assert_allclose(values.numpy(), np.arctanh(z.numpy()), rtol=1e-14)
    values.imag.sum().backward()
    assert z.grad is not None and np.isfinite(values.detach().numpy()).all()
