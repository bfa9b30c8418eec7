"""The page, from what is known of each operation."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

from tg_frontend.keywords import other_names
from tinytg import Tensor

from . import samples
from .measure import DEVICES, KINDS, label

PAGE = Path(__file__).parents[2] / "docs" / "tensor.md"
RESULTS = PAGE.with_suffix(".json")
Json = dict[str, Any]

INTRODUCTION = """# Every method of Tensor

What each method takes, how often it can be differentiated, and on which devices it was run: from a run.
`python -m tools.tensor_page` calls every method on small inputs of each kind of number on the devices of the machine,
compares the values with what numpy or PyTorch says, and writes this page. What the methods mean is told by subject, in
the [reference](reference/tensor.md).

- **also** are other names of the same method; those that end in `_` write into the tensor.
- **takes**: the kinds of numbers of the first operand in which every value was right: floats (f: float32 and bfloat16),
  integers (i: int32), unsigned ones (u: uint8), bools (b) and complex numbers (c: complex64); – for methods without
  one. Other kinds are refused in words. Most methods of floats take integers too, and give floats.
- **gradient**: how often it can be differentiated in float64, each time compared with differences along a direction.
  "any" was three times; "none" is of results without a gradient, such as integers; 0 is refused in words.
- **devices**: those on which it was run and all of it was right. A kind of number in parentheses is one that the device
  has not. WEBGPU is Dawn's on lavapipe, CUDA:PTX a stand-in for the driver that runs PTX on the host; a row without
  them was not run there.
- **compared with**: who says what is right; "devices" where nobody but the devices themselves, "shapes, dtypes" of
  random numbers, whose distributions have tests.
"""
TITLES = {
    "linalg": "linalg", "fft": "fft", "special": "special", "nn.functional": "nn.functional",
}  # fmt: skip


def results() -> Json:
    """What is known."""
    found: Json = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return found


def was_run(known: Json, name: str, device: str) -> bool:
    """Whether an operation was run on a device, whatever came of it."""
    return label(device) in known.get(name, {}).get("takes", {})


def others() -> list[str]:
    """Methods that compute nothing, as the results name them."""
    return [f"Tensor.{name}" for name in samples.others()]


def merged(had: Json, row: Json, names: dict[str, str]) -> Json:
    """What is known of an operation after another run: of devices and libraries that are not here, what it was."""
    out = {**had, **names}
    if "takes" in row:
        out["takes"] = {**had.get("takes", {}), **row["takes"]}
        out["gradient"] = row["gradient"] or had.get("gradient", "")
        told = row["against"] not in ("", "devices") or not had.get("against")
        out["against"] = row["against"] if told else had["against"]
    return out


def write(known: Json) -> None:
    """Writes the results and the page."""
    text = ",\n".join(f" {json.dumps(name)}: {json.dumps(row)}" for name, row in known.items())
    RESULTS.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")
    PAGE.write_text(page(known), encoding="utf-8")


def page(known: Json) -> str:
    """The text of the page."""
    also: dict[str, list[str]] = {}
    for other, name in other_names(Tensor).items():
        also.setdefault(name, []).append(other)
    nothing = samples.others()
    text = f"{INTRODUCTION}\n## Tensor\n\n" + table(known, [n for n in samples.methods() if n not in nothing], also)
    text += "\n## What is there, moved or asked\n\nAttributes, and methods that compute no elements.\n\n"
    text += "| name | also | numpy | PyTorch | |\n|---|---|---|---|---|\n"
    for name in nothing:
        row = known.get(f"Tensor.{name}", {})
        cells = [f"`{name}`", code(also.get(name, [])), name_of(row, "numpy"), name_of(row, "torch"), summary(name)]
        text += f"| {' | '.join(cells)} |\n"
    for room, title in TITLES.items():
        text += f"\n## {title}\n\n"
        if shared := samples.shared(room):
            text += f"As the methods of Tensor of these names: {code(shared)}.\n\n"
        text += table(known, samples.functions(room), {}, room)
    return text


def table(known: Json, names: list[str], also: dict[str, list[str]], room: str = "Tensor") -> str:
    """The rows of operations."""
    text = "| name | also | numpy | PyTorch | takes | gradient | devices | compared with |\n"
    text = text if also else text.replace("also | ", "")
    text += "|" + "---|" * (text.count("|") - 1) + "\n"
    for name in names:
        row = known.get(f"{room}.{name}", {})
        cells = [f"`{name}`", *([code(sorted(also.get(name, [])))] if also else [])]
        cells += [name_of(row, "numpy"), name_of(row, "torch"), takes(row), row.get("gradient", "") or "–"]
        cells += [devices(row), row.get("against", "")]
        text += f"| {' | '.join(cells)} |\n"
    return text


def code(names: list[str]) -> str:
    """Names in a cell."""
    return ", ".join(f"`{name}`" for name in names)


def name_of(row: Json, library: str) -> str:
    """What a library calls it, without the library's own name."""
    found: str = row.get(library, "")
    return f"`{found.partition('.')[2]}`" if found else ""


def takes(row: Json) -> str:
    """The kinds of numbers that some device takes."""
    known = row.get("takes", {})
    whole = {kind for kind, dtypes in KINDS.items() for taken in known.values() if set(dtypes) <= set(taken)}
    found = " ".join(kind[0] for kind in KINDS if kind in whole)
    rest = {dtype for kind, dtypes in KINDS.items() if kind not in whole for dtype in dtypes}
    partly = {dtype for taken in known.values() for dtype in taken if dtype in rest}
    return " ".join([found, *sorted(partly)]).strip() or "–"


def devices(row: Json) -> str:
    """The devices on which all was right, and what others lack."""
    known = row.get("takes", {})
    every = {d for taken in known.values() for d in taken}
    cells = []
    for device in map(label, DEVICES):
        if device not in known or not known[device]:
            continue
        lacks = sorted(every - set(known[device]))
        cells.append(device + (f" (not {', '.join(lacks)})" if lacks else ""))
    return ", ".join(cells)


def summary(name: str) -> str:
    """The first sentence of a method's docstring."""
    found = inspect.getattr_static(Tensor, name, None)
    doc = inspect.getdoc(getattr(found, "__func__", found)) or ""
    line = doc.partition("\n")[0]
    if isinstance(found, (bool, type(None))) or not doc or type(found).__name__ in ("member_descriptor", "bool"):
        return "an attribute"
    return line.replace("|", "\\|")
