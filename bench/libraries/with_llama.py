"""llama.cpp, by the package ``llama-cpp-python``: it runs language models from files, and nothing else."""

from __future__ import annotations

from abc import update_abstractmethods
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ..case import Array, Case, Unsupported
from .base import Library

POSITIONS = 4096
"""Of the cache of a model that is loaded: what tinytg gives it."""


class LlamaCpp(Library):
    """llama.cpp on the CPU, as its package builds it."""

    name = "llama.cpp"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.llama = import_module("llama_cpp")
        self.version = self.llama.__version__

    def reading(self, path: str, held: Sequence[int], more: Sequence[int], activations: str = "float32") -> Case:
        if activations != "float32":
            raise Unsupported("llama.cpp has one kind of activations")
        model = self.llama.Llama(
            path, n_ctx=len(held) + len(more), n_threads=self.threads, n_threads_batch=self.threads, verbose=False,
            flash_attn=False,
        )  # fmt: skip
        if held:
            model.eval(held)

        def run() -> Array:
            model.n_tokens = len(held)
            model.eval(more)
            return np.array(self.llama.llama_get_logits(model.ctx)[: model.n_vocab()], np.float32)

        return Case(run, np.asarray, self.mode)

    def loading(self, path: str, text: str) -> Case:
        def run() -> Array:
            model = self.llama.Llama(path, n_ctx=POSITIONS, n_threads=self.threads, verbose=False, flash_attn=False)
            return np.array(model.tokenize(text.encode(), add_bos=False), np.int32)

        return Case(run, np.asarray, self.mode)


def _refused(self: LlamaCpp, *arguments: Any, **options: Any) -> Any:
    raise Unsupported("llama.cpp runs language models only")


for _name in LlamaCpp.__abstractmethods__:
    setattr(LlamaCpp, _name, _refused)
update_abstractmethods(LlamaCpp)  # type: ignore[type-abstract]
