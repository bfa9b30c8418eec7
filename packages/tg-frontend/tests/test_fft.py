"""Fourier transforms against numpy, by their definition, and by finite differences."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, fft, vmap
from tg_frontend.fourier.passes import factors, good_length, kernels
from tg_frontend.fourier.tables import roots
from tg_lazy import Context, schedule
from tg_lazy.cost import LIMITS, limits_of
from tg_runtime import Device

chosen = random.Random(15)
rng = np.random.default_rng(15)
SIZES = sorted({*range(1, 17), 22, 26, 34, 67, 74, 101, *(chosen.randrange(18, 400) for _ in range(6))})
SMALL = (1, 2, 3, 4, 5, 6, 8, 10)


def drawn(*shape: int) -> Any:
    """Complex normal numbers."""
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def same(ours: Tensor, theirs: Any, tolerance: float = 1e-14) -> None:
    """Asserts that a result is numpy's."""
    assert ours.shape == theirs.shape and ours.numpy().dtype == theirs.dtype
    if theirs.size:
        assert np.abs(ours.numpy() - theirs).max() <= tolerance * max(np.abs(theirs).max(), 1e-300)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("n", SIZES)
def test_complex_transforms_of_every_length(n: int) -> None:
    z = drawn(3, n)
    same(fft.fft(Tensor(z)), np.fft.fft(z))
    same(fft.ifft(Tensor(z)), np.fft.ifft(z))


@pytest.fixture
def keep_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """From when it is called, intermediates of that many bytes stay in kernels of rows."""
    if "CPU" not in Device.available():
        pytest.skip("the device CPU is not available here")
    with Context(DEV="CPU"):
        Tensor([1.0]).realize()  # the device is open, and has its limits
        yield lambda nbytes: monkeypatch.setitem(LIMITS, "CPU", limits_of("CPU")._replace(row_bytes=nbytes))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("n", (64, 60, 2 ** chosen.randrange(7, 10), 2 ** chosen.randrange(3, 7) * 3))
def test_rows_whose_passes_share_a_kernel(keep_rows: Callable[[int], None], n: int) -> None:
    """All of them, or those that read rows as they lie; the inverse as well, and along an axis that is not the last."""
    rows, inner = chosen.randrange(17, 40), chosen.choice((1, 2, 3, 8))
    keep_rows(rows * n * inner * 16)
    z = drawn(rows, n, inner)
    same(fft.fft(Tensor(z), dim=1), np.fft.fft(z, axis=1))
    same(fft.ifft(Tensor(z), dim=1), np.fft.ifft(z, axis=1))
    same(fft.fft2(Tensor(z[:, :, 0])), np.fft.fft2(z[:, :, 0]))


def test_the_passes_of_rows_are_one_kernel(keep_rows: Callable[[int], None]) -> None:
    keep_rows(1 << 17)
    for transform in (fft.fft, fft.ifft):
        out = transform(Tensor(drawn(67, 256)).realize())
        items, _ = schedule([part.lazydata for part in (out.real, out.imag)])
        assert [sum(arg.internal for arg in item.ast.arg) for item in items] == [len(factors(256)) - 1]


LARGE = [(1 << 14, 1), (1024, 16), (32, 300), (64, 1009), (32 * 9, 37), (2 ** chosen.randrange(7, 14), 84)]


@pytest.mark.drawn(4)
@pytest.mark.parametrize(("n", "inner"), LARGE)
def test_passes_through_memory_in_blocks(keep_rows: Callable[[int], None], n: int, inner: int) -> None:
    """Two radices at a time, of as many numbers beside one another as a block has, or one where they are few."""
    keep_rows(1 << 17)
    rows = chosen.choice((1, 2, 3))
    z = drawn(rows, n, inner)
    same(fft.fft(Tensor(z), dim=1), np.fft.fft(z, axis=1))
    same(fft.ifft(Tensor(z), dim=1), np.fft.ifft(z, axis=1))
    narrow = z.astype("complex64")
    same(fft.fft(Tensor(narrow), dim=1), np.fft.fft(z, axis=1).astype("complex64"), 1e-6)


@pytest.mark.parametrize(
    ("shape", "count"), [((1, 1024, 64), 2), ((3, 4096, 16), 2), ((1, 1 << 14, 1), 3), ((2, 96, 128), 2)]
)
def test_two_passes_through_memory_are_one_kernel(
    keep_rows: Callable[[int], None], shape: tuple[int, ...], count: int
) -> None:
    keep_rows(1 << 17)
    assert len(kernels(factors(shape[1]), True)) == count
    out = fft.fft(Tensor(drawn(*shape)).realize(), dim=1)
    items, _ = schedule([part.lazydata for part in (out.real, out.imag)])
    assert len(items) == count


@pytest.mark.parametrize("bits", range(1, 41))
def test_the_radices_of_kernels(bits: int) -> None:
    """They multiply to the length, each is one of a butterfly, and a kernel has at most two, of 64 rows."""
    found = kernels(factors(9 << bits), True)
    assert prod(prod(group) for group in found) == 9 << bits
    assert all(len(group) <= 2 and prod(group) <= 64 and max(group) <= 16 for group in found)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("n", SMALL)
def test_real_transforms(n: int) -> None:
    z = drawn(2, n, 3)
    x = z.real.copy()
    same(fft.fft(Tensor(x), dim=1), np.fft.fft(x, axis=1))
    same(fft.rfft(Tensor(x), dim=1), np.fft.rfft(x, axis=1))
    same(fft.ihfft(Tensor(x), dim=1), np.fft.ihfft(x, axis=1))
    for m in {n, n + 1, max(1, n - 1), 2 * n}:
        same(fft.irfft(Tensor(z), m, 1), np.fft.irfft(z, m, 1))
        same(fft.irfft(Tensor(x), m, 1), np.fft.irfft(x, m, 1))
        same(fft.hfft(Tensor(z), m, 1), np.fft.hfft(z, m, 1))
    if n > 1:
        same(fft.irfft(Tensor(z), dim=1), np.fft.irfft(z, axis=1))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
def test_norms_and_lengths(norm: Any) -> None:
    z = drawn(2, 6)
    x = z.real.copy()
    for n in (None, 4, 9):
        for name in ("fft", "ifft", "irfft", "hfft"):
            same(getattr(fft, name)(Tensor(z), n=n, norm=norm), getattr(np.fft, name)(z, n=n, norm=norm))
        for name in ("rfft", "ihfft"):
            same(getattr(fft, name)(Tensor(x), n=n, norm=norm), getattr(np.fft, name)(x, n=n, norm=norm))
    for name in ("fft2", "ifft2", "irfft2", "fftn", "ifftn", "irfftn"):
        same(getattr(fft, name)(Tensor(z), norm=norm), getattr(np.fft, name)(z, norm=norm))
    for name in ("rfft2", "rfftn"):
        same(getattr(fft, name)(Tensor(x), norm=norm), getattr(np.fft, name)(x, norm=norm))


def test_several_axes() -> None:
    z = drawn(3, 4, 5)
    x = z.real.copy()
    for axes in ((0, 1), (2, 0), (-1,), (0, 1, 2)):
        for name in ("fftn", "ifftn", "irfftn"):
            same(getattr(fft, name)(Tensor(z), dim=axes), getattr(np.fft, name)(z, axes=axes))
        same(fft.rfftn(Tensor(x), dim=axes), np.fft.rfftn(x, axes=axes))
    same(fft.fftn(Tensor(z), s=(2, 7)), np.fft.fftn(z, s=(2, 7), axes=(-2, -1)))
    same(fft.fftn(Tensor(z), s=(2, -1), dim=(0, 2)), np.fft.fftn(z, s=(2, 5), axes=(0, 2)))
    same(fft.irfftn(Tensor(z), s=(4, 7), dim=(1, 2)), np.fft.irfftn(z, s=(4, 7), axes=(1, 2)))
    same(fft.fft2(Tensor(z), dim=(0, 2)), np.fft.fft2(z, axes=(0, 2)))
    scipy = pytest.importorskip("scipy.fft")
    same(fft.hfftn(Tensor(z)), scipy.hfftn(z))
    same(fft.hfft2(Tensor(z), norm="ortho"), scipy.hfft2(z, norm="ortho"))
    same(fft.ihfftn(Tensor(x)), scipy.ihfftn(x))
    same(fft.ihfft2(Tensor(x)), scipy.ihfft2(x))


def test_frequencies_and_order() -> None:
    for n in (1, 2, 5, 8):
        same(fft.fftfreq(n, 0.3, dtype="float64"), np.fft.fftfreq(n, 0.3))
        same(fft.rfftfreq(n, 0.3, dtype="float64"), np.fft.rfftfreq(n, 0.3))
        x = rng.standard_normal((n, 3))
        for axes in (None, 0, (0, 1)):
            same(fft.fftshift(Tensor(x), axes), np.fft.fftshift(x, axes))
            same(fft.ifftshift(Tensor(x), axes), np.fft.ifftshift(x, axes))
    z = drawn(4)
    same(fft.fftshift(Tensor(z)), np.fft.fftshift(z))
    assert fft.fftfreq(4).dtype.name == "float32" and fft.fftfreq(4, requires_grad=True).requires_grad


def test_kinds_of_numbers() -> None:
    kinds = {**dict.fromkeys(("float16", "bfloat16", "float32", "int32", "bool", "complex64"), "complex64"),
             "float64": "complex128"}  # fmt: skip
    for kind, out in kinds.items():
        found = fft.fft(Tensor([1, 0, 1, 1, 0]).cast(kind))
        assert found.dtype.name == out
        np.testing.assert_allclose(found.numpy(), np.fft.fft([1, 0, 1, 1, 0]), atol=1e-6)
        if "complex" not in kind:
            assert fft.irfft(fft.rfft(Tensor([1, 0, 1, 1]).cast(kind))).numpy().round().tolist() == [1, 0, 1, 1]


def test_nothing_to_transform_along_other_axes() -> None:
    assert fft.fft(Tensor.zeros(0, 3)).shape == (0, 3) and fft.rfft(Tensor.zeros(0, 6)).shape == (0, 4)
    assert fft.irfft(Tensor.zeros(0, 3)).shape == (0, 4) and fft.fft(Tensor.zeros(0), n=3).tolist() == [0, 0, 0]
    assert fft.fftn(Tensor([[1.0]]), dim=()).tolist() == [[1]]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("n", [4096, 6561, 8191, 2 * 4099])
def test_errors_grow_as_numpys(n: int) -> None:
    z = drawn(n)
    exact = np.fft.fft(z.astype(np.clongdouble)) if np.finfo(np.longdouble).nmant > 60 else np.fft.fft(z)

    def rms(found: Any) -> float:
        return float(np.sqrt(np.mean(np.abs(found - exact) ** 2) / np.mean(np.abs(exact) ** 2)))

    bound = (20 if factors(n)[-1] > 61 else 3) * 1.1e-16 * np.log2(n) ** 0.5
    assert rms(fft.fft(Tensor(z)).numpy()) < bound
    assert rms(fft.fft(Tensor(z.astype("complex64"))).numpy()) < bound * 2**29 * 1.5


def test_roots_are_right_to_an_ulp() -> None:
    n = chosen.choice([7, 96, 1000, 10007])
    cos, sin = roots(Tensor, Tensor.arange(n, dtype="int64", device="CPU"), n)
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(40):
        for k in range(0, n, max(1, n // 50)):
            angle = 2 * mpmath.mpf(k) / n
            assert abs(cos[k].item() - mpmath.cospi(angle)) < 1.5e-16
            assert abs(sin[k].item() + mpmath.sinpi(angle)) < 1.5e-16


def test_factors() -> None:
    for n in (1, 2, 8, 360, 17, 2 * 67, 61 * 61, 100003, chosen.randrange(1, 10**6)):
        found = factors(n)
        assert np.prod([*found, 1]) == n
        assert all(f in (4, 8, 16) or all(f % d for d in range(2, int(f**0.5) + 1)) for f in found)
    for least in (1, 2, 3, 17, 1000, chosen.randrange(1, 10**6)):
        long = good_length(least)
        assert least <= long < max(2 * least, 2) and set(factors(long)) <= {2, 3, 4, 5, 8, 16}


CASES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], bool]] = {
    "fft": (fft.fft, (6,), False),
    "fft of real": (fft.fft, (5,), True),
    "prime": (lambda x: fft.fft(x, n=67), (9,), False),
    "ifft": (lambda x: fft.ifft(x, n=4, norm="ortho"), (6,), False),
    "rfft": (fft.rfft, (8,), True),
    "rfft odd": (fft.rfft, (7,), True),
    "irfft": (fft.irfft, (5,), False),
    "irfft odd": (lambda x: fft.irfft(x, 7), (4,), False),
    "hfft": (fft.hfft, (3,), False),
    "ihfft": (fft.ihfft, (6,), True),
    "fft2": (fft.fft2, (3, 4), False),
    "irfftn": (lambda x: fft.irfftn(x, s=(3, 6)), (3, 4), False),
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", CASES)
def test_first_and_second_gradients(name: str) -> None:
    function, shape, real = CASES[name]
    x = drawn(*shape)
    x = x.real.copy() if real else x
    weight = Tensor(drawn(*function(Tensor(x)).shape))

    def number(z: Any) -> Any:
        out = function(z)
        return (out * weight).abs().square().square().sum() * 1e-2

    def slope(z: Any) -> Any:
        return number(z).gradient(z)[0]

    z = Tensor(x)
    ways = drawn(*shape).real if real else drawn(*shape)
    found = slope(z)
    along = (found * Tensor(ways).conj()).real.sum()
    second, found = along.gradient(z)[0].numpy(), found.numpy()
    step = 1e-4
    for _ in range(2):
        way = drawn(*shape).real if real else drawn(*shape)
        up, down = Tensor(x + step * way), Tensor(x - step * way)
        rise = (number(up).item() - number(down).item()) / (2 * step)
        assert (found * way.conj()).real.sum() == pytest.approx(rise, rel=1e-5, abs=1e-5)
        bend = (((slope(up).numpy() - slope(down).numpy()) * ways.conj()).real.sum()) / (2 * step)
        assert (second * way.conj()).real.sum() == pytest.approx(bend, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("inner", [1, 3])
def test_butterflies_of_every_size_in_both_dtypes(inner: int) -> None:
    for bits in range(1, 11):
        n, count = 1 << bits, chosen.randrange(1, 4)
        z = drawn(count, n, inner)
        same(fft.fft(Tensor(z), dim=1), np.fft.fft(z, axis=1))
        narrow = fft.ifft(Tensor(z.astype("complex64")), dim=1).numpy()
        assert np.abs(narrow - np.fft.ifft(z, axis=1)).max() <= 1e-6 * np.abs(z).max()


def test_a_pass_is_a_kernel_in_which_nothing_is_computed_twice() -> None:
    """A butterfly of 8 has 3 sums for each of its 16 parts, a product with a root of 8 for 4 of them, 6 for a root."""
    kernels = fft.fft(Tensor(drawn(64, 512).astype("complex64")).realize()).schedule()
    assert len(kernels) == 3
    z: Any = Tensor(drawn(2, 4096)).realize()
    assert len(fft.fft(z).schedule()) == len(fft.ifft(z).schedule()) == 4
    assert len(fft.fft((z * 2).exp()).schedule()) <= 5
    both = TinyJit(lambda x: fft.fft(x).realize())
    for _ in range(3):
        out = both(z)
    assert out.real.lazydata.storage is out.imag.lazydata.storage, "both parts are as they were written"
    out.real.assign(out.real * 0).realize()
    assert not out.numpy().real.any() and out.numpy().imag.any()
    same(both(z), np.fft.fft(z.numpy()))


def test_no_infinity_or_nan_is_lost() -> None:
    for bad in (np.inf, np.nan):
        x = rng.standard_normal((2, 48))
        x[1, chosen.randrange(48)] = bad
        found = fft.fft(Tensor(x)).numpy()
        assert not np.isfinite(found.real[1]).any() and np.isfinite(found[0]).all()


def test_the_gradient_is_one_transform() -> None:
    z: Any = Tensor(drawn(4096), requires_grad=True)
    forward = len(fft.fft(z.detach()).schedule())
    (fft.fft(z) * Tensor(drawn(4096))).real.sum().backward()
    assert len(z.grad.schedule()) <= forward + 1


def test_in_transforms_of_functions() -> None:
    z = drawn(3, 8)
    same(vmap(lambda row: fft.fft(row))(Tensor(z)), np.fft.fft(z))
    jitted = TinyJit(lambda x: fft.rfft(x).realize())
    for _ in range(4):
        x = rng.standard_normal(12)
        same(jitted(Tensor(x).realize()), np.fft.rfft(x))


@pytest.mark.parametrize("device", ["NUMPY"])
def test_on_other_devices(device: str) -> None:
    z = drawn(2, 12)
    same(fft.fft(Tensor(z, device=device)), np.fft.fft(z))
    w = drawn(3, 64)
    same(fft.fft(Tensor(w, device=device)), np.fft.fft(w))
    same(fft.fft(Tensor(z[:, :7], device=device), n=131), np.fft.fft(z[:, :7], n=131))


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "axis": (lambda: fft.fft(Tensor([1.0]), dim=1), IndexError, r"fft\.fft: axis 1 is out of range"),
    "no axis": (lambda: fft.ifft(Tensor(1.0)), ValueError, r"fft\.ifft: a tensor of shape \(\) has no axis"),
    "no numbers": (lambda: fft.rfft(Tensor([1.0]), n=0), ValueError, r"fft\.rfft: 0 numbers cannot be transformed"),
    "empty": (lambda: fft.fft(Tensor([])), ValueError, r"fft\.fft: 0 numbers"),
    "too few": (lambda: fft.irfft(Tensor([1.0])), ValueError, r"fft\.irfft: 0 numbers"),
    "n": (lambda: fft.fft(Tensor([1.0]), n=2.5), TypeError, r"fft\.fft: n is an integer, got 2\.5"),  # type: ignore[arg-type]
    "norm": (lambda: fft.hfft(Tensor([1.0, 2.0]), norm="other"), ValueError, r"fft\.hfft: norm 'other'; there are"),
    "norm of many": (lambda: fft.fftn(Tensor([1.0]), norm="x", dim=()), ValueError, r"fft\.fftn: norm 'x'"),
    "complex": (lambda: fft.rfft(Tensor([1j])), TypeError, r"fft\.rfft: real numbers are transformed, got a ten"),
    "complex n": (lambda: fft.ihfft2(Tensor([[1j]])), TypeError, r"fft\.ihfft2: real numbers are transformed"),
    "twice": (lambda: fft.fft2(Tensor([[1.0]]), dim=(0, -2)), ValueError, r"fft\.fft2: an axis is given twice"),
    "lengths": (lambda: fft.fftn(Tensor([[1.0]]), s=(1,), dim=(0, 1)), ValueError, r"fft\.fftn: 1 lengths for 2 axes"),
    "more lengths": (lambda: fft.fftn(Tensor([1.0]), s=(1, 1)), ValueError, r"fft\.fftn: 2 lengths for a tensor"),
    "no axes": (lambda: fft.rfftn(Tensor([1.0]), dim=()), ValueError, r"fft\.rfftn: at least one axis"),
    "no tensor": (lambda: fft.fft([1.0]), TypeError, r"fft\.fft: a tensor is wanted, got a list"),  # type: ignore[arg-type]
    "keyword": (lambda: fft.fft(Tensor([1.0]), length=3), TypeError, r"fft\.fft\(\) got an unexpected keyword"),  # type: ignore[call-arg]
    "frequencies": (lambda: fft.fftfreq(0), ValueError, r"fft\.fftfreq: a transform of 0 numbers"),
    "apart": (lambda: fft.rfftfreq(3, 0), ValueError, r"fft\.rfftfreq: samples that are 0 apart"),
    "shift": (lambda: fft.fftshift(Tensor([1.0]), 2), IndexError, r"fft\.fftshift: axis 2"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_names_the_function(name: str) -> None:
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()
