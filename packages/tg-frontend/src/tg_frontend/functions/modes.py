"""Whether gradients are recorded, and what random numbers are drawn from."""

from __future__ import annotations

from functools import partial

from tg_lazy import ANOMALY

from ..autograd.differentiation import MODE, Switch
from ..ops.streams import STREAMS
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")


class _Set(Switch):
    """Turns recording on or off when it is made, and puts back what was at the end of a ``with`` block.

    Args:
      mode: whether gradients are recorded.
    """

    __slots__ = ("_before",)

    def __init__(self, mode: bool) -> None:
        super().__init__(MODE, "recording", mode)
        self._before = MODE.recording
        self.change()

    def restorer(self) -> Callable[[], object]:
        """Sets what was before this was made."""
        return partial(setattr, MODE, "recording", self._before)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """A decorator turns it on or off in calls of the function alone."""
        MODE.recording = self._before
        return super().__call__(function)


def no_grad() -> Switch:
    """A ``with`` block (or decorator) in which nothing is recorded for gradients, in this thread.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions.modes import no_grad
      >>> w = Tensor([1.0], requires_grad=True)
      >>> with no_grad():
      ...     (w * 2).requires_grad
      False
    """
    return Tensor.no_grad()


def enable_grad() -> Switch:
    """A ``with`` block (or decorator) in which gradients are recorded again, inside of :func:`no_grad`.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions.modes import enable_grad, no_grad
      >>> w = Tensor([1.0], requires_grad=True)
      >>> with no_grad(), enable_grad():
      ...     (w * 2).requires_grad
      True
    """
    return Tensor.enable_grad()


def set_grad_enabled(mode: bool) -> Switch:
    """Turns the recording of gradients on or off in this thread, from here on.

    ``Tensor.set_grad_enabled`` says so for a ``with`` block alone.

    Returns:
      For a ``with`` statement: at the end of that block it is again as it was. As a decorator it is so in calls of the
      function alone.

    Raises:
      TypeError: if ``mode`` is no bool.

    Example:
      >>> from tg_frontend.functions import is_grad_enabled, set_grad_enabled
      >>> with set_grad_enabled(False):
      ...     is_grad_enabled()
      False
      >>> is_grad_enabled()
      True
    """
    if not isinstance(mode, bool):
        raise TypeError(f"set_grad_enabled: True or False is wanted, got {mode!r}")
    return _Set(mode)


def is_grad_enabled() -> bool:
    """Whether gradients are recorded here.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import is_grad_enabled
      >>> with Tensor.no_grad():
      ...     is_grad_enabled()
      False
    """
    return MODE.recording


def inference_mode(mode: bool = True) -> Switch:
    """A ``with`` block (or decorator) in which nothing is recorded for gradients: the same as ``Tensor.no_grad``.

    Args:
      mode: False records them.

    Raises:
      TypeError: if ``mode`` is no bool.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import inference_mode
      >>> w = Tensor([1.0], requires_grad=True)
      >>> with inference_mode():
      ...     (w * 2).requires_grad
      False
    """
    return Tensor.set_grad_enabled(not mode if isinstance(mode, bool) else mode)


def is_inference_mode_enabled() -> bool:
    """Whether nothing is recorded for gradients here: there is no other mode of inference.

    Example:
      >>> from tg_frontend.functions import inference_mode, is_inference_mode_enabled
      >>> with inference_mode():
      ...     is_inference_mode_enabled()
      True
    """
    return not MODE.recording


def is_anomaly_enabled() -> bool:
    """Whether what makes a NaN is an error here; see :func:`~tg_frontend.detect_anomaly`.

    Example:
      >>> from tg_frontend import detect_anomaly
      >>> from tg_frontend.functions import is_anomaly_enabled
      >>> with detect_anomaly():
      ...     is_anomaly_enabled()
      True
    """
    return bool(ANOMALY.value)


def initial_seed() -> int:
    """The seed of the random numbers: what ``manual_seed`` was given, or what the process drew.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import initial_seed
      >>> Tensor.manual_seed(7)
      >>> initial_seed()
      7
    """
    return int.from_bytes(STREAMS.state()[:8], "little")


def seed() -> int:
    """Draws another seed from the system's random numbers, and returns it.

    Raises:
      RuntimeError: if TinyJit is recording.

    Example:
      >>> from tg_frontend.functions import initial_seed, seed
      >>> seed() == initial_seed()
      True
    """
    from os import urandom

    drawn = int.from_bytes(urandom(8), "little")
    Tensor.manual_seed(drawn)
    return drawn
