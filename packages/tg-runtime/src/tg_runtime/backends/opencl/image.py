"""Images of an OpenCL device: RGBA texels of float32 or float16, as tall and wide as their dtype says."""

from __future__ import annotations

import ctypes

from tg_dtype import ImageDType, dtypes

from . import api
from .memory import BufferMemory, CLMemory, check_foreign
from .queue import Queue

_Sizes = ctypes.c_size_t * 3


class _Format(ctypes.Structure):
    """``cl_image_format``."""

    _fields_ = [("order", ctypes.c_uint32), ("kind", ctypes.c_uint32)]


class _Description(ctypes.Structure):
    """``cl_image_desc``."""

    _fields_ = [
        ("type", ctypes.c_uint32), ("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t),
        ("array_size", ctypes.c_size_t), ("row_pitch", ctypes.c_size_t), ("slice_pitch", ctypes.c_size_t),
        ("mip_levels", ctypes.c_uint32), ("samples", ctypes.c_uint32), ("buffer", ctypes.c_void_p),
    ]  # fmt: skip


class ImageMemory(CLMemory):
    """A two-dimensional image. To and from the host it goes whole, row by row.

    Attributes:
      handle: the ``cl_mem``.
      dtype: its shape, and what a channel is stored as.
    """

    __slots__ = ("_argument", "dtype", "handle")

    def __init__(self, handle: int, dtype: ImageDType) -> None:
        super().__init__(dtype.nbytes)
        self.handle, self.dtype = handle, dtype
        self._argument = ctypes.c_void_p(handle)

    @classmethod
    def allocate(cls, queue: Queue, dtype: ImageDType) -> ImageMemory:
        """A new image.

        Raises:
          MemoryError: if there is not so much memory, or no image of the device is as tall or wide.
        """
        height, width, _ = dtype.shape
        most = queue.physical.number(api.DEVICE_IMAGE2D_MAX_HEIGHT), queue.physical.number(api.DEVICE_IMAGE2D_MAX_WIDTH)
        if height > most[0] or width > most[1]:
            raise MemoryError(f"{dtype.name}: images of the device are at most {most[0]} high and {most[1]} wide")
        status = ctypes.c_int32()
        wanted = _format(dtype)
        shape = _Description(type=api.MEM_OBJECT_IMAGE2D, width=width, height=height)
        handle: int = api.library().clCreateImage(
            queue.context, api.MEM_READ_WRITE, ctypes.byref(wanted), ctypes.byref(shape), None, ctypes.byref(status)
        )
        if status.value in api.NO_MEMORY:
            raise MemoryError(f"clCreateImage: {status.value}")
        api.check(status.value, dtype.name)
        return cls(handle, dtype)

    @classmethod
    def adopt(cls, queue: Queue, handle: int, dtype: ImageDType) -> ImageMemory:
        """An image that another library made; it is retained.

        Raises:
          ValueError: if it belongs to another context, or is no image of this kind.
        """
        height, width, _ = dtype.shape
        found = [api.info_number("clGetImageInfo", (handle,), n) for n in (api.IMAGE_HEIGHT, api.IMAGE_WIDTH)]
        form = api.info("clGetImageInfo", (handle,), api.IMAGE_FORMAT)
        if found != [height, width] or form != bytes(_format(dtype)):
            raise ValueError(f"the cl_mem {handle:#x} is no {dtype.name}: it is {found[0]} high and {found[1]} wide")
        check_foreign(queue, handle, 0)
        self = cls(handle, dtype)
        self.used = 1 << 62
        return self

    def _region(self) -> tuple[ctypes.Array[ctypes.c_size_t], ctypes.Array[ctypes.c_size_t]]:
        height, width, _ = self.dtype.shape
        return _Sizes(0, 0, 0), _Sizes(width, height, 1)

    def bind(self, queue: Queue, kernel: int, index: int) -> int:
        status: int = api.library().clSetKernelArg(kernel, index, 8, ctypes.byref(self._argument))
        return status

    def write(self, queue: Queue, address: int, nbytes: int, blocking: bool) -> None:
        self._write(queue, queue.handle, address, nbytes, blocking)

    def write_beside(self, queue: Queue, address: int, nbytes: int) -> None:
        self._write(queue, queue.copies, address, nbytes, True)

    def _write(self, queue: Queue, on: int, address: int, nbytes: int, blocking: bool) -> None:
        self._whole(nbytes)
        code = api.library().clEnqueueWriteImage(
            on, self.handle, blocking, *self._region(), 0, 0, address, 0, None, None
        )
        if code:
            raise queue.failed(code, f"copying {nbytes} bytes to {self.dtype.name}")

    def read(self, queue: Queue, address: int, nbytes: int) -> None:
        self._read(queue, queue.handle, address, nbytes)

    def read_beside(self, queue: Queue, address: int, nbytes: int) -> None:
        self._read(queue, queue.copies, address, nbytes)

    def _read(self, queue: Queue, on: int, address: int, nbytes: int) -> None:
        self._whole(nbytes)
        code = api.library().clEnqueueReadImage(on, self.handle, True, *self._region(), 0, 0, address, 0, None, None)
        if code:
            raise queue.failed(code, f"copying {nbytes} bytes from {self.dtype.name}")

    def _whole(self, nbytes: int) -> None:
        if nbytes != self.nbytes:
            raise ValueError(f"{self.dtype.name} has {self.nbytes} bytes and is copied whole, not {nbytes} bytes of it")

    def copy_to(self, queue: Queue, dest: CLMemory, nbytes: int) -> bool:
        cl, (origin, region) = api.library(), self._region()
        if isinstance(dest, ImageMemory) and dest.dtype is self.dtype and dest.handle != self.handle:
            code = cl.clEnqueueCopyImage(queue.handle, self.handle, dest.handle, origin, origin, region, 0, None, None)
        elif isinstance(dest, BufferMemory) and nbytes == self.nbytes:
            code = cl.clEnqueueCopyImageToBuffer(
                queue.handle, self.handle, dest.handle, origin, region, dest.begin, 0, None, None
            )
        else:
            return False
        if code:
            raise queue.failed(code, f"copying {self.dtype.name} on the device")
        return True

    def copy_from(self, queue: Queue, src: BufferMemory) -> bool:
        """Queues a copy of a buffer of the same size."""
        origin, region = self._region()
        code = api.library().clEnqueueCopyBufferToImage(
            queue.handle, src.handle, self.handle, src.begin, origin, region, 0, None, None
        )
        if code:
            raise queue.failed(code, f"copying to {self.dtype.name} on the device")
        return True

    def part(self, queue: Queue, nbytes: int, byte_offset: int) -> CLMemory:
        if byte_offset == 0 and nbytes == self.nbytes:
            return self
        raise TypeError(f"{self.dtype.name} has no parts (asked for {nbytes} bytes at {byte_offset})")

    def release(self, queue: Queue) -> None:
        handle, self.handle = self.handle, 0
        self.generation += 1
        if handle and queue.alive:
            api.library().clReleaseMemObject(handle)


def _format(dtype: ImageDType) -> _Format:
    return _Format(api.RGBA, api.HALF_FLOAT if dtype.base is dtypes.float16 else api.FLOAT)
