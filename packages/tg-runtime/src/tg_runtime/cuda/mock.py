"""A CUDA driver without a GPU: the functions of the driver API, kernels of PTX run on the host.

They are handed out as C functions with the types of :data:`~tg_runtime.cuda.api.PROTOTYPES`, so what calls them goes
the way that it goes with the real driver. Memory is the host's. Work is done when it is queued; what fails is reported,
as by the real driver, at the next synchronisation, and from then on by every call.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from ..errors import DeviceError
from ..ptx.machine import Kernel, MisalignedAddress, Program
from ..ptx.parser import PTXSyntaxError
from . import api
from .api import PROTOTYPES, Driver, KernelNodeParams

_NAMES = {
    api.INVALID_VALUE: "INVALID_VALUE", api.NO_MEMORY: "OUT_OF_MEMORY", api.INVALID_IMAGE: "INVALID_IMAGE",
    api.INVALID_PTX: "INVALID_PTX", api.INVALID_HANDLE: "INVALID_HANDLE", api.NOT_FOUND: "NOT_FOUND",
    api.MISALIGNED_ADDRESS: "MISALIGNED_ADDRESS", api.LAUNCH_FAILED: "LAUNCH_FAILED", 101: "INVALID_DEVICE",
    201: "INVALID_CONTEXT",
}  # fmt: skip
_INVALID_DEVICE, _INVALID_CONTEXT = 101, 201
_THREADS, _SHARED_BYTES, _BLOCK_LIMITS = 1024, 48 << 10, (1024, 1024, 64)
_GRID_LIMITS = (2**31 - 1, 65535, 65535)
_ALIGNMENT = 512  # of memory


class _Pointer(Protocol):
    """What ctypes gives for a pointer argument."""

    def __getitem__(self, index: int) -> Any: ...
    def __setitem__(self, index: int, value: object) -> None: ...


class _Failure(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(_NAMES.get(code, str(code)))
        self.code = code


class MockDriver:
    """The state of the mock, and its functions: one method for each, with the arguments after ctypes converted them.

    Args:
      arch: compute capability of its devices, ``sm_90``.
      devices: how many there are.
      memory_bytes: memory of each.

    Attributes:
      error: what the last kernel that failed said.
      launches: how many kernels ran.
      used: bytes in use on each device.
      objects: how many handles are in use.
    """

    def __init__(self, arch: str = "sm_90", devices: int = 2, memory_bytes: int = 1 << 34) -> None:
        self.capability = int(arch.removeprefix("sm_").rstrip("af"))
        self.devices, self.memory_bytes = devices, memory_bytes
        self.error = ""
        self.launches = 0
        self._handles: dict[int, Any] = {}
        self._memory: dict[int, tuple[ctypes.Array[ctypes.c_char], int, int]] = {}
        self.used = [0] * devices
        self._numbers = itertools.count(0x1000)
        self._local = threading.local()
        self._lock = threading.RLock()
        self._failed = 0

    def functions(self) -> dict[str, Any]:
        """The functions by name, as C functions."""
        found = {}
        for name, arguments in PROTOTYPES.items():
            kind = ctypes.CFUNCTYPE(ctypes.c_int, *arguments)
            found[name] = kind(self._guarded(getattr(self, name)))
        return found

    def _guarded(self, method: Callable[..., None]) -> Callable[..., int]:
        @functools.wraps(method)
        def call(*arguments: object) -> int:
            try:
                with self._lock:
                    method(*arguments)
            except _Failure as failure:
                return failure.code
            return api.SUCCESS

        return call

    # objects

    @property
    def objects(self) -> int:
        return len(self._handles)

    def _new(self, thing: object) -> int:
        number = next(self._numbers)
        self._handles[number] = thing
        return number

    def _get(self, handle: int | None, kind: type) -> Any:
        found = self._handles.get(handle or 0)
        if not isinstance(found, kind):
            raise _Failure(api.INVALID_HANDLE)
        return found

    def _drop(self, handle: int | None, kind: type) -> None:
        self._get(handle, kind)
        del self._handles[handle or 0]

    def _device(self, device: int) -> None:
        if not 0 <= device < self.devices:
            raise _Failure(_INVALID_DEVICE)

    def _current(self) -> int:
        found: int | None = getattr(self._local, "device", None)
        if found is None:
            raise _Failure(_INVALID_CONTEXT)
        if self._failed:
            raise _Failure(self._failed)
        return found

    # devices

    def cuInit(self, flags: int) -> None:
        if flags:
            raise _Failure(api.INVALID_VALUE)

    def cuDriverGetVersion(self, version: _Pointer) -> None:
        version[0] = 13000

    def cuGetErrorName(self, code: int, text: _Pointer) -> None:
        if code not in _NAMES:
            raise _Failure(api.INVALID_VALUE)
        text[0] = f"CUDA_ERROR_{_NAMES[code]}".encode()

    def cuDeviceGetCount(self, count: _Pointer) -> None:
        count[0] = self.devices

    def cuDeviceGet(self, device: _Pointer, index: int) -> None:
        self._device(index)
        device[0] = index

    def cuDeviceGetName(self, text: int, size: int, device: int) -> None:
        self._device(device)
        name = f"mock GPU {device}".encode()[: size - 1] + b"\0"
        ctypes.memmove(text, name, len(name))

    def cuDeviceGetAttribute(self, value: _Pointer, number: int, device: int) -> None:
        self._device(device)
        known = {
            api.MAX_THREADS_PER_BLOCK: _THREADS,
            **dict(zip(range(api.MAX_BLOCK_DIM_X, api.MAX_BLOCK_DIM_X + 3), _BLOCK_LIMITS, strict=True)),
            **dict(zip(range(api.MAX_GRID_DIM_X, api.MAX_GRID_DIM_X + 3), _GRID_LIMITS, strict=True)),
            api.MAX_SHARED_PER_BLOCK: _SHARED_BYTES,
            api.REGISTERS_PER_BLOCK: 65536,
            api.MULTIPROCESSORS: 1,
            api.L2_BYTES: 4 << 20,
            api.CAPABILITY_MAJOR: self.capability // 10,
            api.CAPABILITY_MINOR: self.capability % 10,
        }
        if number not in known:
            raise _Failure(api.INVALID_VALUE)
        value[0] = known[number]

    def cuDeviceTotalMem_v2(self, size: _Pointer, device: int) -> None:
        self._device(device)
        size[0] = self.memory_bytes

    def cuDeviceCanAccessPeer(self, value: _Pointer, device: int, other: int) -> None:
        self._device(device)
        self._device(other)
        value[0] = device != other

    # contexts

    def cuDevicePrimaryCtxRetain(self, context: _Pointer, device: int) -> None:
        self._device(device)
        context[0] = 0x100 + device

    def cuDevicePrimaryCtxRelease_v2(self, device: int) -> None:
        self._device(device)

    def cuCtxSetCurrent(self, context: int | None) -> None:
        if context is not None:
            self._device(context - 0x100)
        self._local.device = None if context is None else context - 0x100

    def cuCtxEnablePeerAccess(self, context: int, flags: int) -> None:
        if context - 0x100 == self._current() or flags:
            raise _Failure(api.INVALID_VALUE)

    # memory

    def _allocate(self, nbytes: int, device: int) -> int:
        if nbytes == 0:
            raise _Failure(api.INVALID_VALUE)
        if device >= 0 and self.used[device] + nbytes > self.memory_bytes:
            raise _Failure(api.NO_MEMORY)
        try:
            block = (ctypes.c_char * (nbytes + _ALIGNMENT))()
        except MemoryError:
            raise _Failure(api.NO_MEMORY) from None
        address = -(-ctypes.addressof(block) // _ALIGNMENT) * _ALIGNMENT
        self._memory[address] = block, nbytes, device
        if device >= 0:
            self.used[device] += nbytes
        return address

    def _release(self, address: int, host: bool) -> None:
        found = self._memory.get(address)
        if found is None or (found[2] < 0) != host:
            raise _Failure(api.INVALID_VALUE)
        del self._memory[address]
        if not host:
            self.used[found[2]] -= found[1]

    def cuMemAlloc_v2(self, address: _Pointer, nbytes: int) -> None:
        address[0] = self._allocate(nbytes, self._current())

    def cuMemFree_v2(self, address: int) -> None:
        self._current()
        self._release(address, host=False)

    def cuMemHostAlloc(self, address: _Pointer, nbytes: int, flags: int) -> None:
        self._current()
        address[0] = self._allocate(nbytes, -1)

    def cuMemFreeHost(self, address: int) -> None:
        self._current()
        self._release(address, host=True)

    def _copy(self, dest: int, src: int, nbytes: int, stream: int | None) -> None:
        self._current()
        self._get(stream, _Stream)
        ctypes.memmove(dest, src, nbytes)

    def _inside(self, address: int, nbytes: int) -> None:
        """Fails unless the range lies in memory that was allocated."""
        blocks = ((begin, begin + size) for begin, (_, size, _) in self._memory.items())
        if not any(begin <= address and address + nbytes <= end for begin, end in blocks):
            raise _Failure(api.INVALID_VALUE)

    def cuMemcpyHtoDAsync_v2(self, dest: int, src: int, nbytes: int, stream: int | None) -> None:
        self._inside(dest, nbytes)
        self._copy(dest, src, nbytes, stream)

    def cuMemcpyDtoHAsync_v2(self, dest: int, src: int, nbytes: int, stream: int | None) -> None:
        self._inside(src, nbytes)
        self._copy(dest, src, nbytes, stream)

    def cuMemcpyDtoDAsync_v2(self, dest: int, src: int, nbytes: int, stream: int | None) -> None:
        self._inside(dest, nbytes)
        self._inside(src, nbytes)
        self._copy(dest, src, nbytes, stream)

    def cuMemcpyPeerAsync(self, dest: int, to: int, src: int, of: int, nbytes: int, stream: int | None) -> None:
        self._device(to - 0x100)
        self._device(of - 0x100)
        self.cuMemcpyDtoDAsync_v2(dest, src, nbytes, stream)

    # streams and events

    def cuStreamCreate(self, stream: _Pointer, flags: int) -> None:
        stream[0] = self._new(_Stream(self._current()))

    def cuStreamSynchronize(self, stream: int | None) -> None:
        self._current()
        self._get(stream, _Stream)

    def cuStreamWaitEvent(self, stream: int | None, event: int | None, flags: int) -> None:
        self._current()
        self._get(stream, _Stream)
        self._get(event, _Event)

    def cuStreamDestroy_v2(self, stream: int | None) -> None:
        self._drop(stream, _Stream)

    def cuEventCreate(self, event: _Pointer, flags: int) -> None:
        self._current()
        event[0] = self._new(_Event())

    def cuEventRecord(self, event: int | None, stream: int | None) -> None:
        self._current()
        self._get(stream, _Stream)
        self._get(event, _Event).moment = time.perf_counter()

    def cuEventSynchronize(self, event: int | None) -> None:
        self._current()
        self._get(event, _Event)

    def cuEventElapsedTime(self, milliseconds: _Pointer, start: int | None, end: int | None) -> None:
        milliseconds[0] = (self._get(end, _Event).moment - self._get(start, _Event).moment) * 1e3

    def cuEventDestroy_v2(self, event: int | None) -> None:
        self._drop(event, _Event)

    # programs

    def cuModuleLoadDataEx(
        self, module: _Pointer, image: int, count: int, options: _Pointer, values: _Pointer
    ) -> None:
        self._current()
        given = {options[i]: values[i] for i in range(count)}
        text = ctypes.string_at(image)
        if text.startswith(b"\x7fELF"):
            self._log(given, "the mock runs PTX only: it has no processor for machine code")
            raise _Failure(api.INVALID_IMAGE)
        try:
            program = Program(text.decode())
            target = int(program.module.target.removeprefix("sm_").rstrip("af") or 0)
        except (PTXSyntaxError, DeviceError, ValueError) as error:
            self._log(given, str(error))
            raise _Failure(api.INVALID_PTX) from None
        if target > self.capability:
            self._log(given, f"the text is for {program.module.target}, the device is sm_{self.capability}")
            raise _Failure(api.INVALID_PTX)
        module[0] = self._new(program)

    def _log(self, given: dict[int, int], message: str) -> None:
        place, size = given.get(api.JIT_ERROR_LOG), given.get(api.JIT_ERROR_LOG_BYTES) or 0
        if place and size:
            text = message.encode()[: size - 1] + b"\0"
            ctypes.memmove(place, text, len(text))

    def cuModuleUnload(self, module: int | None) -> None:
        kernels = set(map(id, self._get(module, Program).kernels.values()))
        for handle in [handle for handle, thing in self._handles.items() if id(thing) in kernels]:
            del self._handles[handle]
        self._drop(module, Program)

    def cuModuleGetFunction(self, function: _Pointer, module: int | None, name: bytes) -> None:
        kernel = self._get(module, Program).kernels.get(name.decode())
        if kernel is None:
            raise _Failure(api.NOT_FOUND)
        function[0] = self._new(kernel)

    def cuFuncGetAttribute(self, value: _Pointer, number: int, function: int | None) -> None:
        kernel: Kernel = self._get(function, Kernel)
        x, y, z = kernel.max_threads or (_THREADS, 1, 1)
        known = {api.FUNC_MAX_THREADS: min(x * y * z, _THREADS), api.FUNC_SHARED_BYTES: kernel.shared_bytes}
        value[0] = known.get(number, 0)

    def cuLaunchKernel(self, function: int | None, *arguments: Any) -> None:
        *sizes, shared_bytes, stream, params, extra = arguments
        self._current()
        self._get(stream, _Stream)
        if extra:
            raise _Failure(api.INVALID_VALUE)
        kernel: Kernel = self._get(function, Kernel)
        self._launch(_Launch(kernel, tuple(sizes[:3]), tuple(sizes[3:]), shared_bytes, _read(kernel, params)))

    def _launch(self, launch: _Launch) -> None:
        launch.check()
        self.launches += 1
        try:
            launch.kernel.launch(launch.params, launch.grid, launch.block, launch.shared_bytes)
        except DeviceError as error:  # reported when somebody waits
            self.error = str(error)
            self._failed = api.MISALIGNED_ADDRESS if isinstance(error, MisalignedAddress) else api.LAUNCH_FAILED

    # graphs

    def cuGraphCreate(self, graph: _Pointer, flags: int) -> None:
        graph[0] = self._new(_Graph())

    def cuGraphAddKernelNode(
        self, node: _Pointer, graph: int | None, before: int | None, count: int, params: _Pointer
    ) -> None:
        owner: _Graph = self._get(graph, _Graph)
        after = (ctypes.c_void_p * count).from_address(before) if before and count else ()
        for handle in after:
            if handle not in owner.launches:
                raise _Failure(api.INVALID_VALUE)
        node[0] = number = self._new(owner)
        owner.launches[number] = self._described(params[0])

    def _described(self, params: KernelNodeParams) -> _Launch:
        kernel: Kernel = self._get(params.func, Kernel)
        grid, block = tuple(params.grid), tuple(params.block)
        launch = _Launch(kernel, grid, block, params.shared_bytes, _read(kernel, params.params))
        launch.check()
        return launch

    def cuGraphInstantiateWithFlags(self, executable: _Pointer, graph: int | None, flags: int) -> None:
        executable[0] = self._new(_Executable(self._get(graph, _Graph)))

    def cuGraphExecKernelNodeSetParams(self, executable: int | None, node: int | None, params: _Pointer) -> None:
        launches = self._get(executable, _Executable).launches
        if node not in launches:
            raise _Failure(api.INVALID_VALUE)
        described = self._described(params[0])
        if described.kernel is not launches[node].kernel:
            raise _Failure(api.INVALID_VALUE)
        launches[node] = described

    def cuGraphLaunch(self, executable: int | None, stream: int | None) -> None:
        self._current()
        self._get(stream, _Stream)
        for launch in self._get(executable, _Executable).launches.values():
            self._launch(launch)

    def cuGraphExecDestroy(self, executable: int | None) -> None:
        self._drop(executable, _Executable)

    def cuGraphDestroy(self, graph: int | None) -> None:
        for node in self._get(graph, _Graph).launches:
            del self._handles[node]
        self._drop(graph, _Graph)


class _Stream:
    def __init__(self, device: int) -> None:
        self.device = device


class _Event:
    moment = 0.0


class _Graph:
    def __init__(self) -> None:
        self.launches: dict[int, _Launch] = {}


class _Executable:
    def __init__(self, graph: _Graph) -> None:
        self.launches = dict(graph.launches)


class _Launch:
    """A kernel with all that it takes to run it."""

    def __init__(
        self, kernel: Kernel, grid: tuple[Any, ...], block: tuple[Any, ...], shared_bytes: int, params: bytes
    ) -> None:
        self.kernel, self.shared_bytes, self.params = kernel, shared_bytes, params
        self.grid: tuple[int, int, int] = (grid[0], grid[1], grid[2])
        self.block: tuple[int, int, int] = (block[0], block[1], block[2])

    def check(self) -> None:
        """Fails where a device would refuse."""
        threads = self.block[0] * self.block[1] * self.block[2]
        sizes = zip((*self.grid, *self.block), (*_GRID_LIMITS, *_BLOCK_LIMITS), strict=True)
        x, y, z = self.kernel.max_threads or (_THREADS, 1, 1)
        fits = all(0 < size <= limit for size, limit in sizes) and threads <= min(_THREADS, x * y * z)
        if not fits or self.kernel.shared_bytes + self.shared_bytes > _SHARED_BYTES:
            raise _Failure(api.INVALID_VALUE)


def _read(kernel: Kernel, params: int | None) -> bytes:
    """The arguments that an array of pointers points to, as they lie in memory."""
    found = bytearray(kernel.params_bytes)
    if kernel.params and not params:
        raise _Failure(api.INVALID_VALUE)
    pointers = (ctypes.c_void_p * len(kernel.params)).from_address(params or 0) if kernel.params else ()
    for variable, pointer in zip(kernel.params, pointers, strict=True):
        begin = kernel.offsets[variable.name]
        found[begin : begin + variable.nbytes] = ctypes.string_at(pointer or 0, variable.nbytes)
    return bytes(found)


@functools.cache
def mock(arch: str) -> MockDriver:
    """The mock whose devices have a compute capability; the same one each time."""
    return MockDriver(arch)


@functools.cache
def mock_driver(arch: str) -> Driver:
    """The driver that :func:`mock` is."""
    driver = Driver(mock(arch).functions().__getitem__)
    api.start(driver)
    return driver
