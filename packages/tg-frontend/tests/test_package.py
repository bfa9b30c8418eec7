"""The package itself: its import, its names, its examples."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import tg_frontend
from tg_frontend import Tensor


def test_importing_brings_no_heavy_module() -> None:
    heavy = ("numpy", "llvmlite", "json", "mmap", "ctypes")
    code = f"import sys, tg_frontend; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_numbers_in_and_out_need_no_numpy() -> None:
    code = (
        "import sys; from tg_frontend import Tensor; from tg_runtime import Device; "
        "x = Tensor([[1.5, 2], [3, 4]], device='NULL'); y = (x + 1).sum(); repr(x); print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_exported_names_exist() -> None:
    assert all(hasattr(tg_frontend, name) for name in tg_frontend.__all__)


def test_modules_stay_small(source: Path) -> None:
    """But for what a program writes, and for Tensor, which is a table with a line for each operation."""
    texts = {path.relative_to(source): path.read_text().splitlines() for path in source.rglob("*.py")}
    del texts[Path("tensor.py")]
    by_hand = {path: len(text) for path, text in texts.items() if text and "written by ``python -m" not in text[0]}
    assert {path: size for path, size in by_hand.items() if size > 520} == {}


def test_no_public_method_lacks_a_docstring() -> None:
    names = [name for name in dir(Tensor) if not name.startswith("_")]
    assert len(names) > 200
    plain = [name for name in names if getattr(Tensor, name).__doc__ is None and name != "training"]
    assert not [name for name in plain if name not in ("grad", "lazydata", "requires_grad")]
