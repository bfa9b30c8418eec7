"""Attention to a symbolic number of keys in blocks of rows: one kernel for all lengths."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit
from tg_lazy.cost import LIMITS, limits_of
from tg_runtime import Device, GlobalCounters
from tg_shape import Variable, sint

GROUPS, HEADS, ROWS, WIDTH, KEYS = 3, 2, 40, 4, 128


@pytest.mark.parametrize("cache", ["float32", "float16"])
def test_causal_attention(cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Device["CPU"]
    monkeypatch.setitem(LIMITS, "CPU", limits_of("CPU")._replace(row_bytes=1 << 14))
    draw = np.random.default_rng(1)
    q = draw.standard_normal((GROUPS, HEADS * ROWS, WIDTH)).astype(np.float32)
    k, v = (draw.standard_normal((GROUPS, KEYS, WIDTH)).astype(cache) for _ in range(2))
    keys, values = Tensor(k, device="CPU").realize(), Tensor(v, device="CPU").realize()

    def attention(x: Tensor, start: sint) -> Tensor:
        held = start + ROWS
        row = Tensor.arange(ROWS, device="CPU").repeat(HEADS).unsqueeze(1) + start
        scores = x @ keys[:, :held].float().transpose(1, 2)
        scores = (Tensor.arange(held, device="CPU").unsqueeze(0) <= row).where(scores, -math.inf)
        return (scores.softmax(-1) @ values[:, :held].float()).realize()

    step, start = TinyJit(attention), Variable("start", 0, KEYS - ROWS)
    for place in (0, 7, 30, KEYS - ROWS, 1):
        held = place + ROWS
        scores = q @ k[:, :held].astype(np.float32).transpose(0, 2, 1)
        seen = np.arange(held) <= np.tile(np.arange(ROWS), HEADS)[:, None] + place
        scores = np.exp(np.where(seen, scores, -np.inf))
        want = scores / scores.sum(-1, keepdims=True) @ v[:, :held].astype(np.float32)
        x, before = Tensor(q, device="CPU").realize(), GlobalCounters.kernel_count
        found = step(x, start.bind(place))
        assert GlobalCounters.kernel_count == before + 1
        np.testing.assert_allclose(found.numpy(), want, rtol=1e-4, atol=1e-5)
