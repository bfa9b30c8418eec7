"""Spellings of PyTorch and numpy: each call beside what it means, in numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor
from tg_runtime import DeviceUnavailable, UnknownDevice

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4)).astype(np.float32)
P = np.abs(X) + 1

CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "sum dim": (lambda x: x.sum(dim=1), X.sum(1)),
    "sum dims": (lambda x: x.sum(dim=(0, 1), keepdim=True), X.sum((0, 1), keepdims=True)),
    "mean keepdims": (lambda x: x.mean(axis=0, keepdims=True), X.mean(0, keepdims=True)),
    "mean dtype": (lambda x: x.mean(dtype="float64"), X.astype(np.float64).mean()),
    "sum dtype": (lambda x: x.sum(dim=0, dtype=np.float64), X.astype(np.float64).sum(0)),
    "max dim": (lambda x: x.max(dim=0), X.max(0)),
    "argmax dim": (lambda x: x.argmax(dim=1, keepdim=True), X.argmax(1)[:, None]),
    "argmin dim": (lambda x: x.argmin(dim=1), X.argmin(1)),
    "any dim": (lambda x: (x > 0).any(dim=1), (X > 0).any(1)),
    "all axis": (lambda x: (x > -3).all(dim=1), (X > -3).all(1)),
    "var unbiased": (lambda x: x.var(dim=1, unbiased=False), X.var(1)),
    "std unbiased": (lambda x: x.std(dim=1, unbiased=True), X.std(1, ddof=1)),
    "std ddof": (lambda x: x.std(axis=1, ddof=0), X.std(1)),
    "std correction": (lambda x: x.std(dim=1, correction=2), X.std(1, ddof=2)),
    "prod dim": (lambda x: x.prod(dim=1), X.prod(1)),
    "softmax dim": (lambda x: x.softmax(dim=0), np.exp(X) / np.exp(X).sum(0)),
    "log_softmax dim": (lambda x: x.log_softmax(dim=0), X - np.log(np.exp(X).sum(0))),
    "softmin dim": (lambda x: x.softmin(dim=0), np.exp(-X) / np.exp(-X).sum(0)),
    "logsumexp dim": (lambda x: x.logsumexp(dim=1), np.log(np.exp(X).sum(1))),
    "cumsum dim": (lambda x: x.cumsum(dim=1), X.cumsum(1)),
    "cumsum dtype": (lambda x: x.cumsum(dim=1, dtype="float64"), X.astype(np.float64).cumsum(1)),
    "cumprod dim": (lambda x: x.cumprod(dim=1, dtype=float), X.astype(np.float64).cumprod(1)),
    "cummax dim": (lambda x: x.cummax(dim=1)[0], np.maximum.accumulate(X, 1)),
    "clamp": (lambda x: x.clamp(min=-0.5, max=0.5), X.clip(-0.5, 0.5)),
    "clamp one bound": (lambda x: x.clip(max=0.5), np.minimum(X, 0.5)),
    "clip numpy": (lambda x: x.clip(a_min=-0.5, a_max=0.5), X.clip(-0.5, 0.5)),
    "sort": (lambda x: x.sort(dim=0, descending=True, stable=True)[0], -np.sort(-X, 0)),
    "sort axis": (lambda x: x.sort(axis=0)[0], np.sort(X, 0)),
    "argsort": (lambda x: x.argsort(axis=1, stable=True), X.argsort(1, kind="stable")),
    "topk": (lambda x: x.topk(2, dim=1, sorted=False)[0], -np.sort(-X, 1)[:, :2]),
    "nonzero": (lambda x: (x > 0).nonzero(as_tuple=True)[1], (X > 0).nonzero()[1]),
    "nonzero size": (lambda x: (x > 0).nonzero(size=3, as_tuple=True)[0], (X > 0).nonzero()[0][:3]),
    "transpose": (lambda x: x.transpose(axis0=0, axis1=1), X.T),
    "flip dims": (lambda x: x.flip(dims=(0,)), X[::-1]),
    "permute dims": (lambda x: x.permute(dims=(1, 0)), X.T),
    "reshape shape": (lambda x: x.reshape(shape=(2, 6)), X.reshape(2, 6)),
    "view": (lambda x: x.view(size=(6, 2)), X.reshape(6, 2)),
    "expand": (lambda x: x.expand(size=(2, 3, 4)), np.stack([X, X])),
    "repeat": (lambda x: x.repeat(repeats=(2, 1)), np.tile(X, (2, 1))),
    "unsqueeze": (lambda x: x.unsqueeze(axis=1), X[:, None]),
    "squeeze": (lambda x: x.unsqueeze(0).squeeze(axis=0), X),
    "roll": (lambda x: x.roll(1, axis=1), np.roll(X, 1, 1)),
    "cat": (lambda x: Tensor.cat(*[x, x], axis=1), np.concatenate([X, X], 1)),  # type: ignore[call-arg]
    "cat tensors": (lambda x: Tensor.cat(tensors=[x, x], dim=1), np.concatenate([X, X], 1)),  # type: ignore[call-arg]
    "stack": (lambda x: Tensor.stack(*[x, x], axis=1), np.stack([X, X], 1)),  # type: ignore[call-arg]
    "split": (lambda x: x.split(split_size=3, axis=1)[1], X[:, 3:]),
    "chunk": (lambda x: x.chunk(2, axis=1)[1], X[:, 2:]),
    "gather": (lambda x: x.gather(axis=1, index=Tensor([[0], [1], [2]])), X[range(3), [0, 1, 2]][:, None]),
    "tril": (lambda x: x.tril(k=1), np.tril(X, 1)),
    "diagonal": (lambda x: x.diagonal(offset=1, axis1=0, axis2=1), np.diagonal(X, 1)),
    "pad": (lambda x: x.pad(pad_width=((1, 0), (0, 2))), np.pad(X, ((1, 0), (0, 2)))),
    "add other": (lambda x: x.add(other=2), X + 2),
    "maximum other": (lambda x: x.maximum(other=0.0), np.maximum(X, 0)),
    "pow exponent": (lambda x: x.pow(exponent=2), X**2),
    "matmul other": (lambda x: x.matmul(other=x.T), X @ X.T),
    "leaky_relu": (lambda x: x.leaky_relu(negative_slope=0.1), np.where(X > 0, X, X * np.float32(0.1))),
    "functional": (lambda x: Tensor.sum(input=x, dim=1), X.sum(1)),  # type: ignore[call-arg]
    "full": (lambda x: Tensor.full(size=(2, 2), fill_value=3.0), np.full((2, 2), 3.0)),  # type: ignore[call-arg]
    "zeros": (lambda x: Tensor.zeros(size=(2, 2)), np.zeros((2, 2))),  # type: ignore[call-arg]
    "round": (lambda x: round(x, 1), X.round(1)),
    "round decimals": (lambda x: (x * 100).round(decimals=-1), (X * 100).round(-1)),
    "divmod": (lambda x: divmod(x, 0.5)[0], X // 0.5),
    "np.sin": (lambda x: np.sin(x), np.sin(X)),
    "np.sum": (lambda x: np.sum(x, axis=1), X.sum(1)),
    "np.mean": (lambda x: np.mean(x), X.mean()),
    "np.stack": (lambda x: np.stack([x, x]), np.stack([X, X])),
    "np.where": (lambda x: np.where(x > 0, x, 0), np.where(X > 0, X, 0)),
    "array + tensor": (lambda x: X + x, X + X),
    "array @ tensor": (lambda x: X.T @ x, X.T @ X),
    "scalar - tensor": (lambda x: np.float32(2) - x, 2 - X),
    "array < tensor": (lambda x: np.zeros((3, 4), np.float32) < x, X > 0),
    "to dtype": (lambda x: (x * 9).to("int32"), (X * 9).astype(np.int32)),
    "to numpy dtype": (lambda x: x.to(np.float64), X),
    "to tensor": (lambda x: x.to(Tensor([1.0], dtype="float64")), X),
    "to both": (lambda x: x.to("NUMPY", dtype="float64"), X),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_spelling(name: str) -> None:
    function, want = CASES[name]
    got = function(Tensor(X.copy()))
    assert isinstance(got, Tensor)
    found = got.numpy() if isinstance(got, Tensor) else got
    assert found.shape == np.shape(want)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
    if "dtype" in name and "float64" not in str(found.dtype):
        assert found.dtype == np.asarray(want).dtype


def test_one_element_is_a_python_number() -> None:
    t = Tensor(3)
    assert list(range(t)) == [0, 1, 2] and "abcd"[t] == "d" and bin(t) == "0b11"
    assert (bool(Tensor([[0.0]])), bool(Tensor(0.5)), int(Tensor(2.5)), float(t), math.floor(Tensor(2.5))) == (
        False, True, 2, 3.0, 2,
    )  # fmt: skip
    with pytest.raises(TypeError, match=r"bool: a tensor of shape \(2,\) has no truth value"):
        bool(Tensor([1, 2]))
    with pytest.raises(TypeError, match="float32 is no integer"):
        range(Tensor(3.0))
    with pytest.raises(TypeError, match=r"index: a tensor of shape \(2,\)"):
        [1, 2][Tensor([0, 1])]


def test_numpy_writes_into_arrays_and_tensors() -> None:
    a = np.zeros((3, 4), np.float32)
    a += Tensor(X.copy())
    np.testing.assert_array_equal(a, X)
    out = Tensor(X.copy())
    assert np.add(X, X, out=out) is out  # type: ignore[call-overload]
    np.testing.assert_array_equal(out.numpy(), X + X)


def test_a_device_that_is_not_there_is_told_at_once() -> None:
    x = Tensor(X.copy())
    makers: list[Callable[[], Any]] = [
        lambda: x.to("GPU"), lambda: x.to_("GPU"), lambda: Tensor([1], device="GPU"), lambda: Tensor(1, device="GPU"),
        lambda: Tensor.zeros(3, device="GPU"), lambda: Tensor.empty(3, device="GPU"),
        lambda: Tensor.rand(3, device="GPU"),
    ]  # fmt: skip
    for make in makers:
        with pytest.raises(UnknownDevice, match="there is no device GPU. There are:(.|\n)*NUMPY +available"):
            make()
    with pytest.raises((DeviceUnavailable, UnknownDevice)):
        x.to("METAL" if __import__("sys").platform != "darwin" else "CUDA")
    with pytest.raises(TypeError, match=r"^Tensor\.to: a device is a name, got 3"):
        x.to(3)
    with pytest.raises(TypeError, match=r"^Tensor\.to: two dtypes"):
        x.to("float16", dtype="float32")
    assert x.to("float32") is x and x.to() is x


def _cubic(x: Any, new: int, ratio: float, align: bool) -> Any:
    """One axis by the cubic convolution kernel with slope -0.75, in float64."""
    n, out = len(x), []
    for i in range(new):
        at = i * ((n - 1) / max(new - 1, 1)) if align else (i + 0.5) * ratio - 0.5
        low, total = math.floor(at), 0.0
        for k in range(-1, 3):
            d = abs(at - low - k)
            weight = 1.25 * d**3 - 2.25 * d * d + 1 if d <= 1 else -0.75 * (d**3 - 5 * d * d + 8 * d - 4)
            total = total + weight * x[min(max(low + k, 0), n - 1)]
        out.append(total)
    return np.array(out)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize(("size", "factor"), [((7, 5), None), (None, 1.7), (None, (0.6, 2.3)), (9, None)])
def test_bicubic(align: bool, size: Any, factor: Any) -> None:
    x = RNG.standard_normal((2, 3, 5, 4))
    out = Tensor(x).interpolate(size=size, scale_factor=factor, mode="bicubic", align_corners=align)
    factors = factor if isinstance(factor, tuple) else (factor, factor)
    grown = [int(n * f) for n, f in zip((5, 4), factors, strict=True)] if factor else []
    sizes = (size, size) if isinstance(size, int) else size or grown
    want = x
    for axis, (n, f) in enumerate(zip(sizes, factors, strict=True), start=2):
        ratio = 1 / f if f else want.shape[axis] / n
        want = np.apply_along_axis(_cubic, axis, want, n, ratio, align)
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-12, atol=1e-12)


PICTURE = ((np.arange(2 * 5 * 7).reshape(1, 2, 5, 7) * 37 + 11) % 256).astype(np.uint8)
RECORDED: list[tuple[dict[str, Any], Any]] = [
    ({"size": (3, 4), "mode": "bilinear"}, [[41, 106, 170, 235], [46, 111, 175, 240], [51, 116, 180, 85]]),
    ({"size": (7, 3), "mode": "bicubic"},
     [[47, 137, 227], [48, 138, 228], [51, 141, 235], [53, 143, 233], [55, 145, 175], [58, 148, 148], [59, 149, 158]]),
    ({"size": (2, 3), "mode": "bilinear", "antialias": True}, [[61, 140, 215], [67, 146, 159]]),
    ({"size": (3, 2), "mode": "bicubic", "antialias": True}, [[79, 199], [85, 190], [95, 146]]),
    ({"size": (2, 3), "mode": "lanczos", "antialias": True}, [[52, 139, 228], [57, 158, 156]]),
    ({"size": (3, 4), "mode": "bilinear", "align_corners": True},
     [[26, 100, 174, 248], [32, 106, 180, 254], [38, 112, 186, 4]]),
    ({"scale_factor": (0.6, 1.7), "mode": "bicubic", "antialias": True},
     [[24, 38, 63, 85, 106, 128, 150, 172, 194, 217, 246], [29, 43, 68, 90, 111, 133, 155, 177, 202, 218, 206],
      [34, 48, 73, 95, 116, 138, 160, 182, 220, 210, 56]]),
    ({"size": (3, 3), "mode": "bilinear", "antialias": True, "align_corners": True},
     [[74, 176, 238], [80, 168, 158], [83, 157, 76]]),
]  # fmt: skip
"""What torch 2.13 makes of the second channel of the picture."""


@pytest.mark.parametrize(("arguments", "want"), RECORDED)
def test_pictures_of_bytes_are_resized_to_the_bit(backend: str, arguments: dict[str, Any], want: Any) -> None:
    assert Tensor(PICTURE).interpolate(**arguments)[0, 1].tolist() == want


def _mean_of(row: Any, n: int, mode: str) -> Any:
    """A vector with n elements: means weighted by a filter that is as wide as an element stands for."""
    filters: dict[str, tuple[int, Callable[[float], float]]] = {
        "bilinear": (1, lambda d: 1 - d),
        "bicubic": (2, lambda d: 1.5 * d**3 - 2.5 * d * d + 1 if d < 1 else -0.5 * (d**3 - 5 * d * d + 8 * d - 4)),
        "lanczos": (3, lambda d: float(np.sinc(d) * np.sinc(d / 3))),
    }
    reach, filter_at = filters[mode]
    step = len(row) / n
    out = []
    for i in range(n):
        away = np.abs(np.arange(len(row)) + 0.5 - step * (i + 0.5)) / max(step, 1)
        weights = np.array([filter_at(d) if d < reach else 0.0 for d in away])
        out.append((weights * row).sum() / weights.sum())
    return np.array(out)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("size", [(7, 11), (31, 3), (13, 40), (1, 1)])
def test_antialias_takes_means_of_what_an_element_stands_for(mode: str, size: tuple[int, int]) -> None:
    x = RNG.standard_normal((2, 3, 13, 29))
    t = Tensor(x, requires_grad=True)
    out = t.interpolate(size=size, mode=mode, antialias=True)
    want = x
    for axis, n in enumerate(size, start=2):
        want = np.apply_along_axis(_mean_of, axis, want, n, mode)
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-12, atol=1e-12)
    ways = RNG.standard_normal(want.shape)  # what is linear is its own derivative
    (slope,) = (out * Tensor(ways)).sum().gradient(t)
    np.testing.assert_allclose((slope.numpy() * x).sum(), (want * ways).sum(), rtol=1e-10)


def test_overshoots_of_integers_stay_within_their_range() -> None:
    edge = np.repeat(np.array([[-128, 127]], np.int8), 4, 0).repeat(4, 1)[None, None]
    wide = Tensor(edge).interpolate(size=(5, 23), mode="bicubic").numpy()
    assert wide.dtype == np.int8 and (np.diff(wide[0, 0, 0].astype(int)) >= -9).all()
    assert (wide[..., :8] < 0).all() and (wide[..., -8:] > 0).all()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"mode": "nearest", "antialias": True}, "antialias is for bilinear, bicubic, lanczos, not for mode 'nearest'"),
        ({"mode": "lanczos"}, "mode 'lanczos' is for antialias=True"),
    ],
)
def test_what_does_not_smooth_is_said(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Tensor(PICTURE).interpolate(size=(2, 2), **arguments)


def test_interpolation_by_a_factor(backend: str) -> None:
    x = Tensor([[[1.0, 3.0, 2.0]]])
    assert x.interpolate(scale_factor=2, mode="nearest").tolist() == [[[1, 1, 3, 3, 2, 2]]]
    assert x.interpolate(scale_factor=2).tolist() == [[[1, 1.5, 2.5, 2.75, 2.25, 2]]]
    assert x.interpolate(size=5, align_corners=True).tolist() == [[[1, 2, 3, 2.5, 2]]]
    assert x.interpolate(scale_factor=1.2).tolist() == x.tolist()  # an axis that keeps its length is left as it is
    image = Tensor(np.arange(4.0, dtype=np.float32).reshape(1, 1, 2, 2))
    assert image.interpolate(scale_factor=2, mode="bilinear")[0, 0, 0].tolist() == [0, 0.25, 0.75, 1]
    assert Tensor([[[0, 10]]], dtype="uint8").interpolate(3).tolist() == [[[0, 5, 10]]]
    # in float64, positions are float64 too
    row = RNG.standard_normal(1000)
    at = ((np.arange(3001) + 0.5) * (1000 / 3001) - 0.5).clip(0, 999)
    got = Tensor(row.reshape(1, 1, -1)).interpolate(3001).numpy()[0, 0]
    np.testing.assert_allclose(got, np.interp(at, np.arange(1000), row), rtol=1e-11, atol=1e-11)
    for arguments, message in (
        ({}, "size or scale_factor"), ({"size": 2, "scale_factor": 2}, "one of the two"),
        ({"scale_factor": 0.1}, "leaves nothing"), ({"size": 2, "mode": "area"}, "there are linear, bilinear"),
        ({"size": 2, "mode": "bilinear"}, "has 2 axes|for shape"), ({"scale_factor": -1}, "scale_factor -1"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            x.interpolate(**arguments) if "bilinear" not in str(arguments) else Tensor([1.0]).interpolate(**arguments)
