"""Where NVIDIA's libraries and headers lie: in wheels from PyPI (``nvidia-cuda-nvrtc`` …), or in a toolkit."""

from __future__ import annotations

import ctypes
import functools
import glob
import os
import re
from importlib.util import find_spec

_TOOLKITS = ("/usr/local/cuda", "/opt/cuda")


@functools.cache
def folders() -> tuple[str, ...]:
    """The folders that may hold ``lib`` and ``include``, wheels first and the newest of them first."""
    found: list[str] = []
    spec = find_spec("nvidia")
    for root in [] if spec is None else spec.submodule_search_locations or []:
        found += sorted(glob.glob(os.path.join(root, "cu[0-9]*")), reverse=True)
        found += sorted(glob.glob(os.path.join(root, "*_*")))  # wheels for CUDA 12 have a folder each
        found.append(os.path.join(root, "nvjitlink"))
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    return tuple(folder for folder in (*found, *([home] if home else []), *_TOOLKITS) if os.path.isdir(folder))


@functools.cache
def library(stem: str) -> str | None:
    """The path or name of the library ``lib<stem>.so`` in its newest version; None if it is not there.

    Looks for files only; the dynamic linker is asked last.
    """
    exact = re.compile(rf"lib{stem}\.so(\.\d+)*\Z")
    for folder in folders():
        for place in ("lib", "lib64", "bin"):
            names = glob.glob(os.path.join(folder, place, f"lib{stem}.so*"))
            chosen = [name for name in names if exact.match(os.path.basename(name))]
            if chosen:
                return max(chosen, key=_version)
    for version in (".13", ".12", ".11.2", ""):
        name = f"lib{stem}.so{version}"
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return name
    return None


def _version(path: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", os.path.basename(path)))


@functools.cache
def include_folders() -> tuple[str, ...]:
    """The folders that hold ``cuda_fp16.h``."""
    found = (os.path.join(folder, "include") for folder in folders())
    return tuple(folder for folder in found if os.path.isfile(os.path.join(folder, "cuda_fp16.h")))


@functools.cache
def tool(name: str) -> str | None:
    """The path of a program of the toolkit, such as ``nvdisasm``; None if it is not there."""
    from shutil import which

    for folder in folders():
        path = os.path.join(folder, "bin", name)
        if os.access(path, os.X_OK):
            return path
    return which(name)
