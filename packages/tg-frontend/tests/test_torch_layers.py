"""Layers by PyTorch's names: attention and transformers beside plain numpy, thin ones beside their functions."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tg_frontend import Tensor, nn
from tg_frontend.nn import functional as F

RNG = np.random.default_rng(11)
Floats = npt.NDArray[np.float64]


def draw(*shape: int) -> Floats:
    return RNG.uniform(-1, 1, shape)


def same(got: Tensor, want: Any, tolerance: float = 1e-5) -> None:
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)


def _softmax(x: Floats) -> Floats:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)  # type: ignore[no-any-return]


def _attention(
    layer: nn.MultiheadAttention, q: Floats, k: Floats, v: Floats, added: Any = 0.0
) -> tuple[Floats, Floats]:
    """Of one example, head by head."""
    assert layer.in_proj_weight is not None and layer.in_proj_bias is not None and layer.out_proj.bias is not None
    weights, biases = np.split(layer.in_proj_weight.numpy(), 3), np.split(layer.in_proj_bias.numpy(), 3)
    q, k, v = (x @ w.T + b for x, w, b in zip((q, k, v), weights, biases, strict=True))
    heads, shares = [], []
    for part in np.split(np.arange(layer.embed_dim), layer.num_heads):
        share = _softmax(q[:, part] @ k[:, part].T / math.sqrt(len(part)) + added)
        heads.append(share @ v[:, part])
        shares.append(share)
    out = np.concatenate(heads, -1) @ layer.out_proj.weight.numpy().T + layer.out_proj.bias.numpy()
    return out, np.stack(shares)


@pytest.mark.parametrize("heads", [1, 3])
def test_attention_of_heads(heads: int) -> None:
    layer = nn.MultiheadAttention(6, heads, batch_first=True)
    assert layer.in_proj_bias is not None
    layer.in_proj_bias.assign(Tensor(draw(18).astype(np.float32)))
    q, k, v = draw(2, 5, 6), draw(2, 7, 6), draw(2, 7, 6)
    forbidden = RNG.random((5, 7)) > 0.7
    forbidden[:, 0] = False
    low = np.where(forbidden, -np.inf, 0.0)
    hidden = np.zeros((2, 7), bool)
    hidden[1, 5:] = True
    tq, tk, tv = (Tensor(x.astype(np.float32)) for x in (q, k, v))
    for mask in (Tensor(forbidden), Tensor(low.astype(np.float32))):
        out, shares = layer(tq, tk, tv, Tensor(hidden), attn_mask=mask, average_attn_weights=False)
        assert shares is not None
        for i in range(2):
            want, share = _attention(layer, q[i], k[i], v[i], low + np.where(hidden[i], -np.inf, 0.0))
            same(out[i], want)
            same(shares[i], share)
    swapped = nn.MultiheadAttention(6, heads)
    nn.state.load_state_dict(swapped, nn.state.get_state_dict(layer))
    turned, none = swapped(tq.transpose(0, 1), tk.transpose(0, 1), tv.transpose(0, 1), need_weights=False)
    assert none is None
    same(turned.transpose(0, 1), layer(tq, tk, tv)[0].numpy())
    same(swapped(tq[0], tk[0], tv[0])[0], _attention(layer, q[0], k[0], v[0])[0])


def test_causal_attention_does_not_look_ahead() -> None:
    layer = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 9, dropout=0.0, batch_first=True), 2)
    x = draw(1, 5, 6).astype(np.float32)
    changed = x.copy()
    changed[:, 3:] += 1
    before, after = (layer(Tensor(v), is_causal=True).numpy() for v in (x, changed))
    np.testing.assert_allclose(before[:, :3], after[:, :3], atol=1e-6)
    assert np.abs(before[:, 3:] - after[:, 3:]).max() > 1e-3


@pytest.mark.parametrize("first", [False, True])
def test_a_decoder_layer_step_by_step(first: bool) -> None:
    layer = nn.TransformerDecoderLayer(6, 2, 9, dropout=0.0, activation="gelu", batch_first=True, norm_first=first)
    x, memory = Tensor(draw(2, 5, 6).astype(np.float32)), Tensor(draw(2, 3, 6).astype(np.float32))

    def feed(x: Tensor) -> Tensor:
        return layer.linear2(F.gelu(layer.linear1(x)))

    parts: Any = [
        (layer.norm1, lambda x: layer.self_attn(x, x, x)[0]),
        (layer.norm2, lambda x: layer.multihead_attn(x, memory, memory)[0]),
        (layer.norm3, feed),
    ]
    want = x
    for norm, part in parts:
        want = want + part(norm(want)) if first else norm(want + part(want))
    same(layer(x, memory), want.numpy())


def test_copies_of_layers_learn() -> None:
    layer = nn.Linear(3, 2)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        other(Tensor.ones(1, 3)).sum().backward()
        assert other.weight.grad is not None and layer.weight.grad is None
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 3)
    model(Tensor(draw(5, 2, 4).astype(np.float32))).square().sum().backward()
    assert all(p.grad is not None for p in nn.state.get_parameters(model))


@pytest.mark.parametrize(
    ("layer", "mode", "extra"),
    [("ZeroPad", "constant", ()), ("ConstantPad", "constant", (2.5,)), ("ReflectionPad", "reflect", ()),
     ("ReplicationPad", "edge", ()), ("CircularPad", "wrap", ())],
)  # fmt: skip
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_padding(layer: str, mode: Any, extra: tuple[float, ...], axes: int) -> None:
    x = draw(2, *(4, 3, 5)[-axes:])
    amounts = (1, 2, 2, 1, 0, 1)[: 2 * axes]
    pads = [(0, 0), *(amounts[2 * i : 2 * i + 2] for i in reversed(range(axes)))]
    want = np.pad(x, pads, mode, **({"constant_values": extra[0]} if extra else {}))
    kind = getattr(nn, f"{layer}{axes}d")
    same(kind(amounts, *extra)(Tensor(x)), want)
    same(kind(amounts, *extra)(Tensor(x[None])), want[None])
    with pytest.raises(ValueError, match=f"{layer}{axes}d: input of shape"):
        kind(1, *extra)(Tensor.ones(3))
    with pytest.raises(ValueError, match=f"{layer}{axes}d: padding"):
        kind((1, 2, 3), *extra)


def test_layers_are_told_whether_they_train() -> None:
    x = Tensor.ones(50, 40, 2)
    for layer in (nn.Dropout1d(0.5), nn.AlphaDropout(0.5), nn.FeatureAlphaDropout(p=0.5)):
        assert (layer(x).numpy() == 1).all()
        with Tensor.train():
            assert len(np.unique(layer(x).numpy())) == 2
    with Tensor.train():
        slopes = nn.RReLU(0.25, 0.5)(-x).numpy()
    assert -0.5 <= slopes.min() < slopes.max() <= -0.25


def test_tables() -> None:
    bag = nn.EmbeddingBag(5, 3, mode="sum", padding_idx=1)
    table = bag.weight.numpy()
    assert (table[1] == 0).all()
    same(bag(Tensor([[0, 1], [2, 2]])), [table[0], 2 * table[2]])
    same(bag(Tensor([0, 2]), Tensor([0, 1]), Tensor([2.0, 3.0])), [2 * table[0], 3 * table[2]])
    both = nn.Bilinear(3, 2, 4)
    x, y = draw(5, 3), draw(5, 2)
    assert both.bias is not None
    want = np.einsum("bi,kij,bj->bk", x, both.weight.numpy(), y) + both.bias.numpy()
    same(both(Tensor(x.astype(np.float32)), Tensor(y.astype(np.float32))), want)
    slope = nn.PReLU(2, 0.5)
    same(slope(Tensor([[-1.0, -2.0], [1.0, 2.0]])), [[-0.5, -1.0], [1.0, 2.0]])


def test_pools_remember_their_settings() -> None:
    x = Tensor(draw(1, 2, 9).astype(np.float32))
    most, where = nn.MaxPool1d(3, 3, return_indices=True)(x)
    assert nn.MaxUnpool1d(3)(most, where).shape == (1, 2, 9)
    same(nn.AdaptiveAvgPool1d(output_size=4)(x), F.adaptive_avg_pool1d(x, 4).numpy())
    same(nn.LPPool1d(2, 3)(x), F.lp_pool1d(x, 2, 3).numpy())
    same(nn.Upsample(scale_factor=2)(x), np.repeat(x.numpy(), 2, -1))
    assert nn.Conv3d(2, 3, 2)(Tensor.ones(2, 4, 5, 6)).shape == (3, 3, 4, 5)
    assert nn.ConvTranspose3d(2, 3, 2)(Tensor.ones(2, 4, 5, 6)).shape == (3, 5, 6, 7)


def heads_of(width: int, hidden: Tensor | None = None, mask: Tensor | None = None) -> Any:
    x = Tensor.ones(2, 3, width)
    return nn.MultiheadAttention(6, 2)(x, x, x, hidden, attn_mask=mask)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: nn.MultiheadAttention(6, 4), "MultiheadAttention: 4 heads do not divide"),
        (lambda: heads_of(5), "MultiheadAttention: .*shapes"),
        (
            lambda: heads_of(6, mask=Tensor.ones(3, 3)),
            "MultiheadAttention: .*attn_mask of shape",
        ),
        (
            lambda: heads_of(6, Tensor.ones(2, 2)),
            "MultiheadAttention: .*key_padding_mask of shape",
        ),
        (lambda: nn.TransformerEncoderLayer(6, 2, activation="x"), "TransformerEncoderLayer: activation 'x'"),
        (lambda: nn.EmbeddingBag(3, 2, padding_idx=3), "EmbeddingBag"),
        (lambda: nn.Softmax2d()(Tensor.ones(2, 2)), "Softmax2d: input of shape"),
    ],
)
def test_what_does_not_fit_is_said(call: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()


def test_an_adaptive_softmax_is_the_softmax_of_its_clusters() -> None:
    layer = nn.AdaptiveLogSoftmaxWithLoss(13, 23, [5, 6, 17], 2.2, head_bias=True)
    x, targets = draw(9, 13).astype(np.float32), np.array([0, 4, 5, 6, 16, 17, 22, 2, 11])
    head = _softmax(x @ layer.head.weight.numpy().T + layer.head.bias.numpy())  # type: ignore[union-attr]
    parts = [head[:, :5]]
    for i, (down, scores) in enumerate(layer.tail):
        assert down.weight.shape == (int(13 // 2.2 ** (i + 1)), 13)
        parts.append(head[:, 5 + i, None] * _softmax(x @ down.weight.numpy().T @ scores.weight.numpy().T))
    want = np.log(np.concatenate(parts, -1))
    np.testing.assert_allclose(np.exp(want).sum(-1), 1, rtol=1e-5)
    output, loss = layer(Tensor(x), Tensor(targets))
    same(output, want[range(9), targets])
    same(loss, -want[range(9), targets].mean())
    same(layer(Tensor(x[3]), Tensor(17)).output, want[3, 17])
    same(layer.log_prob(Tensor(x)), want)
    assert (layer.predict(Tensor(x)).numpy() == want.argmax(-1)).all()
    same(layer(Tensor(x[:2]), Tensor([250, 3], dtype="uint8")).output, [np.nan, want[1, 3]])
    same(layer(Tensor(x[:2]), Tensor([-1, 23])).output, [np.nan, np.nan])
    assert sorted(nn.state.get_state_dict(layer)) == sorted(
        ["head.weight", "head.bias", *(f"tail.{i}.{j}.weight" for i in range(3) for j in range(2))]
    )
    for bad in ([], [0, 5], [5, 5], [7, 5], [23]):
        with pytest.raises(ValueError, match="cutoffs"):
            nn.AdaptiveLogSoftmaxWithLoss(13, 23, bad)
    with pytest.raises(ValueError, match="leave none"):
        nn.AdaptiveLogSoftmaxWithLoss(13, 23, [5, 9], 10)
    with pytest.raises(TypeError, match="targets are integers"):
        layer(Tensor(x), Tensor(x[:, 0]))
    with pytest.raises(ValueError, match=r"\(batch, 13\)"):
        layer(Tensor(x), Tensor(targets[:3]))


def test_an_adaptive_softmax_is_torchs() -> None:
    torch: Any = pytest.importorskip("torch")
    arguments = 13, 23, [5, 6, 17], 2.2, True
    ours, theirs = nn.AdaptiveLogSoftmaxWithLoss(*arguments), torch.nn.AdaptiveLogSoftmaxWithLoss(*arguments)
    theirs.load_state_dict({key: torch.from_numpy(t.numpy().copy()) for key, t in ours.state_dict().items()})
    x, targets = draw(9, 13).astype(np.float32), np.array([0, 4, 5, 6, 16, 17, 22, 2, 11])
    want = theirs(torch.from_numpy(x), torch.from_numpy(targets))
    got = ours(Tensor(x), Tensor(targets))
    got.loss.backward()
    want.loss.backward()
    for a, b in zip(got, want, strict=True):
        same(a, b.detach().numpy())
    same(ours.log_prob(Tensor(x)), theirs.log_prob(torch.from_numpy(x)).detach().numpy())
    assert (ours.predict(Tensor(x)).numpy() == theirs.predict(torch.from_numpy(x)).numpy()).all()
    slopes = dict(theirs.named_parameters())
    for key, t in ours.state_dict().items():
        assert t.grad is not None
        same(t.grad, slopes[key].grad.numpy())


@pytest.mark.parametrize("momentum", [0.1, None])
def test_empty_batches_are_counted_and_teach_nothing(momentum: float | None) -> None:
    for layer, shape in ((nn.BatchNorm1d, (0, 5)), (nn.BatchNorm2d, (0, 5, 2, 2)), (nn.BatchNorm2d, (4, 5, 0, 2))):
        norm = layer(5, momentum=momentum).train()
        norm(Tensor.ones(*shape))
        assert norm.num_batches_tracked.item() == 1
        assert norm.running_mean.tolist() == [0] * 5 and norm.running_var.tolist() == [1] * 5


@pytest.mark.parametrize("n", [1, 2, 3])
def test_transposed_convolutions_give_back_the_size_that_a_convolution_had(n: int) -> None:
    rng = np.random.default_rng(61 + n)
    for _ in range(3):
        kernel, stride, dilation, padding = (
            tuple(int(k) for k in rng.integers(low, high, n)) for low, high in ((1, 4), (1, 4), (1, 3), (0, 2))
        )
        more = [int(e) for e in rng.integers(2, 7, n)]
        sizes = tuple(d * (k - 1) + e for d, k, e in zip(dilation, kernel, more, strict=True))
        down: Any = getattr(nn, f"Conv{n}d")(2, 3, kernel, stride, padding, dilation)
        up: Any = getattr(nn, f"ConvTranspose{n}d")(3, 2, kernel, stride, padding, dilation=dilation)
        x = Tensor(rng.standard_normal((5, 2, *sizes)).astype(np.float32), requires_grad=True)
        y = down(x)
        assert up(y, output_size=sizes).shape == x.shape == up(y, x.shape).shape
        assert up(y[0], output_size=list(sizes)).shape == x.shape[1:]
        behind = tuple(size - usual for size, usual in zip(sizes, up(y).shape[2:], strict=True))
        same: Any = getattr(nn, f"ConvTranspose{n}d")(3, 2, kernel, stride, padding, behind, dilation=dilation)
        same.weight, same.bias = up.weight, up.bias
        assert np.array_equal(up(y, sizes).numpy(), same(y).numpy())
        for wrong in ([size + step for size, step in zip(sizes, stride, strict=True)], [0] * n):
            with pytest.raises(ValueError, match="output_size"):
                up(y, wrong)
        with pytest.raises(ValueError, match="it has"):
            up(y, (1,) * (n + 1))
