"""See :mod:`tg_runtime.backends.numpy.device`."""

from ...backends.numpy.device import NumpyDevice as NumpyDevice
