"""Normalisation, attention and losses, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tg_dtype import DType, dtypes
from tg_frontend import Tensor

Array = NDArray[Any]


def sample(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def same(got: Tensor, want: Any) -> None:
    expected = np.asarray(want)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, rtol=2e-5, atol=2e-5)


def log_softmax(x: Array, axis: int) -> Array:
    out: Array = x - x.max(axis, keepdims=True)
    out -= np.log(np.exp(out).sum(axis, keepdims=True))
    return out


def test_layernorm(backend: str) -> None:
    x = sample(3, 4, 5)
    for axis in (-1, 1, (1, 2)):
        want = (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-5)
        same(Tensor(x).layernorm(axis), want)
    assert Tensor(x).half().layernorm().dtype is dtypes.float16


def test_batchnorm(backend: str) -> None:
    x, w, b, m, s = sample(2, 3, 4), sample(3), sample(3, seed=1), sample(3, seed=2), sample(3, seed=3)
    col = (slice(None), None)
    want = (x - m[col]) * w[col] * s[col] + b[col]
    same(Tensor(x).batchnorm(Tensor(w), Tensor(b), Tensor(m), Tensor(s)), want)
    same(Tensor(x).batchnorm(None, None, Tensor(m), Tensor(s)), (x - m[col]) * s[col])


def attention(q: Array, k: Array, v: Array, mask: Array | None = None) -> Array:
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    out: Array = np.exp(log_softmax(scores, -1)) @ v
    return out


def test_attention(backend: str) -> None:
    q, k, v = sample(2, 4, 5, 8), sample(2, 4, 6, 8, seed=1), sample(2, 4, 6, 3, seed=2)
    t, u, w = Tensor(q), Tensor(k), Tensor(v)
    same(t.scaled_dot_product_attention(u, w), attention(q, k, v))
    mask = np.random.default_rng(0).random((5, 6)) > 0.3
    mask[:, 0] = True
    same(t.scaled_dot_product_attention(u, w, Tensor(mask)), attention(q, k, v, mask))
    bias = sample(2, 1, 5, 6)
    same(t.scaled_dot_product_attention(u, w, Tensor(bias)), attention(q, k, v, bias))
    causal = np.tril(np.ones((5, 6), bool))
    same(t.scaled_dot_product_attention(u, w, is_causal=True), attention(q, k, v, causal))
    grouped = t.scaled_dot_product_attention(Tensor(k[:, :2]), Tensor(v[:, :2]), enable_gqa=True)
    same(grouped, attention(q, k[:, :2].repeat(2, 1), v[:, :2].repeat(2, 1)))
    same(t.scaled_dot_product_attention(u, w, scale=1.0), attention(q * np.sqrt(8), k, v))
    half = t.half().scaled_dot_product_attention(u.half(), w.half())
    assert half.dtype is dtypes.float16
    np.testing.assert_allclose(half.numpy(), attention(q, k, v), atol=5e-3)


@pytest.mark.parametrize("seed", range(3))
def test_attention_in_halves_adds_up_in_floats(seed: int) -> None:
    """Sums of weights that are not divided yet are more than halves hold, where means of values are not."""
    rng = np.random.default_rng(seed)
    rows, keys, width = (int(n) for n in rng.integers((64, 1024, 3), (80, 1300, 9)))
    q, k = (np.zeros((2, n, width), np.float16) for n in (rows, keys))  # all weigh the same
    v = np.where(rng.random((2, keys, width)) < 0.9, 60000, 40000).astype(np.float16)
    got = Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v)).numpy()
    want = np.broadcast_to(v.astype(np.float64).mean(1, keepdims=True), got.shape)
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=2e-3)


def attended(q: Array, k: Array, v: Array, mask: Array) -> Array:
    """In float64, from a mask of bools; 0 for rows that see nothing."""
    scores = np.where(mask, q.astype(np.float64) @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    highest = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isinf(highest), 0, highest))
    total = powers.sum(-1, keepdims=True)
    out: Array = powers @ v / np.where(total == 0, 1, total)
    return out


@pytest.mark.parametrize("masked", ["bools", "floats"])
@pytest.mark.parametrize("seed", range(3))
def test_attention_of_rows_that_see_nothing(seed: int, masked: str) -> None:
    """They are 0, also where they are divided by their sum last; and no gradient is NaN."""
    rng = np.random.default_rng(seed)
    rows, keys = (int(n) for n in (rng.integers((64, 1024), (80, 1300)) if seed else (5, 7)))
    data = [rng.standard_normal((n, 5)).astype(np.float32) for n in (rows, keys, keys)]
    mask = rng.random((rows, keys)) < 0.5
    mask[0], mask[1:, 0] = False, True
    given = Tensor(mask) if masked == "bools" else Tensor(np.where(mask, 0, -np.inf).astype(np.float32))
    q, k, v = (Tensor(x, requires_grad=True) for x in data)
    out = q.scaled_dot_product_attention(k, v, given)
    assert not out.numpy()[0].any()
    np.testing.assert_allclose(out.numpy(), attended(data[0], data[1], data[2], mask), rtol=1e-4, atol=1e-5)
    out.sum().backward()
    grads = [x.grad.numpy() for x in (q, k, v) if x.grad is not None]
    assert len(grads) == 3 and all(np.isfinite(grad).all() for grad in grads) and not grads[0][0].any()
    weights = attended(data[0], data[1], np.eye(keys), mask)
    np.testing.assert_allclose(grads[2], np.broadcast_to(weights.sum(0)[:, None], (keys, 5)), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("recorded", [False, True], ids=["alone", "with gradients"])
@pytest.mark.parametrize(("rows", "columns"), [(511, 511), (512, 512), (521, 521), (1021, 257), (513, 1031), (577, 1)])
def test_causal_attention_of_many_rows(rows: int, columns: int, recorded: bool) -> None:
    """Which is computed in runs of rows, or ends at the diagonal of a block: as a mask over all of it."""
    rng = np.random.default_rng(rows)
    data = [rng.standard_normal(s).astype(np.float32) for s in ((2, rows, 3), (2, columns, 3), (2, columns, 5))]
    weight = Tensor(rng.standard_normal((2, rows, 5)).astype(np.float32))
    found = []
    for options in ({"is_causal": True}, {"attn_mask": Tensor(np.tri(rows, columns) > 0)}):
        q, k, v = (Tensor(x, requires_grad=recorded) for x in data)
        out = q.scaled_dot_product_attention(k, v, **options)
        if recorded:
            (out * weight).sum().backward()
        found.append([x.numpy() for x in (out, q.grad, k.grad, v.grad) if x is not None])
    assert [len(one) for one in found] == ([4, 4] if recorded else [1, 1])
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


TOLERANCE = {dtypes.float64: 1e-12, dtypes.float32: 1e-5, dtypes.float16: 4e-3, dtypes.bfloat16: 3e-2}


@pytest.mark.parametrize("kind", TOLERANCE, ids=lambda kind: kind.name)
@pytest.mark.parametrize("seed", range(3))
def test_causal_attention_of_many_heads(seed: int, kind: DType) -> None:
    """A kernel that holds a block's scores is right at every block, and with keys that no row sees, or all do."""
    rng = np.random.default_rng(seed)
    rows, columns = (int(n) for n in rng.integers(512, 800, 2))
    heads, width = 2 + int(rng.integers(3)), int(rng.integers(3, 12))
    scores = rng.standard_normal((heads, rows, width)), rng.standard_normal((heads, columns, width))
    q, k, v = (Tensor(x).cast(kind) for x in (*scores, rng.standard_normal((heads, columns, width))))
    got = q.scaled_dot_product_attention(k, v, is_causal=True).cast(dtypes.float64).numpy()
    exact = [x.cast(dtypes.float64).numpy() for x in (q, k, v)]
    want = attended(exact[0], exact[1], exact[2], np.tri(rows, columns, dtype=bool))
    np.testing.assert_allclose(got, want, rtol=TOLERANCE[kind], atol=TOLERANCE[kind])


@pytest.mark.parametrize("heads", [5, 18, 61])
def test_causal_attention_is_one_kernel(heads: int) -> None:
    """Also the mask, however many heads it is for: nothing but the result is in memory."""
    q, k, v = (Tensor.ones(heads, 1021, 16, device="CPU").contiguous().realize() for _ in range(3))
    assert len(q.scaled_dot_product_attention(k, v, is_causal=True).schedule()) == 1


def test_cross_entropy(backend: str) -> None:
    x, y = sample(6, 4), np.array([0, 3, 1, 1, 2, 0])
    rows = -log_softmax(x, 1)[np.arange(6), y]
    same(Tensor(x).cross_entropy(Tensor(y)), rows.mean())
    same(Tensor(x).cross_entropy(Tensor(y), reduction="sum"), rows.sum())
    same(Tensor(x).cross_entropy(Tensor(y), reduction="none"), rows)
    smooth = 0.9 * rows - 0.1 * log_softmax(x, 1).mean(1)
    same(Tensor(x).cross_entropy(Tensor(y), label_smoothing=0.1), smooth.mean())
    same(Tensor(x).cross_entropy(Tensor(y), ignore_index=1), rows[y != 1].mean())
    share = np.abs(sample(6, 4, seed=1))
    same(Tensor(x).cross_entropy(Tensor(share)), -(share * log_softmax(x, 1)).sum(1).mean())
    same(Tensor(x[0]).cross_entropy(Tensor(3)), -log_softmax(x[0], 0)[3])
    images, labels = sample(2, 3, 4, 5), np.random.default_rng(0).integers(0, 3, (2, 4, 5))
    picked = np.take_along_axis(-log_softmax(images, 1), labels[:, None], 1)
    same(Tensor(images).cross_entropy(Tensor(labels)), picked.mean())


def test_sparse_categorical_crossentropy(backend: str) -> None:
    x, y = sample(2, 3, 4), np.array([[0, -1, 3], [2, 2, -1]])
    rows = -np.take_along_axis(log_softmax(x, 2), np.maximum(y, 0)[..., None], 2)[..., 0]
    kept = y != -1
    same(Tensor(x).sparse_categorical_crossentropy(Tensor(y)), rows[kept].mean())
    same(Tensor(x).sparse_categorical_crossentropy(Tensor(y), reduction="sum"), rows[kept].sum())
    smooth = 0.8 * rows - 0.2 * log_softmax(x, 2).mean(2)
    same(Tensor(x).sparse_categorical_crossentropy(Tensor(y), label_smoothing=0.2), smooth[kept].mean())


def test_nll_and_binary_losses(backend: str) -> None:
    x, y, w = log_softmax(sample(5, 3), 1), np.array([0, 2, 1, 1, 0]), np.array([1, 2, 0.5], np.float32)
    rows = -x[np.arange(5), y]
    same(Tensor(x).nll_loss(Tensor(y)), rows.mean())
    same(Tensor(x).nll_loss(Tensor(y), Tensor(w)), (rows * w[y]).sum() / w[y].sum())
    same(Tensor(x).nll_loss(Tensor(y), ignore_index=0), rows[y != 0].mean())
    same(Tensor(x).nll_loss(Tensor(y), Tensor(w), reduction="none"), rows * w[y])
    logits, target = sample(7), (sample(7, seed=1) > 0).astype(np.float32)
    p = 1 / (1 + np.exp(-logits))
    want = -(target * np.log(p) + (1 - target) * np.log(1 - p))
    same(Tensor(logits).sigmoid().binary_crossentropy(Tensor(target)), want.mean())
    same(Tensor(logits).binary_crossentropy_logits(Tensor(target), "none"), want)
    weighted = -(3 * target * np.log(p) + (1 - target) * np.log(1 - p))
    same(Tensor(logits).binary_crossentropy_logits(Tensor(target), pos_weight=Tensor([3.0])), weighted.mean())
    assert Tensor([200.0]).binary_crossentropy_logits(Tensor([0.0])).item() == 200.0


Q = (2, 3, 4)
BAD: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "layernorm": (lambda: Tensor.ones(2).layernorm(1), IndexError, "layernorm: axis 1"),
    "batchnorm": (
        lambda: Tensor.ones(2, 3).batchnorm(None, None, Tensor.ones(2), Tensor.ones(3)), ValueError, "mean of shape"
    ),
    "gelu": (lambda: Tensor.ones(2).gelu("erf"), ValueError, "approximate 'erf'"),
    "attention": (
        lambda: Tensor.ones(*Q).scaled_dot_product_attention(Tensor.ones(2, 3, 5), Tensor.ones(*Q)), ValueError,
        r"query \(2, 3, 4\), key \(2, 3, 5\), value \(2, 3, 4\)",
    ),
    "attention mask": (
        lambda: Tensor.ones(*Q).scaled_dot_product_attention(Tensor.ones(*Q), Tensor.ones(*Q), Tensor.ones(4, 4)),
        ValueError, "scaled_dot_product_attention: the shapes",
    ),
    "attention both": (
        lambda: Tensor.ones(*Q).scaled_dot_product_attention(
            Tensor.ones(*Q), Tensor.ones(*Q), Tensor.ones(3, 3), is_causal=True), ValueError, "not both",
    ),
    "attention heads": (
        lambda: Tensor.ones(3, 2, 2).scaled_dot_product_attention(
            Tensor.ones(2, 2, 2), Tensor.ones(2, 2, 2), enable_gqa=True), ValueError, "must divide",
    ),
    "cross_entropy": (
        lambda: Tensor.ones(3, 4).cross_entropy(Tensor([1, 2])), ValueError,
        r"cross_entropy: classes of shape \(2,\) for scores of shape \(3, 4\)",
    ),
    "cross_entropy of tokens": (
        lambda: Tensor.ones(2, 3, 5).cross_entropy(Tensor.zeros(2, 3, dtype="int32")), ValueError,
        r"not \(2, 5\): the axis of classes is 1; .transpose\(1, -1\) the scores, or .flatten both",
    ),
    "cross_entropy dtype": (
        lambda: Tensor.ones(3, 4).cross_entropy(Tensor([1.0, 2, 3])), TypeError, "classes are integers"),
    "cross_entropy reduction": (
        lambda: Tensor.ones(3, 4).cross_entropy(Tensor([1, 2, 3]), "avg"), ValueError, "reduction 'avg'"),
    "smoothing": (
        lambda: Tensor.ones(3, 4).cross_entropy(Tensor([1, 2, 3]), label_smoothing=2), ValueError, "label_smoothing 2"),
    "scalar": (lambda: Tensor(1.0).cross_entropy(Tensor(1)), ValueError, "have no classes"),
    "nll weight": (
        lambda: Tensor.ones(3, 4).nll_loss(Tensor([1, 2, 3]), Tensor.ones(3)), ValueError, "for 4 classes"),
    "bce": (lambda: Tensor.ones(3).binary_crossentropy(Tensor.ones(4)), ValueError, r"shapes \(3,\) and \(4,\) differ"),
    "dropout": (lambda: Tensor.ones(3).dropout(1.5), ValueError, "not a probability"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_named(name: str) -> None:
    function, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        function()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_labels_of_any_integer_type(dtype: str, backend: str) -> None:
    scores = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    labels = [0, 2, 1, 1]
    want = -logs[range(4), labels]
    x, y = Tensor(scores), Tensor(labels, dtype=dtype)
    losses = (
        x.sparse_categorical_crossentropy(y, reduction="none"),
        x.cross_entropy(y, reduction="none"),
        Tensor(logs).nll_loss(y, reduction="none"),
    )
    for loss in losses:
        np.testing.assert_allclose(loss.numpy(), want, rtol=1e-5)


@pytest.mark.parametrize("method", ["sparse_categorical_crossentropy", "cross_entropy", "nll_loss"])
def test_a_class_that_is_not_there_shows(method: str, backend: str) -> None:
    x = Tensor(np.random.default_rng(0).standard_normal((4, 10)).astype(np.float32))
    for wrong in (99, 10, -3, 2**32, 2**32 + 1):
        loss = getattr(x, method)(Tensor([1, wrong, 2, 9], dtype="int64"), reduction="none").numpy()
        assert np.isnan(loss).tolist() == [False, True, False, False], wrong
        assert np.isnan(getattr(x, method)(Tensor([1, wrong, 2, 9], dtype="int64")).item())
        with pytest.raises(IndexError, match=rf"^Tensor\.{method}: index {wrong} is out of bounds for 10 classes"):
            getattr(x, method)(np.array([1, wrong, 2, 9]))
        ignored = getattr(x, method)(Tensor([1, wrong, 2, 9], dtype="int64"), ignore_index=wrong)
        kept = getattr(Tensor(x.numpy()[[0, 2, 3]]), method)(Tensor([1, 2, 9]))
        if abs(wrong) < 2**31:
            np.testing.assert_allclose(ignored.item(), kept.item(), rtol=1e-5)


def test_the_class_minus_100_does_not_count_as_in_pytorch() -> None:
    x = Tensor(np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32), requires_grad=True)
    loss = x.cross_entropy(Tensor([1, -100, 3]))
    np.testing.assert_allclose(loss.item(), x.detach()[[0, 2]].cross_entropy(Tensor([1, 3])).item(), rtol=1e-6)
    loss.backward()
    assert x.grad is not None and x.grad[1].tolist() == [0, 0, 0, 0]
    assert np.isnan(x.detach().cross_entropy(Tensor([1, -100, 3]), ignore_index=None).item())
