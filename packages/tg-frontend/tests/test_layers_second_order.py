"""Every layer of nn to second order, in training: slopes, and slopes of slopes, beside finite differences."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tg_frontend import Tensor, nn
from tg_frontend.nn.applied import Applied

Array = NDArray[Any]
Row = tuple[Callable[[], Any], list[Array]]

RNG = np.random.default_rng(11)
LONG = {"LSTM", "Transformer", "TransformerDecoder"}
"""Layers for which this takes many seconds; other recurrent layers and those that they are made of do not."""
STEP = 1e-6


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape)


def between(*shape: int) -> Array:
    return RNG.uniform(0.1, 0.9, shape)


def signs(*shape: int) -> Array:
    return RNG.choice([-1, 1], shape)


def classes(count: int, *shape: int) -> Array:
    return RNG.integers(0, count, shape)


EXTENTS = (3, 5, 7)
"""Of operands, where a layer leaves the choice: odd ones, so that nothing comes out even."""

ROWS: dict[str, Row] = {
    "Identity": (nn.Identity, [normal(*EXTENTS)]),
    "Linear": (lambda: nn.Linear(7, 3), [normal(2, 5, 7)]),
    "Embedding": (lambda: nn.Embedding(7, 3), [classes(7, 11)]),
    "Conv1d": (lambda: nn.Conv1d(2, 3, 3, padding=1), [normal(3, 2, 7)]),
    "Conv1d in steps": (lambda: nn.Conv1d(4, 6, 3, stride=2, dilation=2, groups=2, bias=False), [normal(1, 4, 11)]),
    "Conv2d": (lambda: nn.Conv2d(2, 3, (3, 2), stride=2, padding=1), [normal(2, 2, 7, 5)]),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(3, 2, 3, stride=2, output_padding=1), [normal(2, 3, 5)]),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1), [normal(1, 2, 3, 5)]),
    "BatchNorm": (lambda: nn.BatchNorm(3), [normal(5, 3)]),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3), [normal(2, 3, 5, 3)]),
    "BatchNorm3d": (lambda: nn.BatchNorm3d(2, track_running_stats=False), [normal(3, 2, 1, 3, 5)]),
    "GroupNorm": (lambda: nn.GroupNorm(3, 6), [normal(2, 6, 5)]),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(3, affine=True), [normal(2, 3, 7)]),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(3), [normal(3, 5, 2)]),
    "InstanceNorm3d": (lambda: nn.InstanceNorm3d(2, affine=True), [normal(1, 2, 2, 3, 2)]),
    "SyncBatchNorm": (lambda: nn.SyncBatchNorm(3), [normal(2, 3, 5)]),
    "InstanceNorm": (lambda: nn.InstanceNorm(3), [normal(2, 3, 7)]),
    "LayerNorm": (lambda: nn.LayerNorm((5, 7)), [normal(3, 5, 7)]),
    "LayerNorm2d": (lambda: nn.LayerNorm2d(5), [normal(2, 5, 3, 3)]),
    "RMSNorm": (lambda: nn.RMSNorm(7), [normal(3, 7)]),
    "RNN": (lambda: nn.RNN(3, 5, nonlinearity="relu"), [normal(7, 2, 3)]),
    "RNN without a batch": (lambda: nn.RNN(3, 5, bias=False), [normal(5, 3)]),
    "LSTM": (lambda: nn.LSTM(3, 5, num_layers=2, bidirectional=True, dropout=0.3), [normal(5, 2, 3)]),
    "LSTM with projections": (lambda: nn.LSTM(3, 5, proj_size=2, batch_first=True), [normal(2, 3, 3)]),
    "GRU": (lambda: nn.GRU(3, 5, bidirectional=True), [normal(5, 2, 3)]),
    "RNNCell": (lambda: nn.RNNCell(3, 5), [normal(2, 3), normal(2, 5)]),
    "LSTMCell": (lambda: nn.LSTMCell(3, 5), [normal(2, 3)]),
    "GRUCell": (lambda: nn.GRUCell(3, 5), [normal(2, 3), normal(2, 5)]),
    "Sequential": (lambda: nn.Sequential(nn.Linear(5, 3), nn.Tanh(), nn.Linear(3, 2)), [normal(7, 5)]),
    "Dropout": (lambda: nn.Dropout(0.4), [normal(*EXTENTS)]),
    "Flatten": (nn.Flatten, [normal(*EXTENTS)]),
    "Unflatten": (lambda: nn.Unflatten(1, (5, 3)), [normal(2, 15)]),
    "MaxPool2d": (lambda: nn.MaxPool2d(3, 2, 1), [normal(2, 1, 7, 5)]),
    "AvgPool2d": (lambda: nn.AvgPool2d((3, 2), 1, 1), [normal(1, 2, 5, 3)]),
    "GLU": (nn.GLU, [normal(3, 10)]),
    "LeakyReLU": (lambda: nn.LeakyReLU(0.3), [normal(*EXTENTS)]),
    "Threshold": (lambda: nn.Threshold(0.2, 20.0), [normal(*EXTENTS)]),
    "Softmax": (lambda: nn.Softmax(dim=1), [normal(*EXTENTS)]),
    "LogSoftmax": (lambda: nn.LogSoftmax(dim=0), [normal(*EXTENTS)]),
    "Softmin": (lambda: nn.Softmin(dim=-1), [normal(*EXTENTS)]),
    "CosineSimilarity": (nn.CosineSimilarity, [normal(*EXTENTS), normal(*EXTENTS)]),
    "PairwiseDistance": (nn.PairwiseDistance, [normal(3, 7), normal(3, 7)]),
    "BCELoss": (nn.BCELoss, [between(*EXTENTS), between(*EXTENTS)]),
    "CrossEntropyLoss": (lambda: nn.CrossEntropyLoss(label_smoothing=0.1), [normal(5, 7), classes(7, 5)]),
    "CrossEntropyLoss of parts": (nn.CrossEntropyLoss, [normal(5, 7), between(5, 7)]),
    "NLLLoss": (nn.NLLLoss, [normal(5, 7), classes(7, 5)]),
    "MultiMarginLoss": (lambda: nn.MultiMarginLoss(2), [normal(5, 7), classes(7, 5)]),
    "CosineEmbeddingLoss": (nn.CosineEmbeddingLoss, [normal(5, 7), normal(5, 7), signs(5)]),
    "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss, [normal(5, 7), signs(5, 7)]),
    "MarginRankingLoss": (nn.MarginRankingLoss, [normal(7), normal(7), signs(7)]),
    "SoftMarginLoss": (nn.SoftMarginLoss, [normal(5, 3), signs(5, 3)]),
    "TripletMarginLoss": (nn.TripletMarginLoss, [normal(3, 5), normal(3, 5), normal(3, 5)]),
    "GaussianNLLLoss": (nn.GaussianNLLLoss, [normal(5, 3), normal(5, 3), between(5, 3)]),
    "KLDivLoss": (lambda: nn.KLDivLoss(reduction="batchmean"), [normal(5, 3), between(5, 3)]),
    "MultiLabelSoftMarginLoss": (nn.MultiLabelSoftMarginLoss, [normal(5, 3), between(5, 3)]),
    "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss, [normal(2, 5), np.array([[3, 0, -1, 1, 2], [1, 4, 2, -1, 0]])]),
    "TripletMarginWithDistanceLoss": (nn.TripletMarginWithDistanceLoss, [normal(3, 5), normal(3, 5), normal(3, 5)]),
    "CTCLoss": (nn.CTCLoss, [normal(5, 2, 4), np.array([[1, 1], [2, 3]]), np.array([5, 4]), np.array([2, 1])]),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3), [normal(2, 3, 5)]),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 2, padding=1), [normal(1, 2, 3, 2, 3)]),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(2, 3, 2, stride=2), [normal(1, 2, 2, 1, 3)]),
    "Bilinear": (lambda: nn.Bilinear(3, 5, 2), [normal(4, 3), normal(4, 5)]),
    "PReLU": (lambda: nn.PReLU(5), [normal(*EXTENTS)]),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(7, 3), [classes(7, 4, 5)]),
    "EmbeddingBag of maxima": (lambda: nn.EmbeddingBag(7, 3, mode="max"), [classes(7, 4, 5)]),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(6, 3), [normal(3, 2, 6), normal(5, 2, 6), normal(5, 2, 6)]),
    "MultiheadAttention of other widths": (
        lambda: nn.MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True, kdim=3, vdim=5),
        [normal(3, 2, 6), normal(5, 2, 3), normal(5, 2, 5)]),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(6, 2, 5, activation="gelu"), [normal(3, 2, 6)]),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(6, 2, 5, norm_first=True), [normal(3, 2, 6), normal(4, 2, 6)]),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 3, 0.0), 2), [normal(3, 1, 4)]),
    "TransformerDecoder": (
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 3, 0.0), 2), [normal(3, 1, 4), normal(2, 1, 4)]),
    "Transformer": (lambda: nn.Transformer(4, 2, 1, 1, 3, 0.0), [normal(3, 1, 4), normal(2, 1, 4)]),
    **{f"Adaptive{kind}Pool{n}d": (partial(getattr(nn, f"Adaptive{kind}Pool{n}d"), 2), [normal(2, 2, *(3, 5, 4)[:n])])
       for kind in ("Avg", "Max") for n in (1, 2, 3)},
    **{f"{kind}Pool{n}d": (partial(getattr(nn, f"{kind}Pool{n}d"), 2), [normal(2, 2, *(4, 5, 3)[:n])])
       for kind in ("Avg", "Max") for n in (1, 3)},
    **{f"LPPool{n}d": (partial(getattr(nn, f"LPPool{n}d"), 3, 2), [between(2, 2, *(4, 5, 3)[:n])]) for n in (1, 2, 3)},
    "MaxUnpool1d": (lambda: nn.MaxUnpool1d(2), [normal(1, 1, 3), np.array([[[0, 3, 5]]])]),
    "MaxUnpool2d": (lambda: nn.MaxUnpool2d(2), [normal(1, 1, 1, 3), np.array([[[[0, 9, 5]]]])]),
    "MaxUnpool3d": (lambda: nn.MaxUnpool3d(2), [normal(1, 1, 1, 1, 3), np.array([[[[[0, 19, 5]]]]])]),
    "FractionalMaxPool2d": (lambda: nn.FractionalMaxPool2d(2, 3), [normal(2, 2, 5, 7)]),
    "FractionalMaxPool3d": (lambda: nn.FractionalMaxPool3d(2, output_ratio=0.5), [normal(1, 2, 5, 4, 7)]),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(5, 11, [3, 7], 2, True), [normal(4, 5), np.array([1, 3, 9, 6])]),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), [normal(1, 6, 3, 2)]),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), [normal(1, 8, 3, 2)]),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), [normal(1, 3, 4, 6)]),
    "Fold": (lambda: nn.Fold((4, 5), 2), [normal(2, 8, 12)]), "Unfold": (lambda: nn.Unfold(2), [normal(2, 3, 4, 5)]),
    "CrossMapLRN2d": (lambda: nn.CrossMapLRN2d(4, 0.5), [normal(2, 5, 3, 1)]),
    "LinearCrossEntropyLoss": (
        lambda: nn.LinearCrossEntropyLoss(3, 7, out_features=(2,), bias=True), [normal(5, 3), classes(7, 5, 2)]),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(3, 0.5), [normal(2, 5, 3)]),
    "Softmax2d": (nn.Softmax2d, [normal(2, 3, 4, 5)]), "Dropout2d": (nn.Dropout2d, [normal(2, 3, 4, 5)]),
    "Dropout3d": (nn.Dropout3d, [normal(2, 3, 2, 3, 2)]),
    "Upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), [normal(1, 2, 3, 4)]),
    "UpsamplingNearest2d": (lambda: nn.UpsamplingNearest2d(scale_factor=2), [normal(1, 2, 3, 4)]),
    "UpsamplingBilinear2d": (lambda: nn.UpsamplingBilinear2d(scale_factor=2), [normal(1, 2, 3, 4)]),
    **{f"{kind}Pad{n}d": (partial(getattr(nn, f"{kind}Pad{n}d"), 1), [normal(1, 2, *(4, 3, 2)[:n])])
       for kind in ("Zero", "Reflection", "Replication", "Circular") for n in (1, 2, 3)},
    **{f"ConstantPad{n}d": (partial(getattr(nn, f"ConstantPad{n}d"), 1, 2.5), [normal(1, 2, *(4, 3, 2)[:n])])
       for n in (1, 2, 3)},
}  # fmt: skip
"""Layers that need settings or operands of their own; others get one operand, losses two."""

HOLDERS = {"Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "RNNBase", "RNNCellBase"}
"""Classes that compute nothing of their own."""

SIZELESS = ("Lazy", "Uninitialized")
"""How the names of layers begin that become others with their first input, and of the parameters of these."""

KINDS = [
    name for name in nn.__all__
    if inspect.isclass(getattr(nn, name)) and name not in HOLDERS and not name.startswith(SIZELESS)
]  # fmt: skip


def row_of(name: str) -> Row:
    """How a layer is made and what it is called with."""
    if name in ROWS:
        return ROWS[name]
    kind: Any = getattr(nn, name)
    assert issubclass(kind, Applied), f"nn.{name} needs a row of ROWS"
    return kind, [normal(*EXTENTS), normal(*EXTENTS)] if name.endswith("Loss") else [normal(*EXTENTS)]


def parameters(owner: Any) -> Iterator[tuple[Any, Any, Tensor]]:
    """The tensors of floats that a layer holds: what holds each, its name or place there, and the tensor."""
    items = owner.items() if isinstance(owner, dict) else enumerate(owner) if isinstance(owner, list) else None
    held = vars(owner) if items is None and hasattr(owner, "__dict__") else owner
    for key, value in list(items or (held.items() if isinstance(held, dict) else ())):
        if isinstance(value, Tensor) and value.dtype.kind == "float":
            if not str(key).startswith("running"):
                yield held, key, value
        elif isinstance(value, (dict, list)) or type(value).__module__.startswith("tg_frontend.nn"):
            yield from parameters(value)


def total(result: Any) -> Tensor:
    """A number that every element of a result has another share in."""
    parts = list(result) if isinstance(result, tuple) else [result]
    if isinstance(parts[-1], tuple):
        parts[-1:] = parts[-1]
    rng = np.random.default_rng(5)
    shares = [Tensor(rng.uniform(0.5, 1.5, tuple(map(int, part.shape)))) for part in parts]
    return sum(((part * share).sum() for part, share in zip(parts, shares, strict=True)), Tensor(0.0, dtype="float64"))


def check(make: Callable[[], Any], operands: list[Array]) -> None:
    """First and second slopes along directions, by central differences in float64."""
    rng = np.random.default_rng(6)
    layer = make()
    places = list(parameters(layer))
    known = nn.state.get_state_dict(layer) if not inspect.isfunction(layer) else {}
    learnt = [name for name, one in known.items() if one.dtype.kind == "float" and "running" not in name]
    assert len(places) == len(learnt), learnt
    shapes = [tuple(map(int, tensor.shape)) for *_, tensor in places]
    at = [rng.standard_normal(shape) * 0.5 for shape in shapes]
    floats = [n for n, operand in enumerate(operands) if operand.dtype.kind == "f"]
    at += [operands[n] for n in floats]
    assert at, "the layer has neither parameters nor operands of floats"

    def value(arrays: list[Array]) -> tuple[Tensor, list[Tensor]]:
        tensors = [Tensor(array, requires_grad=True) for array in arrays]
        for (holder, key, _), tensor in zip(places, tensors, strict=False):
            holder[key] = tensor
        given = dict(zip(floats, tensors[len(places) :], strict=True))
        Tensor.manual_seed(3)
        with Tensor.train():
            result = layer(*[given.get(n, Tensor(operand)) for n, operand in enumerate(operands)])
        return total(result), tensors

    def slopes(arrays: list[Array]) -> tuple[list[Tensor], list[Tensor]]:
        out, tensors = value(arrays)
        return out.gradient(*tensors, materialize_grads=True), tensors

    found, tensors = slopes(at)
    assert all(slope.dtype.name == "float64" for slope in found)
    weights = [rng.standard_normal(array.shape) for array in at]
    along = sum(((s * Tensor(w)).sum() for s, w in zip(found, weights, strict=True)), Tensor(0.0, dtype="float64"))
    bends = along.gradient(*tensors, materialize_grads=True)
    for which, array in enumerate(at):
        way = rng.standard_normal(array.shape)
        ends = []
        for sign in (1, -1):
            moved = [*at[:which], array + sign * STEP * way, *at[which + 1 :]]
            ends.append((value(moved)[0].item(), [slope.numpy() for slope in slopes(moved)[0]]))
        first = (ends[0][0] - ends[1][0]) / (2 * STEP)
        np.testing.assert_allclose((found[which].numpy() * way).sum(), first, rtol=2e-5, atol=2e-6)
        second = sum(((a - b) * w).sum() for a, b, w in zip(ends[0][1], ends[1][1], weights, strict=True)) / (2 * STEP)
        np.testing.assert_allclose((bends[which].numpy() * way).sum(), second, rtol=1e-4, atol=1e-5)


@pytest.mark.drawn(14)
@pytest.mark.parametrize("backend", ["NUMPY"], indirect=True)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in dict.fromkeys([*KINDS, *ROWS])]
)
def test_slopes_of_slopes(name: str, backend: str) -> None:
    check(*row_of(name))


@pytest.mark.parametrize("backend", ["NUMPY"], indirect=True)
def test_a_wrong_rule_is_found(backend: str) -> None:
    """A layer whose second slope is none: the net is not one that catches nothing."""
    with pytest.raises(AssertionError):
        check(lambda: lambda x: x.detach() * x, [normal(5)])


@pytest.mark.parametrize("backend", ["NUMPY"], indirect=True)
def test_statistics_of_evaluation(backend: str) -> None:
    layer = nn.BatchNorm(3)
    layer(Tensor(normal(5, 3)))
    check(lambda: lambda x: Tensor.train(False)(lambda: layer(x).sin())(), [normal(5, 3)])
