"""Where in the user's program a node was asked for."""

from __future__ import annotations

import sys
from threading import local
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

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


def _learn(frame: FrameType) -> bool:
    """Whether a frame's file is one of our packages, which is kept."""
    module = frame.f_globals.get("__name__", "")
    found = isinstance(module, str) and module.partition(".")[0] in PACKAGES
    _ours[frame.f_code.co_filename] = found
    return found


def caller(depth: int = 2) -> tuple[str, int]:
    """File and line of the innermost frame, from ``depth`` up, outside of our packages; else of the outermost."""
    frame: Any = sys._getframe(depth)
    ours = _ours
    while True:  # every node asks, and there are many frames: as few steps as possible for each
        try:
            while ours[frame.f_code.co_filename]:
                frame = frame.f_back
        except KeyError:
            _learn(frame)
        except AttributeError:  # there is no frame any more
            break
        else:
            return frame.f_code.co_filename, frame.f_lineno
    frame = sys._getframe(depth)
    while frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


class Told(Origin):
    """An origin with the method that was called there.

    Attributes:
      method: what the user's program called there, as ``Tensor.log``.
      gradient_of: the function whose gradient is computed, and where it was applied; None in a forward computation.
    """

    method: str
    gradient_of: tuple[str, tuple[str, int]] | None


class _Backward(local):
    """The function whose gradient this thread computes: see :attr:`Told.gradient_of`."""

    of: tuple[str, tuple[str, int]] | None = None


BACKWARD = _Backward()
WRAPPERS: set[CodeType] = set()
"""Code of functions that wrap a method, and are not what the user called."""


def detailed(depth: int = 2) -> Told:
    """What :func:`caller` finds, with the function of our packages that was called there."""
    frame: Any = sys._getframe(depth)
    inner, ours = frame, _ours
    while frame.f_back is not None:
        code = frame.f_code
        if not (ours[code.co_filename] if code.co_filename in ours else _learn(frame)):
            break
        if code not in WRAPPERS:
            inner = frame
        frame = frame.f_back
    told = Told((frame.f_code.co_filename, frame.f_lineno))
    told.method, told.gradient_of = "" if inner is frame else _name(inner), BACKWARD.of
    return told


def _name(frame: FrameType) -> str:
    """The name by which users know a frame's function: for a method, with the class of the object."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    owner = first if isinstance(first, type) else type(first)
    if owner.__module__.partition(".")[0] not in PACKAGES or not hasattr(owner, code.co_name):
        return code.co_name
    return owner.__name__ if code.co_name in ("__init__", "__call__") else f"{owner.__name__}.{code.co_name}"
