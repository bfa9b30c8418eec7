"""Real weights for workloads: packages that npm keeps, read by the examples that use them."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from .case import Unsupported

KEPT = "BENCH_NPM"
"""The environment variable that tells a worker, whose own caches are empty, where ``tools/npm.py`` keeps packages."""


def kept(environ: Mapping[str, str]) -> Path:
    """The folder of all packages that ``tools/npm.py`` fetched, in an environment."""
    base = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(environ.get(KEPT) or os.path.join(base, "tinytg", "npm"))


def package(name: str) -> Path:
    """The folder of a package of npm's registry.

    Args:
      name: ``NAME@VERSION``.

    Raises:
      Unsupported: if it was not fetched.
    """
    folder = kept(os.environ) / name / "package"
    if not folder.is_dir():
        raise Unsupported(f"the weights are not there: python -m tools.npm {name}")
    return folder


def example(name: str, needs: str = "") -> ModuleType:
    """A program of ``examples`` as a module.

    Args:
      name: of its file, without the ending.
      needs: a package that it reads its weights with.

    Raises:
      Unsupported: if that is not installed.
    """
    if needs and importlib.util.find_spec(needs) is None:
        raise Unsupported(f"the weights are read with {needs}, which is not installed")
    path = Path(__file__).resolve().parents[1] / "examples" / f"{name}.py"
    called = f"bench_example_{name}"
    if called not in sys.modules:
        spec = importlib.util.spec_from_file_location(called, path)
        assert spec is not None and spec.loader is not None
        sys.modules[called] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[called])
    return sys.modules[called]
