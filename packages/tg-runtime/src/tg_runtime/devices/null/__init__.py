"""See :mod:`tg_runtime.backends.null.device`."""

from ...backends.null.device import NullDevice as NullDevice
