"""Compilers and tools that may be on the PATH."""

from __future__ import annotations

import functools
import os
import re
import shutil


@functools.cache
def find_tool(*names: str) -> str | None:
    """The path of the first of these programs that there is, or of a version of it (``name-19``), the newest."""
    for name in names:
        found = shutil.which(name)
        if found is not None:
            return found
    for name in names:
        versioned = re.compile(re.escape(name) + r"-(\d+)\Z")
        newest = (-1, "")
        for folder in os.get_exec_path():
            try:
                entries = os.listdir(folder)
            except OSError:
                continue
            for entry in entries:
                match = versioned.match(entry)
                path = os.path.join(folder, entry)
                if match and int(match[1]) > newest[0] and os.access(path, os.X_OK):
                    newest = int(match[1]), path
        if newest[1]:
            return newest[1]
    return None


def c_compiler(allow_gcc: bool = False) -> str | None:
    """The C compiler: ``CC`` if it is set, else clang; with ``allow_gcc``, gcc or cc if there is no clang."""
    chosen = os.environ.get("CC", "")
    if chosen:
        found = shutil.which(chosen)
        if found is not None and (allow_gcc or "clang" in os.path.basename(found)):
            return found
    found = find_tool("clang")
    if found is None and allow_gcc:
        found = find_tool("gcc", "cc")
    return found
