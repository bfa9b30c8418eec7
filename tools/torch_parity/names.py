"""Public names of PyTorch, numpy and tinygrad: which are here, which say in words what is used instead, which miss.

``python -m tools.torch_parity --names`` reads the names that were written down; with ``--write`` those of the installed
PyTorch and numpy are written down first.
"""

from __future__ import annotations

import importlib
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from tinytg import Tensor

FILE = Path(__file__).parent / "names.json"
ROOMS = ("linalg", "fft", "special", "nn.functional", "signal.windows")
LAYERS = {
    "torch.nn": "nn", "torch.nn.init": "nn.init", "torch.nn.utils": "nn.utils", "torch.nn.utils.rnn": "nn.utils.rnn",
    "torch.nn.utils.stateless": "nn.utils.stateless", "torch.nn.utils.parametrize": "nn.utils.parametrize",
    "torch.nn.utils.parametrizations": "nn.utils.parametrizations", "torch.nn.utils.prune": "nn.utils.prune",
    "torch.optim": "nn.optim",
    "torch.optim.lr_scheduler": "nn.lr_scheduler", "torch.optim.swa_utils": "nn.optim.swa_utils",
    "torch.utils.data": "nn.data", "torch.amp": "nn.amp",
}  # fmt: skip
"""What these modules of PyTorch are called here."""
_PYTHON = ("typing", "typing_extensions", "collections", "__future__", "types", "builtins")


def homes() -> dict[str, Any]:
    """What stands here for each of the places that names are of."""
    top = importlib.import_module("tinytg")
    rooms = {f"torch.{room}": importlib.import_module(f"tinytg.{room}") for room in ROOMS}
    rooms |= {place: importlib.import_module(f"tinytg.{name}") for place, name in LAYERS.items()}
    rooms |= {"torch.nn.Module": top.nn.Module(), "torch.optim.Optimizer": top.nn.optim.SGD([Tensor([1.0])])}
    return {"torch": top, "torch.Tensor": Tensor([[1.0]]), **rooms, "tinygrad.Tensor": Tensor([[1.0]]), "numpy": top}


def state(home: Any, name: str) -> tuple[str, str]:
    """``here``, ``words`` or ``missing``, and the words.

    A word is an error that goes on behind the name with a colon.
    """
    if name in dir(type(home)):
        return "here", ""
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # an older name
            getattr(home, name)
    except AttributeError as error:
        said = re.sub(rf"^.*?\b{re.escape(name)}\b['\"]?(: )?", "", str(error), count=1, flags=re.DOTALL)
        return ("words", said) if said else ("missing", "")
    return "here", ""


def _public(home: Any, root: str) -> Iterator[str]:
    """Names of a place that are its own: not what it imports from Python, nor pieces of docstrings."""
    for name in dir(home):
        try:
            value = getattr(home, name)
        except (AttributeError, RuntimeError):
            value = None
        borrowed = isinstance(value, ModuleType) and not value.__name__.startswith(f"{root}.")
        text = isinstance(home, ModuleType) and isinstance(value, (str, dict)) and not name.isupper()
        if not (name.startswith("_") or borrowed or text or name == "TYPE_CHECKING"):
            if getattr(value, "__module__", "") not in _PYTHON or isinstance(value, type(dir)):
                yield name


def installed() -> dict[str, list[str]]:
    """The names of the installed PyTorch and numpy, by place."""
    torch, numpy = importlib.import_module("torch"), importlib.import_module("numpy")
    for room in ROOMS:
        importlib.import_module(f"torch.{room}")
    found = {"torch": list(_public(torch, "torch")), "torch.Tensor": list(_public(torch.Tensor, "torch"))}
    for room in ROOMS:
        names = list(_public(importlib.import_module(f"torch.{room}"), "torch"))
        found[f"torch.{room}"] = [name for name in names if name != "Tensor"]
    for place in LAYERS:
        home = importlib.import_module(place)
        found[place] = [
            name for name in _public(home, "torch")
            if f"{getattr(getattr(home, name), '__module__', '')}.".startswith(f"{place}.")
        ]  # fmt: skip
    for place, kind in (("torch.nn.Module", torch.nn.Module), ("torch.optim.Optimizer", torch.optim.Optimizer)):
        found[place] = [name for name in dir(kind) if not name.startswith("_")]
    return found | {"numpy": list(_public(numpy, "numpy"))}


def written() -> dict[str, list[str]]:
    """The names that were written down."""
    found: dict[str, str] = json.loads(FILE.read_text(encoding="utf-8"))
    return {place: names.split() for place, names in found.items()}


def write() -> None:
    """Writes down the installed names; those of tinygrad stay."""
    names = {place: " ".join(sorted(found)) for place, found in {**written(), **installed()}.items()}
    FILE.write_text(json.dumps(names, indent=1) + "\n", encoding="utf-8")


def table(verbose: bool) -> tuple[str, int]:
    """What is there of each place, and how many names miss."""
    lines, missing = [], 0
    places = homes()
    for place, names in written().items():
        found = {name: state(places[place], name) for name in names}
        by = {word: [name for name in names if found[name][0] == word] for word in ("here", "words", "missing")}
        missing += len(by["missing"])
        lines.append(f"{place:20s} " + ", ".join(f"{len(some)} {word}" for word, some in by.items()))
        if verbose:
            lines += [f"    {name}: {found[name][1]}" for name in by["words"]]
        lines += [f"    {name} is missing" for name in by["missing"]]
    return "\n".join(lines), missing
