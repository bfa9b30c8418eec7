"""Write the tables of ``docs/machine-model.md`` from the numbers of the machine model.

    python -m tools.machine_model
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tg_codegen.machine.costs import CPUCosts
from tg_codegen.machine.gpu import GPUCosts
from tg_codegen.machine.numbers import numbers

PAGE = Path(__file__).parents[1] / "docs" / "machine-model.md"
MODELS: dict[str, type[Any]] = {"cpu": CPUCosts, "gpu": GPUCosts}


def table(model: type[Any]) -> str:
    """The numbers of a model, a row each."""
    rows = [f"| `{n.name}` | {n.value:g} {n.unit} | {n.meaning} | {n.source} |" for n in numbers(model)]
    return "\n".join(["| number | value | what it is | source |", "|---|---|---|---|", *rows])


def page(text: str) -> str:
    """The page with its tables written anew.

    Raises:
      ValueError: it has no place for one of them.
    """
    for name, model in MODELS.items():
        begin, end = f"<!-- {name}: python -m tools.machine_model -->", f"<!-- end of {name} -->"
        pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
        found = pattern.search(text)
        if found is None:
            raise ValueError(f"the page has no lines {begin!r} and {end!r}")
        text = f"{text[: found.start()]}{begin}\n{table(model)}\n{end}{text[found.end() :]}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
