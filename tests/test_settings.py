"""Settings: all of them are on their page, and no value of theirs stops an import."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tg_lazy import ContextVar

_READ = re.compile(r"""(?:ContextVar\(|environ\.get\(|environ\[|getenv\()\s*"([A-Z][A-Z0-9_]+)\"""")


@cache
def in_the_source(repository: Path) -> set[str]:
    """Names of environment variables that the packages read."""
    found: set[str] = set()
    for folder in (repository / "src", *(repository / "packages").glob("*/src")):
        for path in folder.rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if any(word in text for word in ("ContextVar(", "environ", "getenv(")):
                found.update(_READ.findall(text))
    return found


def test_the_page_has_every_setting(repository: Path) -> None:
    page = (repository / "docs" / "settings.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", "\n".join(re.findall(r"^\| (`.*?`) \|", page, re.MULTILINE))))
    names = in_the_source(repository)
    assert len(names) > 25 and "DEBUG" in names
    assert names - told == set()
    assert {key for key in ContextVar.registry if not key.startswith("TG_")} <= told


def test_the_page_has_the_defaults(repository: Path) -> None:
    page = (repository / "docs" / "settings.md").read_text(encoding="utf-8")
    program = """
import importlib, pkgutil, tinytg, tg_codegen.fallback, tg_hcq.core.compiled
import tg_runtime.host.processor, tg_runtime.memory.host
import tg_runtime.backends.cpu.pool
from tg_lazy import ContextVar
print({name: setting.value for name, setting in ContextVar.registry.items() if isinstance(setting.value, int)})
"""
    clean = {key: value for key, value in os.environ.items() if key not in in_the_source(repository)}
    done = subprocess.run([sys.executable, "-c", program], env=clean, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    values = eval(done.stdout)
    assert len(values) > 10
    for name, default in re.findall(r"^\| `([A-Z_]+)` \| (\d+) \|", page, re.MULTILINE):
        assert values.pop(name) == int(default)
    assert set(values) == {"CPU_COUNT"}  # whose default is told in words


@pytest.mark.drawn(2)
@pytest.mark.parametrize("value", ["", "foo", "-3", "*", "1.5", "true"])
def test_no_value_stops_the_import(value: str, repository: Path) -> None:
    names = {name for name in ContextVar.registry if isinstance(ContextVar.registry[name].value, int)}
    environment = {**os.environ, **dict.fromkeys(names - {"CCACHE"}, value)}
    program = "from tinytg import Tensor; print((Tensor([1, 2]) + 1).tolist())"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "[2, 3]\n"), done.stderr
    assert done.stderr.count("the environment variable DEBUG is") == bool(value)
    assert not value or f"DEBUG is {value!r}: a whole number from 0 on is wanted, and 0 is taken" in done.stderr


def test_debug_4_is_for_reading() -> None:
    program = """
from tinytg import Tensor, nn
layer = nn.Linear(64, 64)
for _ in range(2):
    layer(Tensor.ones(8, 64)).softmax(1).realize()
"""
    lines = {}
    for level in ("4", "5"):
        environment = {**os.environ, "DEBUG": level, "CCACHE": "0"}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90)
        assert done.returncode == 0, done.stderr
        lines[level] = done.stdout.splitlines()
    kernels = sum("actions:" in line for line in lines["4"])
    assert 3 <= kernels and len(lines["4"]) < 48 * kernels
    assert any(re.fullmatch(r"… \d+ more lines of \w+, with DEBUG=5", line) for line in lines["4"])
    sources = [line for line in lines["5"] if line.startswith(("define ", "void "))]
    assert len(sources) == len(set(sources)) and len(lines["5"]) > 2 * len(lines["4"])
    assert not any("more lines of" in line for line in lines["5"])
