"""A client of AMD's runtime: it dispatches a kernel by an AQL packet and copies by the copy engine.

``python -m tools.amd_client python -m tools.amd_client.kernel CODE_OBJECT``: the code object has the kernel ``k`` with
the arguments (unsigned *out, const unsigned *in, unsigned n), which stores ``in[i] * n + i`` for each work-item.

Source of numbers: ``hsa.h`` and ``hsa_ext_amd.h`` of ROCR-Runtime 5.2.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from ctypes import CFUNCTYPE, byref, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Final

AGENT_DEVICE, GPU = 17, 1  # HSA_AGENT_INFO_DEVICE, HSA_DEVICE_TYPE_GPU
POOL_SEGMENT, POOL_FLAGS, KERNARG, COARSE = 0, 1, 1, 4  # HSA_AMD_MEMORY_POOL_INFO_*, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_*
KERNEL_OBJECT, PRIVATE_SIZE = 22, 14  # HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_*
LESS: Final = 2  # HSA_SIGNAL_CONDITION_LT
COUNT, GROUP, FACTOR = 1000, 64, 7
_Found = CFUNCTYPE(c_int, c_uint64, c_void_p)


class Queue(ctypes.Structure):
    """``hsa_queue_t``."""

    _fields_ = (
        ("type", c_uint32), ("features", c_uint32), ("base", c_void_p), ("doorbell", c_uint64), ("size", c_uint32),
        ("reserved", c_uint32), ("id", c_uint64),
    )  # fmt: skip


class Runtime:
    """The library; each function is checked for success."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libhsa-runtime64.so.1")

    def __call__(self, name: str, *arguments: Any) -> None:
        """Calls a function.

        Raises:
          RuntimeError: if it does not succeed.
        """
        status = getattr(self.library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.hsa_status_string(status, byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")

    def listed(self, name: str, *of: Any) -> list[int]:
        """What an iteration finds."""
        found: list[int] = []

        def one(handle: int, data: int) -> int:
            found.append(handle)
            return 0

        self(name, *of, _Found(one), None)
        return found

    def told(self, name: str, handle: int, what: int) -> int:
        """A number that is asked for."""
        value = c_uint64()
        self(name, c_uint64(handle), what, byref(value))
        return value.value

    def signal(self) -> c_uint64:
        """A signal of 1."""
        made = c_uint64()
        self("hsa_signal_create", c_int64(1), 0, None, byref(made))
        return made

    def wait(self, signal: c_uint64) -> None:
        """Waits until it is 0.

        Raises:
          RuntimeError: if it is not within a minute or so.
        """
        wait = self.library.hsa_signal_wait_scacquire
        wait.restype = c_int64
        if wait(signal, LESS, c_int64(1), c_uint64(60_000_000_000), 0) != 0:
            raise RuntimeError("the signal was not set")


def main(code: bytes) -> None:
    """Runs the kernel, and copies what it stored."""
    hsa = Runtime()
    hsa("hsa_init")
    agents = hsa.listed("hsa_iterate_agents")
    card = next(one for one in agents if hsa.told("hsa_agent_get_info", one, AGENT_DEVICE) & 0xFF == GPU)
    host = next(one for one in agents if one != card)
    ids = (c_uint64 * 2)(card, host)

    def allocate(agent: int, flag: int, nbytes: int) -> c_void_p:
        pools = hsa.listed("hsa_amd_agent_iterate_memory_pools", c_uint64(agent))
        flags = {
            pool: hsa.told("hsa_amd_memory_pool_get_info", pool, POOL_FLAGS) & 0xFF
            for pool in pools if not hsa.told("hsa_amd_memory_pool_get_info", pool, POOL_SEGMENT) & 0xFF
        }  # fmt: skip
        pool, memory = next(pool for pool, has in flags.items() if has & flag), c_void_p()
        hsa("hsa_amd_memory_pool_allocate", c_uint64(pool), c_size_t(nbytes), 0, byref(memory))
        hsa("hsa_amd_agents_allow_access", 2 if agent == host else 1, ids, None, memory)
        return memory

    nbytes = 4 * COUNT
    x, y, arguments = (allocate(host, KERNARG, size) for size in (nbytes, nbytes, 4096))
    near, out = (allocate(card, COARSE, nbytes) for _ in range(2))
    assert x.value and y.value and arguments.value
    ctypes.memmove(x.value, struct.pack(f"<{COUNT}I", *range(5, 5 + COUNT)), nbytes)

    def copy(to: c_void_p, at: int, source: c_void_p, was: int) -> None:
        done = hsa.signal()
        hsa("hsa_amd_memory_async_copy", to, c_uint64(at), source, c_uint64(was), c_size_t(nbytes), 0, None, done)
        hsa.wait(done)

    copy(near, card, x, host)
    print("copied to the card", flush=True)

    reader, executable, symbol = c_uint64(), c_uint64(), c_uint64()
    hsa("hsa_code_object_reader_create_from_memory", code, c_size_t(len(code)), byref(reader))
    hsa("hsa_executable_create_alt", 0, 0, None, byref(executable))
    hsa("hsa_executable_load_agent_code_object", executable, c_uint64(card), reader, None, None)
    hsa("hsa_executable_freeze", executable, None)
    hsa("hsa_executable_get_symbol_by_name", executable, b"k.kd", byref(c_uint64(card)), byref(symbol))
    kernel = hsa.told("hsa_executable_symbol_get_info", symbol.value, KERNEL_OBJECT)
    private = hsa.told("hsa_executable_symbol_get_info", symbol.value, PRIVATE_SIZE) & 0xFFFFFFFF
    print("loaded", flush=True)

    queue = ctypes.POINTER(Queue)()
    hsa("hsa_queue_create", c_uint64(card), 64, 0, None, None, 0xFFFFFFFF, 0xFFFFFFFF, byref(queue))
    ctypes.memmove(arguments.value, struct.pack("<QQI", out.value, near.value, FACTOR), 20)
    done, number = hsa.signal(), hsa.library.hsa_queue_add_write_index_screlease
    number.restype = c_uint64
    index = number(queue, c_uint64(1))
    at = queue.contents.base + 64 * (index % queue.contents.size)
    header = 2 | 1 << 8 | 2 << 9 | 2 << 11  # a dispatch, after all before it, with fences of the system's scope
    packet = struct.pack(
        "<HHHHHHIIIIIQQQQ", header, 1, GROUP, 1, 1, 0, COUNT, 1, 1, private, 0, kernel, arguments.value, 0, done.value
    )
    ctypes.memmove(at + 4, packet[4:], 60)
    ctypes.memmove(at, packet[:4], 4)
    hsa.library.hsa_signal_store_screlease(c_uint64(queue.contents.doorbell), c_int64(index))
    hsa.wait(done)
    print("dispatched", flush=True)

    copy(y, host, out, card)
    found = list(struct.unpack(f"<{COUNT}I", ctypes.string_at(y.value, nbytes)))
    assert found == [(5 + i) * FACTOR + i for i in range(COUNT)], found[:8]
    print("copied back: as it should be", flush=True)
    hsa("hsa_queue_destroy", queue)
    hsa("hsa_shut_down")


if __name__ == "__main__":
    main(Path(sys.argv[1]).read_bytes())
