"""Products in integers: weights as digits, rows rounded to 16 bits, and models that multiply so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, nn
from tg_frontend.files.gguf.digits import Digits, digits_of
from tg_frontend.files.gguf.kinds import KINDS, Kind
from tg_frontend.language import load
from tg_frontend.language.decoder import Weights
from tg_frontend.language.integers import IntegerWeight, rounded
from tg_frontend.text.bytepairs import ALPHABET

Array = np.ndarray[Any, np.dtype[Any]]
SORTS = {kind.name: kind for kind in KINDS.values() if kind.name in (
    "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")}  # fmt: skip


def some(kind: Kind, outputs: int, blocks: int, seed: int = 0) -> Tensor:
    """Random blocks, none of whose scales is infinite."""
    return Tensor(np.random.default_rng(seed).integers(0, 256, (outputs, blocks, kind.nbytes), np.uint8) & 0x3B)


def decoded(kind: Kind, packed: Tensor) -> Array:
    assert kind.decode is not None
    return kind.decode(packed).flatten(1).numpy()


def digits(kind: Kind, packed: Tensor) -> Digits:
    found = digits_of(kind.name, packed)
    assert found is not None
    return found


@pytest.mark.parametrize("name", SORTS)
def test_digits_are_what_is_decoded(name: str) -> None:
    packed = some(SORTS[name], 3, 5)
    found = digits(SORTS[name], packed)
    values, scale = found.values.numpy().astype(np.float64), found.scale.numpy().astype(np.float64)
    assert values.max() < 1 << found.bits
    least = 0.0 if found.least is None else found.least.numpy().astype(np.float64)[..., None]
    got = ((values - found.zero) * scale[..., None] + least).reshape(3, -1)
    want = decoded(SORTS[name], packed)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6 * np.abs(want).max())


def test_other_kinds_have_no_digits() -> None:
    assert digits_of("IQ4_NL", some(KINDS[20], 2, 2)) is None


@pytest.mark.parametrize("name", SORTS)
def test_products(name: str) -> None:
    kind = SORTS[name]
    parts = [some(kind, outputs, 3, outputs) for outputs in (32, 16)]
    weight = IntegerWeight([digits(kind, packed) for packed in parts])
    x = np.random.default_rng(1).normal(size=(2, 3 * kind.elements)).astype(np.float32)
    every = np.concatenate([decoded(kind, packed) for packed in parts]).astype(np.float64)
    most = np.abs(x).max() * 2.0**-16 * np.abs(every).sum(1)  # half a step for each term
    for room in (None, Tensor.empty(*weight.room_shape, dtype="uint8")):
        got = weight(rounded(Tensor(x), weight.run), room).numpy()
        assert np.all(np.abs(got - x.astype(np.float64) @ every.T) < most)


def test_rows_at_the_rim() -> None:
    """Runs of nothing, of what is next to nothing, and of one large number: nothing wraps, nothing is made up."""
    x = np.zeros((1, 160), np.float32)
    x[0, 32], x[0, 64], x[0, 65], x[0, 96], x[0, 128] = 1e-38, 3e38, -3e38, -1.0, 1e-20
    found = rounded(Tensor(x), 32)
    numbers = found.high.numpy().astype(np.int64) * 256 + found.low.numpy()
    assert np.abs(numbers).max() == 127 * 256
    got = (numbers * found.scale.numpy()[..., None].astype(np.float64)).reshape(1, -1)
    np.testing.assert_allclose(got, x, rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(found.total.numpy(), got.reshape(1, 5, 32).sum(-1), rtol=1e-6)
    for wrong in (np.nan, np.inf):
        x[0, 5] = wrong
        weight = IntegerWeight([digits(SORTS["Q4_0"], some(SORTS["Q4_0"], 16, 5))])
        assert np.isnan(weight(rounded(Tensor(x), 32)).numpy()).all()


def saved(path: Path, quantization: str) -> None:
    """A model of two layers with biases, whose tokens are bytes."""
    draw, width, inner = np.random.default_rng(3), 64, 96
    tokens = [*ALPHABET, *(f"<|{i}|>" for i in range(16))]
    shapes = {"attn_q": (width, width), "attn_k": (32, width), "attn_v": (32, width), "attn_output": (width, width),
              "ffn_gate": (inner, width), "ffn_up": (inner, width), "ffn_down": (width, inner)}  # fmt: skip
    state = {"token_embd.weight": draw.normal(size=(len(tokens), width)), "output_norm.weight": np.ones(width)}
    for layer in range(2):
        for name, shape in shapes.items():
            state[f"blk.{layer}.{name}.weight"] = draw.normal(size=shape) * shape[1] ** -0.5
            if name in ("attn_q", "attn_k", "attn_v"):
                state[f"blk.{layer}.{name}.bias"] = draw.normal(size=shape[0])
        state |= {f"blk.{layer}.{name}.weight": np.ones(width) for name in ("attn_norm", "ffn_norm")}
    metadata: dict[str, Any] = {
        "general.architecture": "qwen2", "qwen2.block_count": 2, "qwen2.embedding_length": width,
        "qwen2.feed_forward_length": inner, "qwen2.context_length": 60, "qwen2.attention.head_count": 4,
        "qwen2.attention.head_count_kv": 2, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": [1] * 256 + [3] * 16,
        "tokenizer.ggml.merges": [], "tokenizer.ggml.eos_token_id": 256,
    }  # fmt: skip
    tensors = {name: Tensor(values.astype(np.float32)) for name, values in state.items()}
    nn.state.gguf_save(tensors, path, metadata, quantization)


@pytest.mark.parametrize(("quantization", "groups"), [("Q4_0", 1), ("F16", 0)])
def test_models(quantization: str, groups: int, tmp_path: Path) -> None:
    saved(tmp_path / "m.gguf", quantization)
    exact, integers = (load(tmp_path / "m.gguf", cache_dtype="float32", activations=x)[0] for x in ("float32", "int16"))
    layer = integers._decoder.layers[1]
    together = [part.together for part in (layer.attention.qkv, layer.attention.out, layer.gate_up, layer.down)]
    assert [len(found) for found in together] == [groups] * 4, "like weights are one"
    for tokens in ([5], [5, 9, 200], [*range(40)], [*range(41)]):
        want, got = exact.logits(tokens), integers.logits(tokens)
        np.testing.assert_allclose(got, want, atol=1e-3 * np.abs(want).max(), rtol=0)
        assert np.array_equal(got, want) is (groups == 0), "products of digits are others"


def test_weights_of_another_shape() -> None:
    kind = SORTS["Q4_0"]
    weights = Weights({}, {"w": digits(kind, some(kind, 16, 3))})
    assert weights.whole("w", 16, 96) is not None and weights.whole("v", 16, 96) is None
    with pytest.raises(ValueError, match=r"tensor 'w' has the shape \(16, 96\), not \(16, 64\)"):
        weights.whole("w", 16, 64)


def test_what_activations_there_are(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="activations is 'int4', neither float32 nor int16"):
        load(tmp_path / "m.gguf", activations="int4")
