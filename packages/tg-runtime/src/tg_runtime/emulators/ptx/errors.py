"""What the translator raises."""

from __future__ import annotations

from ...errors import DeviceError
from .syntax import Function, Instruction


class PTXUnsupported(DeviceError):
    """The text has an instruction that the translator does not know."""


def unsupported(function: Function, i: Instruction) -> PTXUnsupported:
    """What to raise for an instruction that is not known."""
    return PTXUnsupported(f"PTX: {function.name}, line {i.line}: {i} is not known to the translator")
