"""Transformers of every family against a plain numpy implementation without a cache, on small random GGUF files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, nn
from tg_frontend.language import LanguageModel, Sampler, decoder
from tg_frontend.language.description import describe
from tg_frontend.text.bytepairs import ALPHABET

Array = np.ndarray[Any, np.dtype[Any]]
State = dict[str, Array]
Meta = dict[str, Any]

VOCABULARY = len(ALPHABET) + 5
BASE: Meta = {
    "block_count": 2, "embedding_length": 64, "feed_forward_length": 96, "context_length": 80,
    "attention.head_count": 4, "attention.head_count_kv": 2, "attention.layer_norm_rms_epsilon": 1e-5,
    "rope.freq_base": 1e4,
}  # fmt: skip
WINDOW = {"attention.sliding_window": 9}
GEMMA2 = {**WINDOW, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0, "attention.key_length": 24,
          "attention.value_length": 24}  # fmt: skip
YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 20}

CASES: dict[str, tuple[str, Meta, tuple[str, ...]]] = {
    "llama": ("llama", {"rope.dimension_count": 16}, ()),
    "llama 3.1": ("llama", {}, ("rope_freqs", "head")),
    "mistral": ("llama", WINDOW, ("head",)),
    "qwen2": ("qwen2", {"attention.head_count_kv": 4}, ("biases",)),
    "qwen2 yarn": ("qwen2", YARN, ("biases",)),
    "qwen3": ("qwen3", {"attention.key_length": 32, "attention.value_length": 32}, ("qk_norm",)),
    "gemma": ("gemma", {"attention.key_length": 24, "rope.dimension_count": 8}, ()),
    "gemma2": ("gemma2", GEMMA2, ("post",)),
    "gemma3": ("gemma3", {**WINDOW, "block_count": 6, "rope.freq_base": 1e6, "rope.scaling.type": "linear",
                          "rope.scaling.factor": 8.0}, ("qk_norm", "post")),
}  # fmt: skip


def made(case: str) -> tuple[Meta, State]:
    """Metadata and weights; the weights are numbers that float16 holds."""
    architecture, changes, extras = CASES[case]
    sizes = {**BASE, **changes}
    metadata = {"general.architecture": architecture, **{f"{architecture}.{key}": x for key, x in sizes.items()}}
    draw = np.random.default_rng(len(case))

    def normal(*shape: int, scale: float = 1.0, mean: float = 0.0) -> Array:
        return (mean + draw.normal(size=shape) * scale).astype(np.float16).astype(np.float32)

    width, inner, heads, groups = 64, 96, 4, sizes["attention.head_count_kv"]
    head = sizes.get("attention.key_length", 16)
    state = {"token_embd.weight": normal(VOCABULARY, width), "output_norm.weight": normal(width, mean=1, scale=0.2)}
    if "head" in extras:
        state["output.weight"] = normal(VOCABULARY, width, scale=0.2)
    if "rope_freqs" in extras:
        state["rope_freqs.weight"] = np.abs(normal(head // 2, mean=4)) + 1
    for i in range(sizes["block_count"]):
        shapes = {"attn_q": (heads * head, width), "attn_k": (groups * head, width), "attn_v": (groups * head, width),
                  "attn_output": (width, heads * head), "ffn_gate": (inner, width), "ffn_up": (inner, width),
                  "ffn_down": (width, inner)}  # fmt: skip
        vectors = {"attn_norm": width, "ffn_norm": width}
        if "qk_norm" in extras:
            vectors |= {"attn_q_norm": head, "attn_k_norm": head}
        if "post" in extras:
            vectors |= {"post_attention_norm": width, "post_ffw_norm": width}
        for name, shape in shapes.items():
            state[f"blk.{i}.{name}.weight"] = normal(*shape, scale=1.5 * shape[1] ** -0.5)
            if "biases" in extras and name in ("attn_q", "attn_k", "attn_v"):
                state[f"blk.{i}.{name}.bias"] = normal(shape[0], scale=0.5)
        state |= {f"blk.{i}.{name}.weight": normal(size, mean=1, scale=0.2) for name, size in vectors.items()}
    return metadata, state


def file_of(case: str, path: Path, **changes: Any) -> tuple[Meta, State]:
    """A file with a model and a tokenizer of bytes."""
    metadata, state = made(case)
    tokenizer = {"model": "gpt2", "pre": "gpt-2", "tokens": [*ALPHABET, *(f"<|{i}|>" for i in range(5))],
                 "token_type": [1] * 256 + [3] * 5, "merges": [], "eos_token_id": 256}  # fmt: skip
    metadata |= {f"tokenizer.ggml.{name}": value for name, value in tokenizer.items()}
    metadata |= changes
    metadata = {key: value for key, value in metadata.items() if value is not None}
    nn.state.gguf_save({name: Tensor(values) for name, values in state.items()}, path, metadata, "F16")
    return metadata, state


def angles(metadata: dict[str, Any], state: State, positions: int, local: bool) -> tuple[Array, float]:
    """Radians of each position and pair, and what the rotation multiplies with."""
    name = metadata["general.architecture"]
    head: int = metadata.get(f"{name}.attention.key_length", 16)
    width: int = metadata.get(f"{name}.rope.dimension_count", head)
    pairs = np.arange(width // 2)
    base = 1e4 if local and name == "gemma3" else metadata[f"{name}.rope.freq_base"]
    speed = base ** (-2 * pairs / width)
    factor: float
    factor, kind = metadata.get(f"{name}.rope.scaling.factor", 1.0), metadata.get(f"{name}.rope.scaling.type")
    strength = 1.0
    if "rope_freqs.weight" in state:
        speed = speed / state["rope_freqs.weight"]
    if kind == "linear" and not (local and name == "gemma3"):
        speed = speed / factor
    if kind == "yarn":
        long: int = metadata[f"{name}.rope.scaling.original_context_length"]
        low, high = (width / 2 * np.log(long / (turns * 2 * np.pi)) / np.log(base) for turns in (32, 1))
        low, high = max(np.floor(low), 0), min(np.ceil(high), width - 1)
        ramp = np.clip((pairs - low) / max(high - low, 0.001), 0, 1)
        speed, strength = speed * (1 - ramp) + speed / factor * ramp, 0.1 * np.log(factor) + 1
    return np.arange(positions)[:, None] * speed, strength


def turned(x: Array, radians: Array, strength: float, interleaved: bool) -> Array:
    width = 2 * radians.shape[1]
    first, second = (slice(0, width, 2), slice(1, width, 2)) if interleaved else (
        slice(0, width // 2), slice(width // 2, width))  # fmt: skip
    c, s = (f(radians)[:, None] * strength for f in (np.cos, np.sin))
    out = x.copy()
    out[..., first] = x[..., first] * c - x[..., second] * s
    out[..., second] = x[..., second] * c + x[..., first] * s
    return out


def reference(metadata: Meta, state: State, tokens: list[int]) -> Array:
    """The logits after every token, in float64, by the definition."""
    name, n = metadata["general.architecture"], len(tokens)
    state = {key: value.astype(np.float64) for key, value in state.items()}
    gemma = name.startswith("gemma")

    def value(key: str, default: Any = None) -> Any:
        return metadata.get(f"{name}.{key}", default)

    def norm(x: Array, key: str) -> Array:
        weight = state.get(f"{key}.weight")
        return x if weight is None else x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * weight

    def product(x: Array, key: str) -> Array:
        return x @ state[f"{key}.weight"].T + state.get(f"{key}.bias", 0.0)

    def cap(x: Array, bound: float) -> Array:
        return bound * np.tanh(x / bound) if bound else x

    def gate(x: Array) -> Array:
        out: Array = x / (1 + np.exp(-x))
        if gemma:
            out = x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
        return out

    heads, groups, head = 4, value("attention.head_count_kv"), value("attention.key_length", 16)
    x = state["token_embd.weight"][tokens] * (8.0 if gemma else 1.0)
    row, column = np.arange(n)[:, None], np.arange(n)[None]
    for i in range(value("block_count")):
        at = f"blk.{i}."
        local = bool(value("attention.sliding_window")) and not (
            (name == "gemma2" and i % 2 == 1) or (name == "gemma3" and i % 6 == 5)
        )
        radians, strength = angles(metadata, state, n, local)
        y = norm(x, f"{at}attn_norm")
        q = norm(product(y, f"{at}attn_q").reshape(n, heads, head), f"{at}attn_q_norm")
        k = norm(product(y, f"{at}attn_k").reshape(n, groups, head), f"{at}attn_k_norm")
        v = product(y, f"{at}attn_v").reshape(n, groups, head)
        q, k = (turned(part, radians, strength, name == "llama") for part in (q, k))
        k, v = (np.repeat(part, heads // groups, 1) for part in (k, v))
        scores = cap(np.einsum("ihd,jhd->hij", q, k) * head**-0.5, value("attn_logit_softcapping", 0))
        seen = column <= row
        if local:
            seen = seen & (row - column < value("attention.sliding_window"))
        scores = np.where(seen, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed = np.einsum("hij,jhd->ihd", weights, v).reshape(n, heads * head)
        x = x + norm(product(mixed, f"{at}attn_output"), f"{at}post_attention_norm")
        y = norm(x, f"{at}ffn_norm")
        y = product(gate(product(y, f"{at}ffn_gate")) * product(y, f"{at}ffn_up"), f"{at}ffn_down")
        x = x + norm(y, f"{at}post_ffw_norm")
    y = norm(x, "output_norm")
    head_weight = state.get("output.weight", state["token_embd.weight"])
    return cap(y @ head_weight.T, value("final_logit_softcapping", 0))


def model_of(path: Path, **options: Any) -> LanguageModel:
    metadata, tensors = nn.state.gguf_load(path)
    return LanguageModel(dict(metadata), tensors, **options)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("case", CASES)
def test_logits(case: str, tmp_path: Path) -> None:
    metadata, state = file_of(case, tmp_path / "m.gguf")
    tokens = [int(t) for t in np.random.default_rng(5).integers(0, VOCABULARY, 43)]
    want = reference(metadata, state, tokens)
    model = model_of(tmp_path / "m.gguf", cache_dtype="float32")
    scale = np.abs(want).max()
    for length in (37, 38, 39, 40, 43):  # 32 rows at once and a piece that is filled up; single ones, recorded; three
        np.testing.assert_allclose(model.logits(tokens[:length]), want[length - 1], atol=2e-5 * scale, rtol=1e-4)
    assert model.tokens == tokens


@pytest.mark.parametrize("case", ["llama", "gemma2"])
def test_attention_of_many_rows_is_done_in_blocks(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "BLOCK", 8)
    metadata, state = file_of(case, tmp_path / "m.gguf")
    tokens = [int(t) for t in np.random.default_rng(5).integers(0, VOCABULARY, 43)]
    want = reference(metadata, state, tokens)
    model = model_of(tmp_path / "m.gguf", cache_dtype="float32")
    for length in (3, 35, 40):  # from 0 and from 3 on, and a piece that is filled up
        got = model.logits(tokens[:length])
        np.testing.assert_allclose(got, want[length - 1], atol=2e-5 * np.abs(want).max(), rtol=1e-4)


def test_pieces_of_a_prompt_are_not_much_larger_than_what_is_left() -> None:
    model = LanguageModel.__new__(LanguageModel)
    model.context = 2048
    for left in range(1, 2049):
        place, computed = 0, 0
        while place < left:
            rows, count = model._piece(place, left - place)
            assert 1 <= count <= rows and place + rows <= model.context
            place, computed = place + count, computed + rows
        assert place == left and computed - left <= 128


@pytest.mark.parametrize("case", ["llama", "mistral"])
def test_what_was_not_written_is_not_read(case: str, tmp_path: Path) -> None:
    """The cache and the rooms for unpacked weights are memory whose content is undefined until it is written."""
    metadata, state = file_of(case, tmp_path / "m.gguf")
    model, tokens = model_of(tmp_path / "m.gguf", cache_dtype="float32"), list(range(45))
    decoder = model._decoder
    parts = [part for layer in decoder.layers for part in (layer.attention.qkv, layer.down)]
    products = [product for part in parts for product in part.products]
    rooms = [product.room for product in products]
    for memory in (*decoder.keys, *decoder.values, *rooms):
        memory.assign(Tensor.full(memory.shape, float("nan"), dtype=memory.dtype)).realize()
    want = reference(metadata, state, tokens)
    for length in (1, 2, 3, 38, 39, 43):
        got = model.logits(tokens[:length])
        np.testing.assert_allclose(got, want[length - 1], atol=2e-5 * np.abs(want).max(), rtol=1e-4)


def test_half_precision_of_the_cache(tmp_path: Path) -> None:
    metadata, state = file_of("llama", tmp_path / "m.gguf")
    tokens = [int(t) for t in np.random.default_rng(6).integers(0, VOCABULARY, 20)]
    want = reference(metadata, state, tokens)[-1]
    got = model_of(tmp_path / "m.gguf").logits(tokens)
    assert 0 < np.abs(got - want).max() < 2e-2 * np.abs(want).max()


def test_what_prompts_have_in_common_is_kept_and_nothing_else(tmp_path: Path) -> None:
    metadata, state = file_of("mistral", tmp_path / "m.gguf")
    model, draw = model_of(tmp_path / "m.gguf", cache_dtype="float32", context=60), np.random.default_rng(7)
    tokens = [int(t) for t in draw.integers(0, VOCABULARY, 60)]
    for _ in range(6):
        length, kept = int(draw.integers(1, 61)), int(draw.integers(0, 50))
        tokens = [*tokens[:kept], *(int(t) for t in draw.integers(0, VOCABULARY, 60 - kept))]
        want = reference(metadata, state, tokens[:length])[-1]
        np.testing.assert_allclose(model.logits(tokens[:length]), want, atol=2e-5 * np.abs(want).max(), rtol=1e-4)
        assert model.tokens == tokens[:length]


@pytest.mark.parametrize("context", [1, 32, 33])
def test_a_prompt_that_fills_the_context(context: int, tmp_path: Path) -> None:
    metadata, state = file_of("llama", tmp_path / "m.gguf")
    model, tokens = model_of(tmp_path / "m.gguf", cache_dtype="float32", context=context), list(range(context))
    want = reference(metadata, state, tokens)[-1]
    np.testing.assert_allclose(model.logits(tokens), want, atol=2e-5 * np.abs(want).max(), rtol=1e-4)


def test_generation_is_greedy_and_ends(tmp_path: Path) -> None:
    metadata, state = file_of("qwen2", tmp_path / "m.gguf")
    model, want = model_of(tmp_path / "m.gguf", cache_dtype="float32", context=30), [1, 2, 3]
    for _ in range(5):
        want.append(int(reference(metadata, state, want)[-1].argmax()))
    assert list(model.generate([1, 2, 3], limit=5)) == want[3:]
    assert list(model.generate([1, 2, 3], limit=5, ends=frozenset(want[5:6]))) == want[3:5]
    assert len(list(model.generate([1, 2, 3]))) == 27, "until the context is full"


def test_weights_stay_in_their_blocks(tmp_path: Path) -> None:
    """Prompts unpack them on the way, and leave no copy behind that the next product would read."""
    metadata, state = made("llama")
    nn.state.gguf_save({key: Tensor(x) for key, x in state.items()}, tmp_path / "m.gguf", metadata, "Q8_0")
    model = model_of(tmp_path / "m.gguf")
    for length in (70, 40, 72, 73, 74, 75):
        model.logits(list(range(length, 0, -1)))
    for layer in model._decoder.layers:
        for products in (layer.attention.qkv, layer.attention.out, layer.gate_up, layer.down):
            assert not any(product.weight.is_realized for product in products.products)


def test_prompts_that_cannot_be_leave_what_was_held(tmp_path: Path) -> None:
    metadata, state = file_of("llama", tmp_path / "m.gguf")
    model, held = model_of(tmp_path / "m.gguf", cache_dtype="float32", context=8), [1, 2, 3, 4]
    model.logits(held)
    for tokens in ([1, 2, VOCABULARY], [1, 2, 3, 4, -1], [-1, 2], [1] * 9, []):
        with pytest.raises(ValueError):
            model.logits(tokens)
        assert model.tokens == held
    for tokens in ([1, 2, 3, 4, 5], [1, 2], [1, 2, 3, 4, 5], [1, 7, 3], [1, 7, 3]):
        want = reference(metadata, state, tokens)[-1]
        np.testing.assert_allclose(model.logits(tokens), want, atol=2e-5 * np.abs(want).max(), rtol=1e-4)


def test_prompts_that_cannot_be(tmp_path: Path) -> None:
    file_of("llama", tmp_path / "m.gguf")
    model = model_of(tmp_path / "m.gguf", context=8)
    for tokens, message in (
        ([], "no token to go on from"), ([1] * 9, "9 tokens; the context has 8 positions"),
        ([1, VOCABULARY], f"token {VOCABULARY}; the vocabulary has {VOCABULARY}"), ([-1], "token -1"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            model.logits(tokens)
        assert model.tokens == []


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    metadata, state = made("llama")
    tensors = {name: Tensor(values) for name, values in state.items()}
    faults: list[tuple[Meta, dict[str, Tensor | None], str]] = [
        ({"general.architecture": "mamba"}, {}, "'mamba'; known are llama, qwen2"),
        ({"general.architecture": None}, {}, "general.architecture is None"),
        ({"llama.block_count": None}, {}, "llama.block_count is None"),
        ({"llama.attention.head_count": 0}, {}, "head_count is 0"),
        ({"llama.attention.head_count_kv": 3}, {}, "4 heads of queries do not divide by 3"),
        ({"llama.rope.scaling.type": "longrope"}, {}, "'longrope'; known are none, linear and yarn"),
        ({"llama.rope.dimension_count": 17}, {}, "rope.dimension_count is 17"),
        ({"llama.expert_count": 8}, {}, "mixtures of experts"),
        ({"llama.rope.freq_base": float("nan")}, {}, "rope.freq_base is nan"),
        ({}, {"blk.1.attn_q.weight": None}, "no tensor 'blk.1.attn_q.weight'"),
        ({}, {"token_embd.weight": None}, "no tensor 'token_embd.weight'"),
        ({}, {"blk.0.ffn_up.weight": Tensor.zeros(3, 4)}, r"shape \(3, 4\), not \(96, 64\)"),
        ({}, {"rope_freqs.weight": Tensor.ones(3)}, r"shape \(3,\), not \(8,\)"),
    ]
    for changes, other, message in faults:
        changed = {key: value for key, value in {**metadata, **changes}.items() if value is not None}
        with pytest.raises(ValueError, match=message):
            LanguageModel(changed, {key: x for key, x in {**tensors, **other}.items() if x is not None})
    for options, message in (({"context": 81}, "made for 1 to 80"), ({"cache_dtype": "int8"}, "neither float16")):
        with pytest.raises(ValueError, match=message):
            LanguageModel(metadata, tensors, **options)


def test_windows_of_layers() -> None:
    def windows(case: str) -> str:
        shape = describe(made(case)[0])
        return "".join("w" if shape.sees_window(layer) else "-" for layer in range(shape.layers))

    assert [windows(case) for case in ("llama", "mistral", "gemma2", "gemma3")] == ["--", "ww", "w-", "wwwww-"]


def chances(sampler: Sampler, logits: Array, draws: int = 4000) -> Array:
    return np.bincount([sampler.choose(logits) for _ in range(draws)], minlength=len(logits)) / draws


def test_sampling_follows_the_distribution() -> None:
    logits = np.log(np.array([0.1, 0.4, 0.05, 0.2, 0.25], np.float32))
    for sampler, want in (
        (Sampler(temperature=1.0, seed=1), [0.1, 0.4, 0.05, 0.2, 0.25]),
        (Sampler(temperature=0.5, seed=2), np.array([0.01, 0.16, 0.0025, 0.04, 0.0625]) / 0.275),
        (Sampler(temperature=1.0, top_k=2, seed=3), [0, 0.4 / 0.65, 0, 0, 0.25 / 0.65]),
        (Sampler(temperature=1.0, top_p=0.7, seed=4), [0, 0.4 / 0.85, 0, 0.2 / 0.85, 0.25 / 0.85]),
        (Sampler(temperature=1.0, min_p=0.3, seed=5), [0, 0.4 / 0.85, 0, 0.2 / 0.85, 0.25 / 0.85]),
        (Sampler(temperature=1.0, top_k=3, top_p=0.5, seed=6), [0, 0.4 / 0.65, 0, 0, 0.25 / 0.65]),
    ):
        np.testing.assert_allclose(chances(sampler, logits), want, atol=0.03)


def plain_distribution(logits: Array, sampler: Sampler) -> dict[int, float]:
    """The chance of each token that is left, by the definition: all tokens in order, one filter after the other."""
    order = np.argsort(-logits, kind="stable")
    order = order[: sampler.top_k or len(order)]
    with np.errstate(invalid="ignore"):
        by = np.where(logits[order] == logits.max(), 0.0, logits[order].astype(np.float64) - float(logits.max()))
    parts = np.exp(by / sampler.temperature)
    parts /= parts.sum()
    before = np.cumsum(parts) - parts
    kept = (before < sampler.top_p) & (parts >= sampler.min_p * parts[0]) & (parts > 0.0)
    total = parts[kept].sum()
    return {int(token): float(part / total) for token, part in zip(order[kept], parts[kept], strict=True)}


@pytest.mark.parametrize("seed", range(12))
def test_what_is_left_follows_the_definition(seed: int) -> None:
    draw = np.random.default_rng(seed)
    for size in (1, 2, 63, 64, 65, 997, 4096, 5003):
        logits = (draw.normal(size=size) * draw.choice([0.01, 1.0, 8.0])).astype(np.float32)
        if draw.random() < 0.5:
            logits = np.round(logits)  # many are equal
        logits[draw.random(size) < 0.1] = draw.choice([-np.inf, 1.0, np.inf])
        logits[draw.integers(size)] = 2.0
        sampler = Sampler(
            temperature=float(draw.choice([0.1, 1.0, 5.0])), top_k=int(draw.choice([0, 1, 40, 997])),
            top_p=float(draw.choice([1.0, 0.95, 0.5, 1e-3])), min_p=float(draw.choice([0.0, 0.05, 1.0])),
        )  # fmt: skip
        tokens, parts = sampler._left(logits, int(logits.argmax()))
        found = dict(zip(tokens.tolist(), (parts / parts.sum()).tolist(), strict=True))
        want = plain_distribution(logits, sampler)
        odd = found.keys() ^ want.keys()  # one at the very edge may be rounded to either side
        assert len(odd) <= (0.0 < sampler.top_p < 1.0), (size, vars(sampler), odd)
        if not odd:
            assert found == pytest.approx(want, rel=1e-9), (size, vars(sampler))
        assert sampler.choose(logits) in found


def test_a_seed_gives_the_same_tokens_again() -> None:
    logits = np.random.default_rng(0).normal(size=300).astype(np.float32)
    first, second = (Sampler(temperature=1.0, seed=9) for _ in range(2))
    a, b = ([sampler.choose(logits) for _ in range(50)] for sampler in (first, second))
    assert a == b and len(set(a)) > 20


def test_repetition() -> None:
    logits = np.array([4.0, 3.0, -1.0, -1.5], np.float32)
    assert Sampler(repetition_penalty=1.5).choose(logits, [0, 0]) == 1
    assert Sampler(repetition_penalty=1.5, last=1).choose(logits, [0, 1]) == 0
    low = np.array([-1.0, -1.5], np.float32)
    assert Sampler(repetition_penalty=2.0).choose(low, [0]) == 1
    assert logits[0] == 4.0


@pytest.mark.filterwarnings("error")
def test_repetition_at_the_ends_of_the_floats() -> None:
    most = np.finfo(np.float32).max
    ruled_out = np.array([-np.inf, -most, -np.inf], np.float32)
    for temperature in (0.0, 1.0):
        sampler = Sampler(temperature=temperature, repetition_penalty=3.0, seed=1)
        assert {sampler.choose(ruled_out, [1]) for _ in range(20)} == {1}
        sampler = Sampler(temperature=temperature, repetition_penalty=0.25, seed=1)
        assert {sampler.choose(np.array([most, np.inf], np.float32), [0]) for _ in range(20)} == {1}


def test_sampling_refuses() -> None:
    for options in ({"temperature": -1.0}, {"top_p": 0.0}, {"min_p": 2.0}, {"top_k": -1}, {"seed": -1},
                    {"repetition_penalty": 0.0}, {"temperature": float("nan")}):  # fmt: skip
        with pytest.raises(ValueError, match=f"Sampler: {next(iter(options))}="):
            Sampler(**options)
    for logits in ([1.0, float("nan")], [-np.inf, -np.inf]):
        with pytest.raises(ValueError, match="the greatest of 2 logits is"):
            Sampler().choose(np.array(logits, np.float32))
    for token in (-1, 3):
        with pytest.raises(ValueError, match=f"Sampler: before has token {token}, of a vocabulary of 3"):
            Sampler(repetition_penalty=2.0).choose(np.ones(3, np.float32), [0, token, 2])
