"""tinygrad, on the CPU through TinyJit."""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from importlib.metadata import version
from typing import Any

from ..case import Array, Unsupported
from .base import Tensor
from .with_tinytg import Tensors


class Tinygrad(Tensors):
    """tinygrad, which wants clang on the machine; its device is in the environment that the worker is started with."""

    name = "tinygrad"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        tinygrad = import_module("tinygrad")
        self.tensor, self.nn, self.jit, self.variable = (
            tinygrad.Tensor, tinygrad.nn, tinygrad.TinyJit, tinygrad.Variable
        )  # fmt: skip
        self.device = tinygrad.Device
        # since 0.13 a setting, and no longer a method of Tensor
        self.context = getattr(import_module("tinygrad.helpers"), "Context", None)
        self.version = version("tinygrad")

    def wait(self) -> None:
        self.device[self.device.DEFAULT].synchronize()

    def array(self, values: Array, dtype: str = "") -> Tensor:
        tensor = super().array(values, dtype)
        return tensor.is_param_(False) if hasattr(tensor, "is_param_") else tensor

    def parameter(self, values: Array) -> Tensor:
        tensor = super().array(values).contiguous().realize()
        return tensor.is_param_(True) if hasattr(tensor, "is_param_") else tensor

    def added_rows(self, values: Tensor, index: Tensor, rows: int) -> Tensor:
        raise Unsupported(f"{self.name} adds rows by comparing all positions")

    def training_mode(self) -> Any:
        if hasattr(self.tensor, "train"):
            return self.tensor.train()
        return self.context(TRAINING=1) if self.context is not None else nullcontext()
