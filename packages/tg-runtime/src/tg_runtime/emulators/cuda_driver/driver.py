"""A CUDA driver without a GPU: the functions of the driver API, kernels of PTX run on the host.

They are handed out as C functions with the types of :mod:`tg_runtime.headers.cuda.bindings`, so what calls them goes
the way that it goes with the real driver. Memory is the host's. Work is done when somebody waits for it; what fails is
reported then, and from then on by every call. Handles, sizes, launch limits and the addresses that kernels and copies
get are checked: what was freed, and what was never allocated, is refused.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from typing import Any, Protocol

from ...errors import DeviceError
from ...headers.cuda import api, bindings
from ...headers.cuda.api import NEWER, PROTOTYPES, Driver, KernelNodeParams
from ..ptx.machine import Kernel, MisalignedAddress, Program
from ..ptx.parser import PTXSyntaxError
from .calls import Gate
from .work import (
    BLOCK_LIMITS,
    GRID_LIMITS,
    MOST_SHARED,
    SHARED_BYTES,
    THREADS,
    Event,
    Executable,
    Failure,
    Function,
    Graph,
    Launch,
    Stream,
)

_REGISTERS = 65536
_ALIGNMENT = 512  # of memory


class _Pointer(Protocol):
    """What ctypes gives for a pointer argument."""

    def __getitem__(self, index: int) -> Any: ...
    def __setitem__(self, index: int, value: object) -> None: ...


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
        self._kept: list[object] = []
        self._memory: dict[int, tuple[ctypes.Array[ctypes.c_char], int, int]] = {}
        self.used = [0] * devices
        self._numbers = itertools.count(0x1000)
        self._local = threading.local()
        self._failed = 0

    def functions(self) -> dict[str, Any]:
        """The functions by name, as C functions."""
        gate = Gate()
        return {name: gate.function(getattr(self, name), of) for name, of in (*PROTOTYPES.items(), *NEWER.items())}

    @property
    def most_shared_bytes(self) -> int:
        """Most shared memory of a block, for kernels that ask for more than usual."""
        return MOST_SHARED.get(self.capability, 99 << 10)

    def finish(self) -> None:
        """Does all that is queued on any stream."""
        for stream in [thing for thing in self._handles.values() if isinstance(thing, Stream)]:
            stream.run()

    # objects

    @property
    def objects(self) -> int:
        return len(self._handles)

    def _new(self, thing: object) -> int:
        number = next(self._numbers)
        self._handles[number] = thing
        return number

    def _get(self, handle: int | None, kind: type) -> Any:
        if kind is Stream and handle in (api.STREAM_LEGACY, api.STREAM_PER_THREAD):
            device = self._current()
            handle = -2 * device - handle  # each device has its own
            self._handles.setdefault(handle, Stream(device))
        found = self._handles.get(handle or 0)
        if not isinstance(found, kind):
            raise Failure(api.INVALID_HANDLE)
        return found

    def _drop(self, handle: int | None, kind: type) -> None:
        self._get(handle, kind)
        del self._handles[handle or 0]

    def _device(self, device: int) -> None:
        if not 0 <= device < self.devices:
            raise Failure(api.INVALID_DEVICE)

    def _current(self) -> int:
        found: int | None = getattr(self._local, "device", None)
        if found is None:
            raise Failure(api.INVALID_CONTEXT)
        if self._failed:
            raise Failure(self._failed)
        return found

    # devices

    def cuInit(self, flags: int) -> None:
        if flags:
            raise Failure(api.INVALID_VALUE)

    def cuDriverGetVersion(self, version: _Pointer) -> None:
        version[0] = 13000

    def cuGetErrorName(self, code: int, text: _Pointer) -> None:
        if code not in bindings.ERRORS:
            raise Failure(api.INVALID_VALUE)
        text[0] = f"CUDA_ERROR_{bindings.ERRORS[code]}".encode()

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
            api.MAX_THREADS_PER_BLOCK: THREADS,
            **dict(zip(range(api.MAX_BLOCK_DIM_X, api.MAX_BLOCK_DIM_X + 3), BLOCK_LIMITS, strict=True)),
            **dict(zip(range(api.MAX_GRID_DIM_X, api.MAX_GRID_DIM_X + 3), GRID_LIMITS, strict=True)),
            api.MAX_SHARED_PER_BLOCK: SHARED_BYTES,
            api.MOST_SHARED_PER_BLOCK: self.most_shared_bytes,
            api.REGISTERS_PER_BLOCK: _REGISTERS,
            api.MULTIPROCESSORS: 1,
            api.L2_BYTES: 4 << 20,
            api.CAPABILITY_MAJOR: self.capability // 10,
            api.CAPABILITY_MINOR: self.capability % 10,
        }
        if number not in known:
            raise Failure(api.INVALID_VALUE)
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
            raise Failure(api.INVALID_VALUE)

    # memory

    def _allocate(self, nbytes: int, device: int) -> int:
        if nbytes == 0:
            raise Failure(api.INVALID_VALUE)
        if device >= 0 and self.used[device] + nbytes > self.memory_bytes:
            raise Failure(api.NO_MEMORY)
        try:
            block = (ctypes.c_char * (nbytes + _ALIGNMENT))()
        except MemoryError:
            raise Failure(api.NO_MEMORY) from None
        address = -(-ctypes.addressof(block) // _ALIGNMENT) * _ALIGNMENT
        self._memory[address] = block, nbytes, device
        if device >= 0:
            self.used[device] += nbytes
        return address

    def _release(self, address: int, host: bool) -> None:
        found = self._memory.get(address)
        if found is None or (found[2] < 0) != host:
            raise Failure(api.INVALID_VALUE)
        del self._memory[address]
        if not host:
            self.used[found[2]] -= found[1]

    def cuMemAlloc_v2(self, address: _Pointer, nbytes: int) -> None:
        address[0] = self._allocate(nbytes, self._current())

    def cuMemFree_v2(self, address: int) -> None:
        self._current()
        self.finish()
        self._release(address, host=False)

    def cuMemHostAlloc(self, address: _Pointer, nbytes: int, flags: int) -> None:
        self._current()
        address[0] = self._allocate(nbytes, -1)

    def cuMemFreeHost(self, address: int) -> None:
        self._current()
        self.finish()
        self._release(address, host=True)

    def _copy(self, dest: int, src: int, nbytes: int, stream: int | None) -> Stream:
        self._current()
        queue: Stream = self._get(stream, Stream)

        def move() -> None:
            if not self._failed:
                ctypes.memmove(dest, src, nbytes)

        queue.add(move)
        return queue

    def _holds(self, address: int, nbytes: int, host: bool | None = None) -> bool:
        """Whether a range lies in memory that was allocated: on a device, on the host, or anywhere."""
        return any(
            begin <= address and address + nbytes <= begin + size and (host is None or (device < 0) == host)
            for begin, (_, size, device) in self._memory.items()
        )

    def _inside(self, address: int, nbytes: int) -> None:
        """Fails unless the range lies in memory that was allocated."""
        if not self._holds(address, nbytes):
            raise Failure(api.INVALID_VALUE)

    def cuMemcpyHtoDAsync_v2(self, dest: int, src: int, nbytes: int, stream: int | None) -> None:
        self._inside(dest, nbytes)
        if self._holds(src, nbytes, host=True):
            self._copy(dest, src, nbytes, stream)
            return
        taken = ctypes.create_string_buffer(ctypes.string_at(src, nbytes), nbytes)  # the caller may change it later
        self._kept.append(taken)
        self._copy(dest, ctypes.addressof(taken), nbytes, stream).add(lambda: self._kept.remove(taken))

    def cuMemcpyDtoHAsync_v2(self, dest: int, src: int, nbytes: int, stream: int | None) -> None:
        self._inside(src, nbytes)
        queue = self._copy(dest, src, nbytes, stream)
        if not self._holds(dest, nbytes, host=True):  # pageable memory: the driver returns only when the copy is done
            queue.run()

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
        stream[0] = self._new(Stream(self._current()))

    def cuStreamSynchronize(self, stream: int | None) -> None:
        self._current()
        self._get(stream, Stream).run()
        self._current()

    def cuStreamQuery(self, stream: int | None) -> None:
        self._current()
        self._get(stream, Stream).step()
        self._current()

    def cuStreamWaitEvent(self, stream: int | None, event: int | None, flags: int) -> None:
        self._current()
        moment = self._get(event, Event).moment
        if moment is not None:
            self._get(stream, Stream).add(moment)

    def cuStreamDestroy_v2(self, stream: int | None) -> None:
        self._get(stream, Stream).run()
        self._drop(stream, Stream)

    def cuEventCreate(self, event: _Pointer, flags: int) -> None:
        self._current()
        event[0] = self._new(Event())

    def cuEventRecord(self, event: int | None, stream: int | None) -> None:
        self._current()
        self._get(event, Event).record(self._get(stream, Stream))

    def cuEventSynchronize(self, event: int | None) -> None:
        self._current()
        self._get(event, Event).wait()
        self._current()

    def cuEventQuery(self, event: int | None) -> None:
        self._current()
        self._get(event, Event).step()
        self._current()

    def cuEventElapsedTime(self, milliseconds: _Pointer, start: int | None, end: int | None) -> None:
        milliseconds[0] = (self._get(end, Event).seconds - self._get(start, Event).seconds) * 1e3

    def cuEventDestroy_v2(self, event: int | None) -> None:
        self._drop(event, Event)

    # programs

    def cuModuleLoadDataEx(
        self, module: _Pointer, image: int, count: int, options: _Pointer, values: _Pointer
    ) -> None:
        self._current()
        given = {options[i]: values[i] for i in range(count)}
        text = ctypes.string_at(image)
        if text.startswith(b"\x7fELF"):
            self._log(given, "the mock runs PTX only: it has no processor for machine code")
            raise Failure(api.INVALID_IMAGE)
        try:
            program = Program(text.decode())
            target = int(program.module.target.removeprefix("sm_").rstrip("af") or 0)
        except (PTXSyntaxError, DeviceError, ValueError) as error:
            self._log(given, str(error))
            raise Failure(api.INVALID_PTX) from None
        if target > self.capability:
            self._log(given, f"the text is for {program.module.target}, the device is sm_{self.capability}")
            raise Failure(api.INVALID_PTX)
        module[0] = self._new(program)

    def _log(self, given: dict[int, int], message: str) -> None:
        place, size = given.get(api.JIT_ERROR_LOG), given.get(api.JIT_ERROR_LOG_BYTES) or 0
        if place and size:
            text = message.encode()[: size - 1] + b"\0"
            ctypes.memmove(place, text, len(text))

    def cuModuleUnload(self, module: int | None) -> None:
        self.finish()
        kernels = set(map(id, self._get(module, Program).kernels.values()))
        for handle, thing in list(self._handles.items()):
            if isinstance(thing, Function) and id(thing.kernel) in kernels:
                del self._handles[handle]
        self._drop(module, Program)

    def cuModuleGetFunction(self, function: _Pointer, module: int | None, name: bytes) -> None:
        kernel = self._get(module, Program).kernels.get(name.decode())
        if kernel is None:
            raise Failure(api.NOT_FOUND)
        function[0] = self._new(Function(kernel))

    def cuFuncGetAttribute(self, value: _Pointer, number: int, function: int | None) -> None:
        found: Function = self._get(function, Function)
        known = {
            api.FUNC_MAX_THREADS: found.max_threads,
            api.FUNC_SHARED_BYTES: found.kernel.shared_bytes,
            api.FUNC_DYNAMIC_BYTES: found.dynamic_bytes,
        }
        value[0] = known.get(number, 0)

    def cuFuncSetAttribute(self, function: int | None, number: int, value: int) -> None:
        found: Function = self._get(function, Function)
        if number != api.FUNC_DYNAMIC_BYTES or not 0 <= value <= self.most_shared_bytes - found.kernel.shared_bytes:
            raise Failure(api.INVALID_VALUE)
        found.dynamic_bytes = value

    def cuFuncGetParamInfo(self, function: int | None, index: int, offset: _Pointer, nbytes: _Pointer) -> None:
        kernel: Kernel = self._get(function, Function).kernel
        if index >= len(kernel.params):
            raise Failure(api.INVALID_VALUE)
        variable = kernel.params[index]
        offset[0], nbytes[0] = kernel.offsets[variable.name], variable.nbytes

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, count: _Pointer, function: int | None, threads: int, shared_bytes: int
    ) -> None:
        found: Function = self._get(function, Function)
        shared = found.kernel.shared_bytes + shared_bytes
        fits = threads <= found.max_threads and shared_bytes <= found.dynamic_bytes
        count[0] = min(2 * THREADS // max(threads, 1), self.most_shared_bytes // max(shared, 1), 32) if fits else 0

    def cuLaunchKernel(self, function: int | None, *arguments: Any) -> None:
        *sizes, shared_bytes, stream, params, extra = arguments
        self._current()
        queue: Stream = self._get(stream, Stream)
        if extra:
            raise Failure(api.INVALID_VALUE)
        found: Function = self._get(function, Function)
        self._queue(queue, Launch(found, tuple(sizes[:3]), tuple(sizes[3:]), shared_bytes, params))

    def _queue(self, queue: Stream, launch: Launch) -> None:
        self.launches += 1
        queue.add(lambda: self._run(launch))

    def _run(self, launch: Launch) -> None:
        if self._failed:
            return
        for address in launch.pointers:
            if address and not self._holds(address, 0):
                self.error = f"{launch.function.kernel.name}: {address:#x} is no memory, or none any more"
                self._failed = api.ILLEGAL_ADDRESS
                return
        try:
            launch.run()
        except DeviceError as error:
            self.error = str(error)
            self._failed = api.MISALIGNED_ADDRESS if isinstance(error, MisalignedAddress) else api.LAUNCH_FAILED

    # graphs

    def cuGraphCreate(self, graph: _Pointer, flags: int) -> None:
        graph[0] = self._new(Graph())

    def cuGraphAddKernelNode(
        self, node: _Pointer, graph: int | None, before: _Pointer, count: int, params: _Pointer
    ) -> None:
        owner: Graph = self._get(graph, Graph)
        if any(before[i] not in owner.launches for i in range(count)):
            raise Failure(api.INVALID_VALUE)
        node[0] = number = self._new(owner)
        owner.launches[number] = self._described(params[0])
        owner.before[number] = {before[i] for i in range(count)}

    def _described(self, params: KernelNodeParams) -> Launch:
        grid = (params.gridDimX, params.gridDimY, params.gridDimZ)
        block = (params.blockDimX, params.blockDimY, params.blockDimZ)
        found: Function = self._get(params.func, Function)
        return Launch(found, grid, block, params.sharedMemBytes, params.kernelParams)

    def cuGraphInstantiateWithFlags(self, executable: _Pointer, graph: int | None, flags: int) -> None:
        executable[0] = self._new(Executable(self._get(graph, Graph)))

    def cuGraphExecKernelNodeSetParams(self, executable: int | None, node: int | None, params: _Pointer) -> None:
        launches = self._get(executable, Executable).launches
        if node not in launches:
            raise Failure(api.INVALID_VALUE)
        described = self._described(params[0])
        if described.function is not launches[node].function:
            raise Failure(api.INVALID_VALUE)
        launches[node] = described

    def cuGraphLaunch(self, executable: int | None, stream: int | None) -> None:
        self._current()
        queue: Stream = self._get(stream, Stream)
        for launch in self._get(executable, Executable).order():
            self._queue(queue, launch)

    def cuGraphExecDestroy(self, executable: int | None) -> None:
        self._drop(executable, Executable)

    def cuGraphDestroy(self, graph: int | None) -> None:
        for node in self._get(graph, Graph).launches:
            del self._handles[node]
        self._drop(graph, Graph)


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
