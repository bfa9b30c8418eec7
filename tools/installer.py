"""Where uv is: on the path, or where Hatch says that its own is."""

from __future__ import annotations

import os
import shutil


def uv() -> str:
    """The path of the uv executable.

    Raises:
        FileNotFoundError: if there is none, neither on the path nor in ``HATCH_UV``.
    """
    if found := os.environ.get("HATCH_UV") or shutil.which("uv"):
        return found
    raise FileNotFoundError("uv is not installed; `hatch run` brings it, and so does `pip install uv`")
