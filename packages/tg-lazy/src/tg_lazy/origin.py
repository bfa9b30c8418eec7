"""Where in the user's program a node was asked for."""

from __future__ import annotations

import sys

PACKAGES = frozenset(
    {"tg_dtype", "tg_shape", "tg_lazy", "tg_codegen", "tg_runtime", "tg_hcq", "tg_frontend", "tinytg"}
)
_ours: dict[str, bool] = {}


class Origin(tuple[str, int]):
    """A file name and a line number; as text, ``file:line``."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self[0]}:{self[1]}"


UNKNOWN = Origin(("<unknown>", 0))


def caller(depth: int = 2) -> tuple[str, int]:
    """File and line of the nearest frame, ``depth`` frames up, whose module is none of ours."""
    frame = sys._getframe(depth)
    while True:
        name = frame.f_code.co_filename
        ours = _ours.get(name)
        if ours is None:
            module = frame.f_globals.get("__name__", "")
            ours = _ours[name] = isinstance(module, str) and module.partition(".")[0] in PACKAGES
        if not ours:
            return name, frame.f_lineno
        if frame.f_back is None:
            return name, frame.f_lineno
        frame = frame.f_back
