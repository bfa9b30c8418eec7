"""How C calls the mock of the CUDA driver: one function at a time, with errors returned as statuses."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from typing import Any

from ...headers.cuda import api
from ...host.interrupts import Uninterrupted
from .work import Failure


class Gate:
    """Makes C functions of methods, one of which runs at a time.

    A call is done whole, as by a driver: Ctrl-C waits for its end. What a method raises beside :class:`Failure` cannot
    pass through C: the call then fails, and the exception goes on where ctypes is back in Python.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._local = threading.local()

    def function(self, method: Callable[..., None], arguments: tuple[Any, ...]) -> Any:
        """The C function of a method, which takes arguments of these types."""

        @functools.wraps(method)
        def call(*values: object) -> int:
            try:
                with Uninterrupted(), self._lock:
                    method(*values)
            except Failure as failure:
                return failure.code
            except BaseException as error:
                self._local.raised = error
                return api.UNKNOWN
            return api.SUCCESS

        found: Any = ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(call)
        found.errcheck = self._go_on
        return found

    def _go_on(self, code: int, function: object, arguments: object) -> int:
        raised: BaseException | None = self._local.__dict__.pop("raised", None)
        if raised is not None:
            raise raised
        return code
