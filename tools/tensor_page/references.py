"""What numpy, or PyTorch where it is installed, says that a call computes; and the names that they have for it."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from tests.fuzz.methods import Array

from .samples import Sample, mapped, samples

TORCH = ("torch", "torch.Tensor", "torch.nn.functional", "torch.special", "torch.linalg", "torch.fft",
         "torch.nn.init", "torch.nn.utils")  # fmt: skip
"""Where PyTorch's names are looked for, in this order."""
NUMPY = {
    "Tensor.cat": "numpy.concatenate", "Tensor.permute": "numpy.transpose", "Tensor.clamp": "numpy.clip",
    "Tensor.unsqueeze": "numpy.expand_dims", "Tensor.mod": "numpy.mod", "Tensor.movedim": "numpy.moveaxis",
    "Tensor.expand": "numpy.broadcast_to", "Tensor.sub": "numpy.subtract", "Tensor.mul": "numpy.multiply",
    "Tensor.numel": "numpy.size", "Tensor.cast": "numpy.ndarray.astype", "Tensor.gather": "numpy.take_along_axis",
    "Tensor.tensor_split": "numpy.array_split", "Tensor.pow": "numpy.power", "Tensor.idiv": "numpy.floor_divide",
    "Tensor.lshift": "numpy.left_shift", "Tensor.rshift": "numpy.right_shift", "Tensor.outer": "numpy.outer",
    "Tensor.numpy": "numpy.asarray", "Tensor.bernoulli": "numpy.random.Generator.binomial",
}  # fmt: skip
"""Names of numpy's that neither the name nor the reference of a call tells."""


@cache
def torch() -> Any:
    """PyTorch; None where it is not installed."""
    try:
        return importlib.import_module("torch")
    except ImportError:
        return None


def torch_name(name: str) -> str:
    """PyTorch's name of the operation; empty if it has none, or is not installed."""
    if torch() is None:
        return ""
    room, _, last = name.rpartition(".")
    places = TORCH if room == "Tensor" else (f"torch.{room}", *TORCH)
    for place in places:
        home = torch() if place == "torch" else _home(place)
        if hasattr(home, last):
            return f"{place}.{last}"
    return ""


def _home(place: str) -> Any:
    home = torch()
    for part in place.split(".")[1:]:
        home = getattr(home, part)
    return home


def numpy_name(name: str) -> str:
    """numpy's name of the operation, or of the function that it was compared with; empty if it has none."""
    if name in NUMPY:
        return NUMPY[name]
    room, _, last = name.rpartition(".")
    if room in ("linalg", "fft"):
        home = getattr(np, room)
        return f"numpy.{room}.{last}" if hasattr(home, last) else ""
    if room != "Tensor":
        return ""
    if callable(getattr(np, last, None)) and not isinstance(getattr(np, last), type):
        return f"numpy.{last}"
    if hasattr(np.ndarray, last):
        return f"numpy.ndarray.{last}"
    reference = next((s.reference for s in samples(name) if s.reference is not None), None)
    known = getattr(reference, "__name__", "")
    return f"numpy.{known}" if known and reference is getattr(np, known, None) else ""


def of(sample: Sample, change: Callable[[Array], Array], dtype: str, own: bool) -> list[tuple[list[Array], str]]:
    """What a call computes of operands of another kind, and who says so: numpy, PyTorch, both or nobody.

    Unless the call was drawn for these operands (``own``), NaN by numpy is outside of what its stand-in knows.
    """
    if sample.drawn:
        return []
    args, kwargs = sample.replaced(change)
    known: list[tuple[list[Array], str]] = []
    if sample.reference is not None:
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results = _flat(sample.reference(*(sample.replaced(_counted(change)) if not own else (args, kwargs))[0],
                                                 **kwargs))  # fmt: skip
            if own or not any(r.dtype.kind in "fc" and np.isnan(r).any() for r in results):
                known.append((results, "numpy"))
        except (TypeError, ValueError, IndexError, AttributeError, OverflowError):
            pass
    if torch() is None or not (name := torch_name(sample.name)):
        return known
    place, _, last = name.rpartition(".")
    function = getattr(torch() if place == "torch" else _home(place), last)
    try:
        args, kwargs = (mapped(value, lambda a: torch().from_numpy(_precise(a, dtype))) for value in (args, kwargs))
        results = _flat(function(*args, **kwargs))[: sample.parts]
        arrays = [np.asarray(r.detach().resolve_conj().numpy() if hasattr(r, "detach") else r) for r in results]
        known.append((arrays, "torch"))
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError, NotImplementedError):
        pass
    return known


def _counted(change: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Operands as ``change`` makes them, bools as 0 and 1: numpy adds those as this side does, and not as itself."""

    def numbers(array: Array) -> Array:
        made = change(array)
        return made.astype(np.int64) if made.dtype == bool and array.dtype != bool else made

    return numbers


def _precise(array: Array, dtype: str) -> Array:
    """An operand as PyTorch takes it."""
    narrow = array.astype(dtype) if dtype in ("int32", "uint8") and array.dtype.kind in "iu" else array
    return np.array(narrow, order="C")


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [part for item in value for part in _flat(item)]
    return [value if hasattr(value, "detach") else np.asarray(value)]
