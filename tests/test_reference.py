"""The reference names everything that is public, each once, with an example that uses it; examples run as tests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tinytg
from tg_frontend.keywords import other_names
from tinytg import autograd, functions, nn

MODULES = ("array_api", "autograd", "fft", "language", "linalg", "nn", "signal", "special", "text")
PAGES = Path(__file__).parent.parent / "docs" / "reference"
_ENTRY = re.compile(r"^::: (tinytg\S*)\n(?:(?!:::|```)[^\n]*\n)*```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DIRECTIVE = re.compile(r"^::: (\S+)$", re.MULTILINE)


def _public() -> set[str]:
    """What is to be in the reference: methods of Tensor, names of nn and its modules, of special, of tinytg."""
    methods = {name for name in dir(tinytg.Tensor) if not name.startswith("_")} - set(other_names(tinytg.Tensor))
    names = {f"tinytg.Tensor.{name}" for name in methods}
    names |= {f"tinytg.{name}" for name in tinytg.__all__ if name not in MODULES}
    names |= {f"tinytg.special.{name}" for name in tinytg.special.__all__}
    names |= {f"tinytg.linalg.{name}" for name in tinytg.linalg.__all__}
    names |= {f"tinytg.fft.{name}" for name in tinytg.fft.__all__}
    names |= {f"tinytg.signal.windows.{name}" for name in tinytg.signal.windows.__all__}
    names |= {f"tinytg.language.{name}" for name in tinytg.language.__all__}
    again = ("Function", "detect_anomaly", "functional", "graph", "set_detect_anomaly")  # shown where they are from
    names |= {f"tinytg.autograd.{name}" for name in autograd.__all__ if name not in again}
    names |= {f"tinytg.autograd.functional.{name}" for name in autograd.functional.__all__}
    names |= {f"tinytg.autograd.graph.{name}" for name in autograd.graph.__all__}
    names |= {f"tinytg.text.{name}" for name in tinytg.text.__all__}
    names |= {f"tinytg.functions.{name}" for name in functions.__all__}
    modules = {
        "functional": nn.functional, "optim": nn.optim, "lr_scheduler": nn.lr_scheduler, "state": nn.state,
        "optim.swa_utils": nn.optim.swa_utils, "init": nn.init, "utils": nn.utils, "utils.rnn": nn.utils.rnn,
        "utils.stateless": nn.utils.stateless, "utils.parametrize": nn.utils.parametrize,
        "utils.parametrizations": nn.utils.parametrizations, "utils.prune": nn.utils.prune, "data": nn.data,
        "datasets": nn.datasets, "amp": nn.amp, "grad": nn.grad,
    }  # fmt: skip
    names |= {f"tinytg.nn.{name}" for name in nn.__all__ if name not in modules}
    for module, home in modules.items():
        known = ("lr_scheduler", "rnn", "stateless", "parametrizations", "parametrize", "prune", "swa_utils",
                 "clip_grad_norm_", "clip_grad_value_")  # fmt: skip
        names |= {f"tinytg.nn.{module}.{name}" for name in home.__all__ if name not in known}
    return names


def problems(pages: dict[str, str], public: set[str]) -> list[str]:
    """What is missing in the pages, there twice, or not public; and examples that do not use what they are of."""
    there = Counter(name for text in pages.values() for name in _DIRECTIVE.findall(text))
    found = [f"{name} is on no page" for name in sorted(public - set(there))]
    found += [f"{name} is there {count} times" for name, count in there.items() if count > 1]
    found += [f"{name} is not public" for name in there if name not in public]
    examples = {name: code for text in pages.values() for name, code in _ENTRY.findall(text)}
    for name in there:
        last = name.rpartition(".")[2]
        use = rf"\.{last}\b" if name.startswith("tinytg.Tensor.") else rf"\b{last}\b"
        if name != "tinytg.Tensor" and not re.search(use, examples.get(name, "")):
            found.append(f"{name} has no example that uses it right behind it")
    return found


def _pages() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(PAGES.glob("*.md"))}


def test_the_page_of_other_names_has_them_all() -> None:
    rows = re.findall(r"^\| `(\w+)` \| \[`(\w+)`\]\(", (PAGES / "names.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert dict(rows) == other_names(tinytg.Tensor)


def test_everything_public_is_in_the_reference_once_with_an_example() -> None:
    assert problems(_pages(), _public()) == []


@cache
def _loaded(extensions: tuple[str, ...]) -> Any:
    """The collection of modules that the pages are made of, which runs nothing."""
    griffe = pytest.importorskip("griffe")
    root = PAGES.parent.parent
    loader = griffe.GriffeLoader(
        search_paths=[root / "src", *(root / "packages").glob("*/src")],
        extensions=griffe.load_extensions(*(root / path for path in extensions)),
    )
    loader.load("tinytg")
    loader.resolve_aliases(external=True)
    return loader.modules_collection


def not_found(names: Iterable[str]) -> list[str]:
    """The names whose entries cannot be made, because what they are is not to be seen without running anything."""
    modules = _loaded(("tools/docstrings.py",))
    missing = []
    for name in names:
        try:
            modules[name]
        except KeyError:
            missing.append(name)
    return missing


def test_everything_on_a_page_is_found() -> None:
    names = [name for text in _pages().values() for name in re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)]
    assert len(names) > 1000
    assert not_found(names) == []
    assert not_found(["tinytg.autograd.gone", "tinytg.autograd.grad"]) == ["tinytg.autograd.gone"]


def unrendered(kind: type, extensions: tuple[str, ...]) -> list[str]:
    """The public methods and properties of a class that a page would show as bare attributes, or without their text."""
    shown = _loaded(extensions)["tinytg"]
    members = shown[kind.__name__].all_members
    names = [name for name in dir(kind) if not name.startswith("_") and getattr(kind, name).__doc__ is not None]
    plain = [name for name in names if name not in ("grad", "training")]
    return [
        name for name in plain
        if name not in members or members[name].docstring is None
        or not (members[name].is_function or "property" in members[name].labels)
    ]  # fmt: skip


def test_every_method_of_tensor_is_shown_with_its_signature_and_text() -> None:
    assert unrendered(tinytg.Tensor, ("tools/docstrings.py",)) == []
    assert len(unrendered(tinytg.Tensor, ())) > 200  # what would be lost without the extension


def test_the_table_of_subjects_leads_to_every_method_in_the_order_of_its_page() -> None:
    pages = _pages()
    rows = re.findall(r"^\| \[[^]]+\]\((\w+\.md)\) \| (.*) \|$", pages["tensor.md"], re.MULTILINE)
    for page, methods in rows:
        leads = [f"[`{name}`]({page}#tinytg.Tensor.{name})" for name in re.findall(r"`(\w+)`", methods)]
        assert ", ".join(leads) == methods
        assert re.findall(r"`(\w+)`", methods) == re.findall(r"^::: tinytg\.Tensor\.(\w+)$", pages[page], re.MULTILINE)
    listed = {page for page, _ in rows}
    assert {page for page, text in pages.items() if "::: tinytg.Tensor." in text} == listed


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("", "tinytg.Tensor.abs is on no page"),
        ("::: tinytg.Tensor.abs\n", "tinytg.Tensor.abs has no example that uses it right behind it"),
        ("::: tinytg.Tensor.abs\n\n```python\nx.neg()\n```\n",
         "tinytg.Tensor.abs has no example that uses it right behind it"),
        ("::: tinytg.Tensor.abs\n\n```python\nx.abs()\n```\n" * 2, "tinytg.Tensor.abs is there 2 times"),
        ("::: tinytg.Tensor.abs\n\n```python\nx.abs()\n```\n::: tinytg.Tensor.gone\n\n```python\nx.gone()\n```\n",
         "tinytg.Tensor.gone is not public"),
    ],
)  # fmt: skip
def test_what_is_amiss_is_seen(page: str, problem: str) -> None:
    assert problems({"page.md": page}, {"tinytg.Tensor.abs"}) == [problem]
