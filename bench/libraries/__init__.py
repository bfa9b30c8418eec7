"""The libraries that are compared, by name. Importing this module imports none of them."""

from __future__ import annotations

from importlib import import_module

from .base import Library, Opener

OURS = "tinytg"
MACHINE = "machine"
"""What takes turns with the libraries, and reaches the machine's limit."""

MODULES = {
    "tinytg": ("with_tinytg", "TinyTG"),
    "numpy": ("with_numpy", "Numpy"),
    "torch": ("with_torch", "Torch"),
    "torch.compile": ("with_torch", "TorchCompile"),
    "jax": ("with_jax", "Jax"),
    "tinygrad": ("with_tinygrad", "Tinygrad"),
}
"""The name of each library: its module here, and its class there."""

DEFAULT = ("tinytg", "numpy", "torch", "jax", "tinygrad")

IMPORTS = {
    "tinytg": "tinytg", "numpy": "numpy", "torch": "torch", "torch.compile": "torch", "jax": "jax",
    "tinygrad": "tinygrad",
}  # fmt: skip
"""The module that must be there for a library."""


def open_library(name: str, threads: int) -> Opener:
    """Imports a library, or :data:`MACHINE`, and prepares it.

    Raises:
      ImportError: it is not installed.
    """
    if name == MACHINE:
        machine: Opener = import_module("bench.limits").Machine(threads)
        return machine
    module, cls = MODULES[name]
    made: Opener = getattr(import_module(f"bench.libraries.{module}"), cls)(threads)
    return made


__all__ = ["DEFAULT", "IMPORTS", "MACHINE", "MODULES", "OURS", "Library", "Opener", "open_library"]
