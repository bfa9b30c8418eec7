"""Where in the user's program a node was asked for."""

from __future__ import annotations

import sys
from typing import Any

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
    """File and line of the nearest frame, ``depth`` frames up, whose module is none of ours; else of the outermost."""
    frame: Any = sys._getframe(depth)
    ours = _ours
    while True:  # every node asks, and there are many frames: as few steps as possible for each
        try:
            while ours[frame.f_code.co_filename]:
                frame = frame.f_back
        except KeyError:
            module = frame.f_globals.get("__name__", "")
            ours[frame.f_code.co_filename] = isinstance(module, str) and module.partition(".")[0] in PACKAGES
        except AttributeError:  # there is no frame any more
            break
        else:
            return frame.f_code.co_filename, frame.f_lineno
    frame = sys._getframe(depth)
    while frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
