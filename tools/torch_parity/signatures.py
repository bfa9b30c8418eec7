"""Signatures beside PyTorch's: the order of arguments, their names and their defaults.

``python -m tools.torch_parity.signatures`` writes what PyTorch has to ``tests/data/torch_signatures.json``: for each
name that is here, too, every way in which it may be called. Python tells those of what is written in Python; those of
the rest are in the schemas of its operations. :func:`differences` needs only that file.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tg_frontend.spellings import HARMLESS, IGNORED, reached
from tinytg import Tensor

RECORD = Path(__file__).parents[2] / "tests" / "data" / "torch_signatures.json"
ROOMS = {
    "Tensor": "torch.Tensor", "nn": "torch.nn", "nn.functional": "torch.nn.functional", "nn.init": "torch.nn.init",
    "nn.utils": "torch.nn.utils", "nn.utils.rnn": "torch.nn.utils.rnn", "nn.optim": "torch.optim",
    "nn.lr_scheduler": "torch.optim.lr_scheduler", "nn.optim.swa_utils": "torch.optim.swa_utils",
    "nn.data": "torch.utils.data", "nn.amp": "torch.amp", "linalg": "torch.linalg", "special": "torch.special",
    "fft": "torch.fft", "signal.windows": "torch.signal.windows",
}  # fmt: skip
"""Modules (and one class) by their names here, and in PyTorch."""
PRIVATE = ("has_torch_function", "boolean_dispatch", "handle_torch_function", "assert_int_or_pair")
"""Beginnings of names that PyTorch's modules import for their own use."""
FAMILIES = {"linalg": "linalg_", "special": "special_", "fft": "fft_"}
"""What names of operations begin with, by modules."""
TENSORS = ("Tensor", "Optional[Tensor]", "List[Tensor]")
"""Types of first arguments; of methods the first of them."""
PLACED = ("device", "dtype")
"""Arguments that every layer takes, by name."""


@dataclass(frozen=True)
class Parameters:
    """What a function takes.

    Attributes:
      placed: names of those that may be given without one, in order.
      named: names of those that may not.
      defaults: literals, by name; Ellipsis for what is no literal.
      more: whether any number may follow.
    """

    placed: tuple[str, ...]
    named: tuple[str, ...]
    defaults: dict[str, Any]
    more: bool

    @classmethod
    def read(cls, text: str) -> Parameters:
        """From the text between the parentheses of a definition."""
        head = ast.parse(f"def f({text}): ...").body[0]
        assert isinstance(head, ast.FunctionDef)
        placed = tuple(arg.arg for arg in (*head.args.posonlyargs, *head.args.args))
        named = tuple(arg.arg for arg in head.args.kwonlyargs)
        given = dict(zip(placed[len(placed) - len(head.args.defaults) :], head.args.defaults, strict=True))
        given.update({name: value for name, value in zip(named, head.args.kw_defaults, strict=True) if value})
        defaults = {name: ast.literal_eval(value) for name, value in given.items()}
        return cls(placed, named, defaults, head.args.vararg is not None)

    @classmethod
    def of(cls, function: Callable[..., Any], bound: bool) -> Parameters:
        """Of a function that is there; ``bound`` leaves the first argument out."""
        return cls.read(written(list(inspect.signature(function).parameters.values())[bound:]))


def literal(value: Any) -> str:
    """A default as it is written: ``...`` for what is no literal."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "1e999" if value > 0 else "-1e999"
    return repr(value) if value is None or isinstance(value, (bool, int, float, str, tuple, list)) else "..."


def written(parameters: list[inspect.Parameter]) -> str:
    """Parameters as the text between the parentheses of a definition."""
    parts, starred = [], False
    for one in parameters:
        if one.kind is one.VAR_POSITIONAL:
            starred = True
            parts.append(f"*{one.name}")
        elif one.kind is one.VAR_KEYWORD:
            parts.append(f"**{one.name}")
        else:
            if one.kind is one.KEYWORD_ONLY and not starred:
                starred = True
                parts.append("*")
            parts.append(one.name if one.default is one.empty else f"{one.name}={literal(one.default)}")
    return ", ".join(parts)


def from_schemas(name: str, bound: bool, torch: Any) -> list[str]:
    """The ways in which an operation of PyTorch may be called, from its schemas."""
    found = []
    for schema in torch._C._jit_get_schemas_for_operator(name):
        arguments = schema.arguments
        if not arguments or any(a.name == "out" or a.is_out for a in arguments):
            continue
        if str(arguments[0].type) not in TENSORS[: 1 if bound else None] or (bound and arguments[0].name != "self"):
            continue
        kinds, names = inspect.Parameter, {"self": "input", "from": "from_"}
        found.append(written([
            kinds(names.get(a.name, a.name), kinds.KEYWORD_ONLY if a.kwarg_only else kinds.POSITIONAL_OR_KEYWORD,
                  default=a.default_value if a.has_default_value() else kinds.empty)
            for a in arguments[bound:]
        ]))  # fmt: skip
    return list(dict.fromkeys(found))


def recorded(room: str, torch: Any) -> dict[str, list[str]]:
    """What PyTorch has in a module, by name: the ways in which it may be called."""
    home = importlib.import_module(ROOMS[room]) if room != "Tensor" else torch.Tensor
    bound, out = room == "Tensor", {}
    for name in sorted(dir(home)):
        value = getattr(home, name)
        if name.startswith(("_", *PRIVATE)) or not callable(value) or inspect.ismodule(value):
            continue
        where = str(getattr(value, "__module__", None) or "torch")
        if not where.startswith("torch") or (inspect.isclass(value) and room in ("Tensor", "nn.functional", "nn.init")):
            continue
        function = getattr(home, f"_{name}", value) if inspect.isfunction(value) else value
        ways: list[str] = []
        if inspect.isclass(value):
            function = value.__init__
        if inspect.isfunction(function):
            ways = [written(list(inspect.signature(function).parameters.values())[bound or inspect.isclass(value) :])]
        elif not inspect.isclass(value):
            ways = from_schemas(f"aten::{FAMILIES.get(room, '')}{name}", bound, torch)
        if ways:
            out[name] = ways
    return out


def here(room: str, name: str) -> tuple[Callable[..., Any], bool] | None:
    """What goes by a name here, and whether its first argument is given by the call."""
    home = Tensor if room == "Tensor" else importlib.import_module(f"tinytg.{room}")
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # an older name
        found = inspect.getattr_static(home, name, None) if room == "Tensor" else getattr(home, name, None)
    if isinstance(found, (classmethod, staticmethod)):
        found = found.__func__
    elif not callable(found):
        return None
    if inspect.isclass(found):
        return (found, False) if hasattr(found, "__signature__") else (inspect.unwrap(found.__init__), True)
    return inspect.unwrap(found, stop=lambda f: hasattr(f, "__signature__")), room == "Tensor"


def compared(room: str, name: str, ways: list[str]) -> list[str]:
    """How the arguments of a function differ from PyTorch's, in a few words each."""
    found = here(room, name)
    if found is None:
        return []
    ours, said = Parameters.of(*found), set[str]()
    for way in ways:
        theirs, taken = Parameters.read(way), list[str]()
        for place, wanted in enumerate((*theirs.placed, *theirs.named)):
            mine = reached(wanted, (*ours.placed, *ours.named), taken)
            taken.append(mine or "")
            said.update(_one(place if place < len(theirs.placed) else None, wanted, mine, theirs, ours))
    return sorted(said)


def _one(place: int | None, wanted: str, mine: str | None, theirs: Parameters, ours: Parameters) -> Iterator[str]:
    """How one argument differs; ``place`` is where it may stand without a name."""
    behind = place is not None and place >= len(ours.placed)
    if place is not None and not behind and ours.placed[place] != mine:
        yield f"{wanted} stands where {ours.placed[place]} does"
    if mine is None and wanted in PLACED:
        return
    if behind and not ours.more:
        yield f"{wanted} has to be named"
    default = theirs.defaults.get(wanted, ...)
    if mine is None:
        if wanted not in IGNORED and not (wanted in HARMLESS and default in HARMLESS[wanted]) and not ours.more:
            yield f"{wanted} is not known"
    elif default is not ... and plain(default) != plain(ours.defaults.get(mine, ...)):
        yield f"{wanted} is {default!r}, here {ours.defaults.get(mine, ...)!r}"


def plain(value: Any) -> Any:
    """A default, one number where it is the same number for each axis."""
    if isinstance(value, (list, tuple)) and value and all(part == value[0] for part in value):
        return value[0]
    return tuple(value) if isinstance(value, list) else value


def recorded_names() -> dict[str, dict[str, list[str]]]:
    """What the file says of each module."""
    record = json.loads(RECORD.read_text())
    return {room: record[room] for room in ROOMS}


def differences() -> dict[str, list[str]]:
    """All differences, by name, of what is here under PyTorch's names."""
    return {
        f"{room}.{name}": said for room, known in recorded_names().items() for name, ways in known.items()
        if (said := compared(room, name, ways))
    }  # fmt: skip


def main() -> int:
    """Writes the record."""
    import torch

    found = {"torch": torch.__version__.split("+")[0], **{room: recorded(room, torch) for room in ROOMS}}
    RECORD.write_text(json.dumps(found, indent=0) + "\n")
    print(f"{RECORD.name}: {sum(map(len, list(found.values())[1:]))} names")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
