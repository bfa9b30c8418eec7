"""What a device can hold of one kernel, checked before it is launched: drivers answer with a number at best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import DeviceError

if TYPE_CHECKING:
    from tg_codegen import ProgramSpec, Renderer


def check_limits(spec: ProgramSpec, renderer: Renderer, device: str) -> None:
    """Does nothing if the kernel fits the device (:func:`tg_codegen.limits.broken_limits`).

    A kernel without UOps, from the disk for instance, was checked when it was made.

    Raises:
      DeviceError: it has too many work-items or work-groups, or too much memory of its own; the message says how much
        there is.
    """
    from tg_codegen.limits import broken_limits  # who only interprets never needs the code generator

    broken = broken_limits(spec, renderer)
    if broken:
        raise DeviceError(f"kernel {spec.name} on {device}: {'; '.join(broken)}")
