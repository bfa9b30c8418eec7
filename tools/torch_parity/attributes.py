"""Attributes of tensors beside PyTorch's: those that are not methods, of tensors of several kinds.

``python -m tools.torch_parity --attributes --write`` asks PyTorch's tensors, and writes what they say to
``tests/data/torch_attributes.json``; without ``--write`` that record is compared with what is said here.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tinytg import Tensor

from .comparing import Row
from .deliberate import ATTRIBUTES

RECORD = Path(__file__).parents[2] / "tests" / "data" / "torch_attributes.json"
DTYPES = ("float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64", "bool", "complex64",
          "complex128")  # fmt: skip
Make = Callable[..., Any]


def _counted(make: Make, *shape: int, dtype: str = "float32") -> Any:
    return make(np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype))


def _matrix(make: Make, dtype: str) -> Any:
    return _counted(make, 2, 3, dtype=dtype)


def _with_gradient(make: Make) -> Any:
    x = _counted(make, 2, 3).requires_grad_()
    (x * x).sum().backward()
    return x


def _kept(make: Make) -> Any:
    y = _counted(make, 2, 3).requires_grad_() * 2
    y.retain_grad()
    return y


SPECIMENS: dict[str, Callable[[Make], Any]] = {
    **{f"matrix of {name}": partial(_matrix, dtype=name) for name in DTYPES},
    "a number": lambda make: _counted(make),
    "nothing": lambda make: _counted(make, 0, 3),
    "vector": lambda make: _counted(make, 4),
    "three axes": lambda make: _counted(make, 2, 3, 4),
    "leaf": lambda make: _counted(make, 2, 3).requires_grad_(),
    "leaf, complex": lambda make: _counted(make, 2, 3, dtype="complex64").requires_grad_(),
    "leaf with a gradient": _with_gradient,
    "result": lambda make: _counted(make, 2, 3).requires_grad_() * 2,
    "result that keeps its gradient": _kept,
    "result, complex": lambda make: _counted(make, 2, 3, dtype="complex64").requires_grad_() * 2,
    "result, detached": lambda make: (_counted(make, 2, 3).requires_grad_() * 2).detach(),
    "result without gradient": lambda make: _counted(make, 2, 3) * 2,
    "comparison": lambda make: _counted(make, 2, 3).requires_grad_() > 2,
    "row": lambda make: _counted(make, 2, 3)[1],
    "row of a leaf": lambda make: _counted(make, 2, 3).requires_grad_()[1],
    "transposed": lambda make: _counted(make, 2, 3).T,
    "every second": lambda make: _counted(make, 6)[::2],
    "expanded": lambda make: _counted(make, 1, 3).expand(2, 3),
    "real part": lambda make: _counted(make, 2, 3, dtype="complex64").real,
    "sum": lambda make: _counted(make, 2, 3).requires_grad_().sum(),
}
"""Tensors, made of what a side makes of an array."""


def said(value: Any) -> Any:
    """What an attribute holds, as JSON has it."""
    if hasattr(value, "tolist") and hasattr(value, "shape"):
        with_parts = np.asarray(value.detach().resolve_conj().numpy())
        return {"shape": list(with_parts.shape), "dtype": str(with_parts.dtype), "values": str(with_parts.tolist())}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [said(part) for part in value]
    kind = type(value)
    if "dtype" in kind.__name__.lower():
        return str(value).rpartition(".")[2]
    if kind.__name__ in ("device", "layout"):
        return str(value)
    return "a method" if inspect.isroutine(value) else "a thing"


def asked(tensor: Any, name: str) -> Any:
    """What a tensor says of an attribute, or that it refuses."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return said(getattr(tensor, name))
        except (AttributeError, RuntimeError, TypeError, ValueError) as error:
            return f"refused: {str(error).partition(chr(10))[0][:120]}"


def write(torch: Any) -> None:
    """Writes down what PyTorch says."""
    descriptors = ("getset_descriptor", "property")
    names = [name for name in dir(torch.Tensor) if not name.startswith("_")
             and type(inspect.getattr_static(torch.Tensor, name)).__name__ in descriptors]  # fmt: skip
    found = {kind: {name: asked(make(torch.tensor), name) for name in names} for kind, make in SPECIMENS.items()}
    lines = ",\n".join(f"{json.dumps(kind)}: {json.dumps(values)}" for kind, values in found.items())
    RECORD.write_text(f'{{\n"torch": {json.dumps(torch.__version__.partition("+")[0])},\n{lines}\n}}\n')


def _alike(name: str, want: Any, got: Any) -> bool:
    if isinstance(want, str) and want.startswith("refused"):
        return isinstance(got, str) and got.startswith("refused")
    if name == "device":
        return str(want).upper() == str(got)
    return bool(want == got) and isinstance(want, bool) == isinstance(got, bool)


def rows() -> list[Row]:
    """What was found of each attribute."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    found: dict[str, Row] = {}
    for kind, make in SPECIMENS.items():
        tensor = make(Tensor)
        for name, want in record[kind].items():
            row, got = found.setdefault(name, Row(name, f"Tensor.{name}")), asked(tensor, name)
            row.tried += 1
            if isinstance(got, str) and got.startswith("refused") and not hasattr(type(tensor), name):
                row.note("refuses", f"{kind}: {got}", ATTRIBUTES)
            elif not _alike(name, want, got):
                row.note("differs", f"{kind}: {want!r:.120}, here {got!r:.120}", ATTRIBUTES)
    return list(found.values())
