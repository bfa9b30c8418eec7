"""The example that transcribes speech: its spectrum, its cache, and the files that it reads."""

from __future__ import annotations

import importlib.util
import json
import wave
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tinytg import Tensor, Variable, nn


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """``examples/whisper.py`` as a module."""
    path = Path(__file__).parents[1] / "examples" / "whisper.py"
    spec = importlib.util.spec_from_file_location("whisper_example", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_bands_are_those_of_slaney(example: ModuleType) -> None:
    """Linear below 1,000 hertz; triangles of area 1 that cover what lies between the first and the last edge."""
    bands = example.mel_bands()
    assert bands.shape == (201, 80) and (bands >= 0).all()
    assert (bands.max(0) > 0).all()
    hertz = np.linspace(0, 8000, 201)
    wide = bands[:, 60:]  # those that are wide beside 40 hertz
    np.testing.assert_allclose(np.trapezoid(wide, hertz, axis=0), 1, rtol=0.03)
    peaks = hertz[bands[:, 2:20].argmax(0)]
    assert (np.abs(np.diff(peaks) - 37.25) <= 40).all()  # a third of 3 mel, 200/3 hertz each


@pytest.mark.parametrize("seconds", [1, 3])
def test_the_spectrum_is_that_of_numpy(example: ModuleType, seconds: int) -> None:
    rng = np.random.default_rng(seconds)
    samples = (rng.standard_normal(16000 * seconds) * np.hanning(16000 * seconds)).astype(np.float32)
    padded = np.pad(samples.astype(np.float64), 200, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, 400)[::160][:-1]
    power = np.abs(np.fft.rfft(frames * np.hanning(401)[:-1])) ** 2 @ example.mel_bands()
    level = np.log10(np.maximum(power, 1e-10))
    want = (np.maximum(level, level.max() - 8) + 4).T / 4
    np.testing.assert_allclose(example.log_mel(Tensor(samples)).numpy(), want, atol=2e-4)


def test_a_decoder_that_remembers_says_what_one_says_that_reads_all_again(example: ModuleType) -> None:
    config = {"d_model": 12, "vocab_size": 17, "max_target_positions": 7, "max_source_positions": 5,
              "decoder_attention_heads": 3, "decoder_ffn_dim": 20, "decoder_layers": 2}  # fmt: skip
    Tensor.manual_seed(4)
    decoder, heard = example.Decoder(config), Tensor.randn(1, 5, 12)
    for layer in decoder.layers:
        layer.hear(heard)
    said, position = [3, 16, 0, 7, 7, 11], Variable("position", 0, 6)
    got = [decoder(Tensor([[token]], dtype="int32"), position.bind(at)).numpy() for at, token in enumerate(said)]
    x = decoder.embed_tokens(Tensor([said], dtype="int32")) + decoder.embed_positions.weight[: len(said)]
    for layer in decoder.layers:
        own, y = layer.self_attn, layer.self_attn_layer_norm(x)
        q, (k, v) = own.split(own.q_proj(y)), own.keys_and_values(y)
        seen = q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).reshape(1, len(said), 12)
        x = x + own.out_proj(seen)
        x = x + layer.encoder_attn(layer.encoder_attn_layer_norm(x), *layer.encoder_attn.keys_and_values(heard))
        x = layer.feed_forward(x)
    want = (decoder.layer_norm(x) @ decoder.embed_tokens.weight.T)[0]
    np.testing.assert_allclose(np.stack(got), want.numpy(), atol=2e-5)


def test_sentence_after_sentence_is_one_record(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what differs between sentences is an argument: nothing is recorded anew for the first token of each."""
    config = {"d_model": 12, "vocab_size": 17, "num_mel_bins": 80, "max_target_positions": 9,
              "max_source_positions": 5, "encoder_attention_heads": 3, "encoder_ffn_dim": 20, "encoder_layers": 1,
              "decoder_attention_heads": 3, "decoder_ffn_dim": 20, "decoder_layers": 1}  # fmt: skip
    generation = {"suppress_tokens": [0, 16], "begin_suppress_tokens": [*range(1, 11)], "no_timestamps_token_id": 14,
                  "lang_to_id": {"<|en|>": 12}, "task_to_id": {"transcribe": 13}, "eos_token_id": 0,
                  "decoder_start_token_id": 11}  # fmt: skip
    files = {"config": config, "generation_config": generation, "vocab": {}}
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    for name in ("weights", "put"):
        monkeypatch.setattr(example, name, lambda *_: None)
    monkeypatch.setattr(example, "RATE", 1600)  # a tenth of a second instead of 30
    monkeypatch.setattr(example, "SECONDS", 1)
    Tensor.manual_seed(3)
    model = example.Whisper(tmp_path)
    sound = [np.random.default_rng(seed).standard_normal(1600).astype(np.float32) for seed in range(3)]
    said = [model.tokens(samples) for samples in sound]
    assert all(len(tokens) == 6 and tokens[0] > 10 and 0 not in tokens and 16 not in tokens for tokens in said)
    kept = model.hear.captured, model.likeliest.captured
    assert None not in kept
    assert [model.tokens(samples) for samples in sound] == said
    assert (model.hear.captured, model.likeliest.captured) == kept


def test_what_is_missing_in_the_weights_is_named(example: ModuleType) -> None:
    config = {"d_model": 6, "num_mel_bins": 5, "max_source_positions": 3, "encoder_attention_heads": 2,
              "encoder_ffn_dim": 7, "encoder_layers": 1}  # fmt: skip
    encoder = example.Encoder(config)
    state = {name: x.numpy() for name, x in nn.state.get_state_dict(encoder).items()}
    example.put(encoder, state)
    del state["layers.0.fc1.bias"]
    with pytest.raises(KeyError, match=r"layers\.0\.fc1\.bias"):
        example.put(encoder, state)


def test_letters_are_bytes(example: ModuleType) -> None:
    assert sorted(example.BYTES.values()) == list(range(256))
    assert (example.BYTES["A"], example.BYTES["Ġ"], example.BYTES["Ċ"]) == (65, 32, 10)


@pytest.mark.parametrize(("rate", "channels"), [(16000, 2), (22050, 1), (8000, 1), (44100, 2)])
def test_sound_is_brought_to_one_rate(example: ModuleType, tmp_path: Path, rate: int, channels: int) -> None:
    """A tone of 440 hertz stays one."""
    tone = np.sin(2 * np.pi * 440 * np.arange(rate) / rate) * 0.5
    with wave.open(str(tmp_path / "tone.wav"), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.repeat((tone * 32767).astype("<i2")[:, None], channels, 1).tobytes())
    samples = example.read(tmp_path / "tone.wav")
    assert len(samples) == 16000
    want = np.sin(2 * np.pi * 440 * np.arange(16000) / 16000) * 0.5
    np.testing.assert_allclose(samples[500:-500], want[500:-500], atol=5e-3)


def test_what_is_no_sound_is_refused(example: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    with pytest.raises(ValueError, match="is no WAV file that can be read"):
        example.read(tmp_path / "a.wav")
