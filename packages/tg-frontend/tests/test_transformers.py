"""Tiny checkpoints of transformers, written by the package gguf: the same logits and tokens (`hatch run models`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tg_frontend import nn
from tg_frontend.language import LanguageModel

torch = pytest.importorskip("torch", exc_type=ImportError)
transformers = pytest.importorskip("transformers", exc_type=ImportError)
gguf = pytest.importorskip("gguf", exc_type=ImportError)

SMALL: dict[str, Any] = {
    "vocab_size": 97, "hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "bos_token_id": 1,
    "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
LLAMA3 = {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 32}
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "llama": ("llama", "Llama", {"tie_word_embeddings": True}),
    "llama 3.1": ("llama", "Llama", {"rope_parameters": LLAMA3}),
    "mistral": ("llama", "Mistral", {"sliding_window": 9, "head_dim": 24}),
    "qwen2": ("qwen2", "Qwen2", {}),
    "qwen2 yarn": ("qwen2", "Qwen2", {"rope_parameters": YARN}),
    "qwen3": ("qwen3", "Qwen3", {"head_dim": 32}),
    "gemma": ("gemma", "Gemma", {"head_dim": 32}),
    "gemma2": ("gemma2", "Gemma2", {"head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": 9,
                                    "attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0}),
    "gemma3": ("gemma3", "Gemma3", {"head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": 9,
                                    "num_hidden_layers": 7}),
}  # fmt: skip
NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}  # fmt: skip


def written(case: str, path: Path) -> Any:
    """A checkpoint of transformers; and the same as a GGUF file, as llama.cpp's converter writes it."""
    architecture, name, changes = CASES[case]
    kind = f"{name}TextConfig" if name == "Gemma3" else f"{name}Config"
    config = getattr(transformers, kind)(**{**SMALL, **changes})
    torch.manual_seed(len(case))
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval().float()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * (0.2 if parameter.ndim == 1 else 0.15))
    writer, at = gguf.GGUFWriter(str(path), architecture), architecture
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(head)
    rope = config.rope_parameters or {}
    rope = rope.get("full_attention", rope)
    writer.add_rope_freq_base(float(rope["rope_theta"]))
    if rope["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if rope["rope_type"] == "llama3":
        plain = 1e4 ** (-np.arange(0, head, 2) / head)
        scaled = model.model.rotary_emb.inv_freq.numpy()
        writer.add_tensor("rope_freqs.weight", (plain / scaled).astype(np.float32))
    if name in ("Mistral", "Gemma2", "Gemma3"):
        writer.add_sliding_window(config.sliding_window)
    if name == "Gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    norms = {"post_attention_layernorm": "ffn_norm"}
    if name in ("Gemma2", "Gemma3"):
        norms = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
                 "post_feedforward_layernorm": "post_ffw_norm"}  # fmt: skip
    for key, value in model.state_dict().items():
        place, _, last = key.rpartition(".")
        if place == "lm_head" and config.tie_word_embeddings:
            continue
        array = value.numpy().astype(np.float32)
        if at == "llama" and place.endswith(("q_proj", "k_proj")):
            heads = array.shape[0] // head  # pairs become neighbours
            array = array.reshape(heads, 2, head // 2, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)
        if name.startswith("Gemma") and "norm" in place:
            array = array + 1
        if place.startswith("model.layers."):
            number, _, part = place.removeprefix("model.layers.").partition(".")
            stem = f"blk.{number}.{ {**NAMES, **norms}[part] }".replace(" ", "")
        else:
            stem = NAMES[place]
        writer.add_tensor(f"{stem}.{last}", np.ascontiguousarray(array))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


@pytest.mark.parametrize("case", CASES)
def test_logits_and_tokens(case: str, tmp_path: Path) -> None:
    theirs = written(case, tmp_path / "m.gguf")
    metadata, tensors = nn.state.gguf_load(tmp_path / "m.gguf")
    ours = LanguageModel(dict(metadata), tensors, cache_dtype="float32")
    tokens = [int(t) for t in np.random.default_rng(1).integers(3, 97, 45)]
    with torch.no_grad():
        want = theirs(torch.tensor([tokens])).logits[0].numpy()
    for length in (20, 45):
        np.testing.assert_allclose(ours.logits(tokens[:length]), want[length - 1], rtol=2e-3, atol=2e-4)
    with torch.no_grad():
        said = theirs.generate(
            torch.tensor([tokens[:20]]), max_new_tokens=24, do_sample=False, eos_token_id=None, pad_token_id=0
        )
    assert list(ours.generate(tokens[:20], limit=24)) == said[0, 20:].tolist()
