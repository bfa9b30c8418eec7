"""Methods as layers, and containers of layers."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, nn
from tg_frontend.nn.applied import Applied
from tg_frontend.nn.describing import shows

KINDS: dict[str, Any] = {
    name: kind for name, kind in vars(nn).items() if inspect.isclass(kind) and issubclass(kind, Applied)
}
SETTINGS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "LeakyReLU": ((0.25,), {}), "Threshold": ((0.5, 20.0), {}), "Softmax": ((), {"dim": 0}), "GLU": ((), {"dim": 0}),
    "LogSoftmax": ((), {"dim": 0}), "Softmin": ((), {"dim": 0}), "Unflatten": ((1, (5, 3)), {}),
    "MaxPool2d": ((2, 1, 1), {}), "AvgPool2d": ((2, 1, 1, True, False), {}),
    "HuberLoss": ((), {"reduction": "sum", "delta": 0.5}), "KLDivLoss": ((), {"reduction": "batchmean"}),
    "MultiMarginLoss": ((2, 0.5), {}),
    # One window lies at the end, whatever is drawn.
    **{f"FractionalMaxPool{n}d": (((1, 2, 3)[-n:],), {"output_size": 1}) for n in (2, 3)},
    **{f"Adaptive{kind}Pool{n}d": ((2,), {}) for kind in ("Avg", "Max") for n in (1, 2, 3)},
    **{f"{kind}Pool{n}d": ((2,), {}) for kind in ("Avg", "Max") for n in (1, 3)},
    **{f"LPPool{n}d": ((3, 2), {}) for n in (1, 2, 3)}, **{f"MaxUnpool{n}d": ((2,), {}) for n in (1, 2, 3)},
    "ChannelShuffle": ((2,), {}), "PixelShuffle": ((2,), {}), "PixelUnshuffle": ((1,), {}), "Fold": (((5, 7), 2), {}),
    "Unfold": ((2,), {}), "LocalResponseNorm": ((3,), {}), "Upsample": ((), {"scale_factor": 2}),
    "UpsamplingNearest2d": ((), {"scale_factor": 2}), "UpsamplingBilinear2d": ((), {"scale_factor": 2}),
    "CrossEntropyLoss": ((), {"label_smoothing": 0.1}), "TripletMarginLoss": ((0.5,), {}), "Hardtanh": ((-2, 2), {}),
}  # fmt: skip
RNG = np.random.default_rng(3)
X = RNG.uniform(0.1, 0.9, (4, 15)).astype(np.float32)
Y = RNG.uniform(0.1, 0.9, (4, 15)).astype(np.float32)
Z = RNG.uniform(0.1, 0.9, (4, 15)).astype(np.float32)
CLASSES = RNG.integers(0, 15, 4)
SIGNS = np.array([1, -1, -1, 1])


def operands(name: str) -> list[np.ndarray[Any, Any]]:
    if name in ("NLLLoss", "CrossEntropyLoss", "MultiMarginLoss"):
        return [X, CLASSES]
    if name == "MultiLabelMarginLoss":
        return [X, np.where(Y < 0.8, np.argsort(Z), -1)]
    if name == "CTCLoss":
        steps = np.log(X.reshape(4, 3, 5) / X.reshape(4, 3, 5).sum(-1, keepdims=True))
        return [steps, np.array([[1, 2], [3, 3], [4, 1]]), np.array([4, 4, 3]), np.array([2, 1, 2])]
    if "Unpool" in name:
        x = X[:1].reshape(1, 1, *(1,) * (int(name[-2]) - 1), 15)
        return [x, np.arange(0, 30, 2).reshape(x.shape)]
    if name.endswith(("Pool1d", "Dropout1d")):
        return [X.reshape(1, 4, 15)]
    if name.endswith(("Pool3d", "Dropout3d")):
        return [X.reshape(1, 2, 2, 3, 5)]
    if name == "Fold":
        return [np.resize(X, (1, 8, 24))]
    if name.endswith(("Pool2d", "Dropout2d", "Shuffle", "shuffle", "Norm", "Unfold", "2d")) or name == "Upsample":
        return [X.reshape(1, 4, 3, 5)]
    if name == "CosineEmbeddingLoss":
        return [X, Y, SIGNS]
    if name == "HingeEmbeddingLoss":
        return [X, np.where(Y > 0.5, 1, -1)]
    if name in ("GaussianNLLLoss", "MarginRankingLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss"):
        return [X, Y, Z]
    return [X, Y] if "Loss" in name or name in ("CosineSimilarity", "PairwiseDistance") else [X]


@pytest.mark.parametrize("name", KINDS)
def test_a_layer_is_what_torch_makes_of_it(name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    args, kwargs = SETTINGS.get(name, ((), {}))
    want = getattr(torch.nn, name)(*args, **kwargs).eval()(*map(torch.from_numpy, operands(name)))
    got = KINDS[name](*args, **kwargs)(*map(Tensor, operands(name)))
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", KINDS)
def test_a_layer_calls_its_method_and_says_what_it_was_made_with(name: str) -> None:
    args, kwargs = SETTINGS.get(name, ((), {}))
    layer = KINDS[name](*args, **kwargs)
    tensors = [Tensor(x) for x in operands(name)]
    out_of = {"training": False} if "training" in inspect.signature(KINDS[name]._method).parameters else {}
    want = KINDS[name]._method(*tensors, **layer._settings(), **out_of)
    np.testing.assert_array_equal(layer(*tensors).numpy(), want.numpy())
    assert repr(layer) == f"{name}({layer.extra_repr()})"
    assert shows(layer) is not None or all(f"{key}=" in repr(layer) for key in layer._given)
    assert all(getattr(layer, key) is value for key, value in layer._settings().items())
    assert nn.state.get_state_dict(layer) == {}


@pytest.mark.parametrize("name", KINDS)
def test_a_wrong_setting_is_told_when_the_layer_is_made(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword 'qqq'"):
        KINDS[name](qqq=1)
    with pytest.raises(TypeError, match=rf"^{name}\(\) takes \d+ settings without a name at most, got 99"):
        KINDS[name](*[1] * 99)


def test_a_setting_is_given_once_and_not_left_out() -> None:
    with pytest.raises(TypeError, match="LeakyReLU: 'negative_slope' is given twice"):
        nn.LeakyReLU(0.5, negative_slope=0.5)
    with pytest.raises(TypeError, match="Threshold: 'value' is missing"):
        nn.Threshold(0.5)


def test_containers() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Sequential(nn.Linear(5, 2)))
    assert model(Tensor.ones(7, 3)).shape == (7, 2) and len(model) == 3
    assert list(nn.state.get_state_dict(model)) == ["0.weight", "0.bias", "2.0.weight", "2.0.bias"]
    assert nn.Sequential([nn.ReLU()])(Tensor([-1.0])).item() == 0
    assert nn.Sequential({"a": nn.ReLU(), "b": Tensor.neg})(Tensor([3.0])).item() == -3
    with pytest.raises(TypeError, match="5 is no layer"):
        nn.Sequential(nn.ReLU(), 5)
    assert nn.Identity(1, a=2)(Tensor([3.0])).item() == 3


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignored", [None, 2])
def test_weights_of_classes(smoothing: float, reduction: str, ignored: int | None) -> None:
    rng = np.random.default_rng(7)
    scores, weight = rng.normal(size=(5, 3, 7)).astype(np.float32), rng.uniform(0.5, 2, 3).astype(np.float32)
    classes = rng.integers(0, 3, (5, 7))
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    weighed = logs * weight[:, None]
    loss = -np.take_along_axis(weighed, classes[:, None], 1)[:, 0] * (1 - smoothing) - weighed.mean(1) * smoothing
    share = weight[classes] * (classes != ignored)
    loss = np.where(classes == ignored, 0, loss)
    want = loss if reduction == "none" else loss.sum() / (share.sum() if reduction == "mean" else 1)
    got = Tensor(scores).cross_entropy(
        Tensor(classes), reduction, smoothing, -100 if ignored is None else ignored, weight=Tensor(weight))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)
