"""Anomaly mode: what each kernel wrote is looked at, and the operation that made a NaN is named. See ``ANOMALY``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..memory.buffer import Buffer
from ..steps.other import CustomOp
from ..steps.runner import Runner, Vars

if TYPE_CHECKING:
    from .watch import Watch


def watched(prg: Runner, bufs: Sequence[Buffer | None], values: Vars, origin: object) -> Watch | None:
    """What looks at a step's results once it has run; None where it makes no numbers.

    Args:
      prg: the step, which is about to run.
      bufs: its buffers.
      values: the values of the variables.
      origin: the line that it comes from, of a kernel perhaps with that of each of its operations.
    """
    kernel = getattr(prg, "ast", None)
    if kernel is None and not isinstance(prg, CustomOp):
        return None
    from .watch import Watch  # imported only where anomaly mode is on

    return Watch(prg.name, kernel, [buffer for buffer in bufs if buffer is not None], values, origin)
