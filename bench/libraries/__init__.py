"""The libraries that are compared, by name. Importing this module imports none of them."""

from __future__ import annotations

from importlib import import_module

from .base import Library, Speech

OURS = "tinytg"

MODULES = {
    "tinytg": ("with_tinytg", "TinyTG"),
    "numpy": ("with_numpy", "Numpy"),
    "torch": ("with_torch", "Torch"),
    "torch.compile": ("with_torch", "TorchCompile"),
    "jax": ("with_jax", "Jax"),
    "tinygrad": ("with_tinygrad", "Tinygrad"),
    "llama.cpp": ("with_llama", "LlamaCpp"),
}
"""The name of each library: its module here, and its class there."""

DEFAULT = ("tinytg", "numpy", "torch", "jax", "tinygrad")

IMPORTS = {
    "tinytg": "tinytg", "numpy": "numpy", "torch": "torch", "torch.compile": "torch", "jax": "jax",
    "tinygrad": "tinygrad", "llama.cpp": "llama_cpp",
}  # fmt: skip
"""The module that must be there for a library."""


def open_library(name: str, threads: int) -> Library:
    """Imports a library and prepares it.

    Raises:
      ImportError: it is not installed.
    """
    module, cls = MODULES[name]
    made: Library = getattr(import_module(f"bench.libraries.{module}"), cls)(threads)
    return made


__all__ = ["DEFAULT", "IMPORTS", "MODULES", "OURS", "Library", "Speech", "open_library"]
