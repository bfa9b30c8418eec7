"""Anomaly mode, as PyTorch spells it."""

from __future__ import annotations

from functools import partial

from tg_lazy import ANOMALY, Context, ContextVar, Scope
from tg_lazy.graph.lazybuffer import tell_methods

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_base: Any = ContextVar.__dict__["value"]


def _setting(check_nan: bool, inf: bool, what: str) -> int:
    if inf and not check_nan:
        raise ValueError(f"{what}: inf=True with check_nan=False, without which nothing is looked at")
    return 0 if not check_nan else 2 if inf else 1


def detect_anomaly(check_nan: bool = True, inf: bool = False) -> Context:
    """A ``with`` block, or a decorator, in which the first operation that makes a NaN is an error.

    What a kernel writes is looked at when it has run, in this thread. If there is a NaN that came from no operand, a
    ``tg_runtime.AnomalyError`` names the operation, its operands at the first such element, the method that was called
    and the line of the program; in ``backward`` also the line whose gradient it is. What was computed until then stays.
    A NaN that a ``where`` does not choose is not in the result, and no error; nor is one that the program put there.

    Tensors are computed when they are asked for: what is realised inside of the block is looked at, whenever it was
    built. It is named best if it was built inside, too. The mode is slow: a question is asked after each kernel.

    Args:
      check_nan: whether anything is looked at. Errors of ``backward`` name the function in either case.
      inf: infinities that are made of finite numbers are errors, too.

    Raises:
      ValueError: if ``inf`` without ``check_nan``.

    Example:
      >>> from tg_frontend import Tensor, detect_anomaly
      >>> from tg_runtime import AnomalyError
      >>> try:
      ...     with detect_anomaly():
      ...         Tensor([1.0, -1.0], device="NUMPY").log().realize()
      ... except AnomalyError as error:
      ...     print(str(error).partition(", shape")[0])
      LOG of -1 made NaN: 1 of 2 elements, the first at (1,)
    """
    return Context(ANOMALY=_setting(check_nan, inf, "detect_anomaly"))


class _Until(Scope):
    """Puts back what was, at the end of a ``with`` block.

    Args:
      before: the value of the setting that is put back.
    """

    __slots__ = ("_before",)

    def __init__(self, before: int) -> None:
        super().__init__()
        self._before = before

    def restorer(self) -> Callable[[], object]:
        """Sets what was."""
        return partial(_base.__set__, ANOMALY, self._before)

    def change(self) -> None:
        """It is changed already."""


def set_detect_anomaly(mode: bool, check_nan: bool = True, inf: bool = False) -> Scope:
    """Turns anomaly mode on or off in every thread: see :func:`detect_anomaly`.

    Args:
      mode: whether it is on.
      check_nan: as in :func:`detect_anomaly`.
      inf: infinities that are made of finite numbers are errors, too.

    Returns:
      For a ``with`` statement: at the end of that block the mode is again what it was.

    Raises:
      ValueError: if ``inf`` without ``check_nan``.

    Example:
      >>> from tg_frontend import Tensor, set_detect_anomaly
      >>> with set_detect_anomaly(True):
      ...     Tensor([4.0], device="NUMPY").sqrt().tolist()
      [2.0]
    """
    before: int = _base.__get__(ANOMALY)
    setting = _setting(check_nan, inf, "set_detect_anomaly")
    tell_methods()
    _base.__set__(ANOMALY, setting if mode else 0)
    return _Until(before)
