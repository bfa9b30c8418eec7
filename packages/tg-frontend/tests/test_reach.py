"""Where the tensors of a recorded function are looked for."""

from __future__ import annotations

import gc
import importlib
import random
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor
from tg_frontend.jit.reach import Reached

pytestmark = pytest.mark.usefixtures("no_warning")


def real(*values: float) -> Tensor:
    return Tensor(list(values)).contiguous().realize()


def _installed(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> Any:
    """A module that is imported as one of an installed package."""
    place = folder / "site-packages"
    place.mkdir(exist_ok=True)
    (place / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


def test_tensors_of_installed_packages_that_use_ours_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: Any, backend: str
) -> None:
    module = _installed(
        tmp_path, monkeypatch, "installed_model",
        "from tg_frontend import Tensor\nscale = Tensor([2.0]).realize()\ndef model(x): return x * scale\n",
    )  # fmt: skip
    function = recorded(lambda x: module.model(x), lambda: real(1.0))
    module.scale = real(3.0)
    assert function(real(5.0)).item() == 15
    module.scale.assign(real(4.0))
    assert function(real(5.0)).item() == 20


def test_what_is_handed_through_foreign_code_is_found(recorded: Any, backend: str) -> None:
    space = SimpleNamespace(scale=real(2.0), more={"w": deque([real(1.0)])})

    @contextmanager
    def scaled(by: SimpleNamespace = space) -> Iterator[Tensor]:
        yield by.scale + by.more["w"][0]

    def step(x: Tensor) -> Tensor:
        with scaled() as scale:
            return x * scale

    function = recorded(step, lambda: real(1.0))
    space.scale = real(3.0)
    space.more["w"][0] += 1
    assert function(real(5.0)).item() == 25


def test_the_walk_does_not_enter_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = _installed(
        tmp_path, monkeypatch, "installed_library",
        "table = {n: [n] for n in range(900)}\ndef look(x): return table, x\nclass Thing:\n    all = table\n",
    )  # fmt: skip

    def step(x: Tensor) -> Any:
        assert np.sum(x.numpy()) == 0 or gc.isenabled() or warnings.catch_warnings()
        return other.look(x), other.Thing, random.Random(0), np.random.default_rng

    assert len(Reached([step])._into) < 20


def test_numbers_are_not_in_the_way_of_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk has an end, and what leads to no tensor does not bring it nearer."""
    monkeypatch.setattr("tg_frontend.jit.reach._MOST", 1000)
    last = real(1.0)
    model = [object(), *(float(n) for n in range(2000)), [last]]
    assert last in Reached([model])
