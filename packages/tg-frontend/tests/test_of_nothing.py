"""What has no elements is differentiated as anything else: who takes part gets zeros, and is not left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, nn
from tg_frontend.nn import functional as F

RNG = np.random.default_rng(11)
A, B, C = (int(n) for n in RNG.permutation([2, 3, 5]))
LAYERS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "Linear": (lambda: nn.Linear(A, B), (0, A)),
    "Bilinear": (lambda: nn.Bilinear(A, A, B), (0, A)),
    "Conv1d": (lambda: nn.Conv1d(A, B, 3), (0, A, 7)),
    "Conv2d": (lambda: nn.Conv2d(A, B, 2, padding=1), (0, A, 4, 5)),
    "Conv3d": (lambda: nn.Conv3d(A, B, 1), (0, A, 3, 4, 5)),
    "Conv2d, groups": (lambda: nn.Conv2d(2 * A, 2 * B, 3, groups=2, bias=False), (0, 2 * A, 4, 5)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(A, B, 3), (0, A, 7)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(A, B, 3, bias=False), (0, A, 3, 5)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(A), (0, A)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(A), (0, A, 3, 5)),
    "GroupNorm": (lambda: nn.GroupNorm(1, A), (0, A, 3)),
    "LayerNorm": (lambda: nn.LayerNorm((A, B)), (0, A, B)),
    "RMSNorm": (lambda: nn.RMSNorm(A), (0, A)),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(A, affine=True), (0, A, 5)),
    "PReLU": (lambda: nn.PReLU(A), (0, A, 3)),
    "RNN": (lambda: nn.RNN(A, B), (3, 0, A)),
    "GRU": (lambda: nn.GRU(A, B, bidirectional=True), (3, 0, A)),
    "LSTM": (lambda: nn.LSTM(A, B, num_layers=2, batch_first=True), (0, 3, A)),
    "GRUCell": (lambda: nn.GRUCell(A, B), (0, A)),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(2 * A, 2, 7, batch_first=True), (0, 3, 2 * A)),
}  # fmt: skip


def zeros(grad: Tensor | None, shape: tuple[Any, ...]) -> bool:
    return grad is not None and grad.shape == shape and not grad.numpy().any()


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_of_a_batch_of_none_every_parameter_gets_zeros(name: str, training: bool) -> None:
    make, shape = LAYERS[name]
    layer, x = make(), Tensor.zeros(*shape, requires_grad=True)
    with Tensor.train(training):
        out = layer(x, x) if name == "Bilinear" else layer(x)
        (out[0] if isinstance(out, tuple) else out).sum().backward()
    assert x.grad is not None and x.grad.shape == shape
    left_out = [known for known, part in layer.named_parameters() if not zeros(part.grad, part.shape)]
    assert not left_out


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_of_empty_bags_the_table_gets_zeros(mode: str, shape: tuple[int, ...]) -> None:
    bags, at = nn.EmbeddingBag(A, B, mode=mode), Tensor.zeros(*shape, dtype="int32")
    out = bags(at, Tensor.zeros(C, dtype="int32")) if len(shape) == 1 else bags(at)
    assert out.shape == ((C if len(shape) == 1 else shape[0]), B) and not out.numpy().any()
    out.sum().backward()
    assert zeros(bags.weight.grad, (A, B))


def none() -> Tensor:
    return Tensor.zeros(0, dtype="int32")


UPDATES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "index_add": lambda x, y: x.index_add(0, none(), y),
    "index_copy": lambda x, y: x.index_copy(0, none(), y),
    "index_reduce": lambda x, y: x.index_reduce(0, none(), y, "amax"),
    "index_put": lambda x, y: x.index_put((none(),), y),
    "index_fill": lambda x, y: x.index_fill(0, none(), y.sum()),
    "scatter": lambda x, y: x.scatter(0, Tensor.zeros(0, B, dtype="int32"), y),
    "scatter_add": lambda x, y: x.scatter_add(0, Tensor.zeros(0, B, dtype="int32"), y),
    "scatter_reduce": lambda x, y: x.scatter_reduce(0, Tensor.zeros(0, B, dtype="int32"), y, "amax"),
    "slice_scatter": lambda x, y: x.slice_scatter(y, 0, 1, 1),
    "masked_scatter": lambda x, y: x.masked_scatter(Tensor.zeros(A, B, dtype="bool"), y),
    "cat": lambda x, y: x.cat(y, dim=0),
    "where": lambda x, y: (y * 1).sum() + x,
    "written rows": lambda x, y: _written(x, none(), y),
    "written part": lambda x, y: _written(x, slice(1, 1), y),
    "segment_reduce": lambda x, y: x + y.segment_reduce("sum", lengths=Tensor.zeros(A, dtype="int32")),
}  # fmt: skip


def _written(x: Tensor, at: Any, y: Tensor) -> Tensor:
    out = x.clone()
    out[at] = y
    return out


@pytest.mark.parametrize("name", UPDATES)
def test_what_nothing_is_written_from_gets_a_gradient_of_nothing(name: str) -> None:
    x = Tensor(RNG.standard_normal((A, B)), dtype="float32", requires_grad=True)
    y = Tensor.zeros(0, B, requires_grad=True)
    out = UPDATES[name](x, y)
    assert out.numpy().tolist() == x.numpy().tolist()
    out.square().sum().backward()
    assert x.grad is not None and np.allclose(x.grad.numpy(), 2 * x.numpy())
    assert y.grad is not None and y.grad.shape == (0, B)
    only = UPDATES[name](Tensor(x.numpy()), y).sum()  # y alone is differentiated
    y.grad = None
    only.backward()
    assert y.grad is not None and y.grad.shape == (0, B)


def test_signs_of_zeros_stay_where_nothing_is_written() -> None:
    x, y = Tensor([-0.0, 0.0, 1.0]), Tensor.zeros(0, requires_grad=True)
    assert np.signbit(x.index_add(0, none(), y).numpy()).tolist() == [True, False, False]


def test_attention_with_masks_over_a_batch_of_none() -> None:
    heads = nn.MultiheadAttention(2 * A, 2, batch_first=True)
    x, there = Tensor.zeros(0, C, 2 * A), Tensor.zeros(0, C, dtype="bool")
    out, weights = heads(x, x, x, key_padding_mask=there, attn_mask=Tensor.zeros(0, C, C))
    assert weights is not None and (out.shape, weights.shape) == ((0, C, 2 * A), (0, C, C))


def test_samples_of_images_of_none() -> None:
    for images, channels in ((0, 3), (2, 0)):
        x, at = Tensor.zeros(images, channels, 4, 5, requires_grad=True), Tensor.zeros(images, 7, 6, 2)
        out = F.grid_sample(x, at, align_corners=False)
        assert out.shape == (images, channels, 7, 6)
        out.sum().backward()
        assert x.grad is not None and x.grad.shape == x.shape
    assert F.grid_sample(Tensor.zeros(0, 3, 4, 5, 2), Tensor.zeros(0, 7, 6, 1, 3)).shape == (0, 3, 7, 6, 1)


def test_unpooling_a_batch_of_none() -> None:
    x, at = Tensor.zeros(0, A, 3), Tensor.zeros(0, A, 3, dtype="int32")
    assert F.max_unpool1d(x, at, 2).shape == (0, A, 6)
    assert F.max_unpool2d(x.reshape(0, A, 3, 1), at.reshape(0, A, 3, 1), 2).shape == (0, A, 6, 2)


NOWHERE: dict[str, Callable[[Tensor, Tensor], object]] = {
    "getitem": lambda x, at: x[at],
    "setitem": lambda x, at: x.__setitem__(at, 1.0),
    "take": lambda x, at: x.take(at),
    "index_select": lambda x, at: x.index_select(0, at),
    "index_put": lambda x, at: x.index_put((at,), Tensor(1.0)),
    "put": lambda x, at: x.put(at, Tensor([1.0])),
    "gather": lambda x, at: x.gather(0, at),
    "index_add": lambda x, at: x.index_add(0, at, Tensor([1.0])),
}


@pytest.mark.parametrize("name", NOWHERE)
def test_there_is_no_place_on_an_empty_axis(name: str) -> None:
    """Of other axes it is not known before the positions are computed; of these it is."""
    with pytest.raises(IndexError, match=f"{name}: .*into axis 0 of shape .0,., which is empty"):
        NOWHERE[name](Tensor.zeros(0), Tensor([0]))
    nothing = Tensor.zeros(0, dtype="int64")
    if name not in ("put", "index_add"):
        NOWHERE[name](Tensor.zeros(0), nothing)
