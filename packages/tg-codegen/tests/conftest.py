"""Kernels written by hand as linear UOps, and the means to compile and run what the renderers make of them."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tg_codegen.uop import UOp, UOps, const
from tg_dtype import AddrSpace, ConstType, DType, dtypes, from_bits, to_bits
from tg_lazy import Ops
from tg_shape import Variable


class Linear:
    """Builds a linear kernel: every method appends one UOp and returns it."""

    def __init__(self) -> None:
        self.uops: list[UOp] = []
        self.accumulators = 0

    def add(self, op: Any, dtype: DType = dtypes.void, src: Sequence[UOp] = (), arg: Any = None) -> UOp:
        u = UOp(op, dtype, tuple(src), arg)
        if u.op in (UOps.STORE, UOps.BARRIER) or u not in self.uops:
            self.uops.append(u)
        return u

    def const(self, value: ConstType, dtype: DType = dtypes.int32) -> UOp:
        u = const(value, dtype)
        if u not in self.uops:
            self.uops.append(u)
        return u

    def param(self, slot: int, dtype: DType, size: int = -1) -> UOp:
        return self.add(UOps.PARAM, dtype.ptr(size), (), slot)

    def variable(self, name: str, low: int, high: int) -> UOp:
        return self.add(UOps.VAR, dtypes.int32, (), Variable(name, low, high))

    def special(self, name: str, size: int) -> UOp:
        return self.add(UOps.SPECIAL, dtypes.int32, (), (name, size))

    def scratch(self, name: str, dtype: DType, size: int, space: AddrSpace = AddrSpace.REG) -> UOp:
        return self.add(UOps.SCRATCH, dtype.ptr(size, space), (), (name, size))

    def range(self, end: int | UOp, name: str = "i", start: int | UOp = 0, step: int = 1) -> UOp:
        bounds = [self.const(bound) if isinstance(bound, int) else bound for bound in (start, end)]
        return self.add(UOps.RANGE, dtypes.int32, (*bounds, self.const(step)), name)

    def end(self, opened: UOp) -> UOp:
        return self.add(UOps.ENDRANGE if opened.op is UOps.RANGE else UOps.ENDIF, dtypes.void, (opened,))

    def iff(self, condition: UOp) -> UOp:
        return self.add(UOps.IF, dtypes.void, (condition,))

    def acc(self, init: UOp) -> UOp:
        self.accumulators += 1
        return self.add(UOps.ACC, init.dtype, (init,), self.accumulators)

    def assign(self, acc: UOp, value: UOp) -> UOp:
        return self.add(UOps.ASSIGN, dtypes.void, (acc, value))

    def read(self, acc: UOp, effect: UOp) -> UOp:
        return self.add(UOps.READ, acc.dtype, (acc, effect))

    def load(self, pointer: UOp, index: UOp, lanes: int = 1, *gate_and_alt: UOp) -> UOp:
        return self.add(UOps.LOAD, pointer.dtype.base.vec(lanes), (pointer, index, *gate_and_alt))

    def store(self, pointer: UOp, index: UOp, value: UOp, *gate: UOp) -> UOp:
        return self.add(UOps.STORE, dtypes.void, (pointer, index, value, *gate))

    def alu(self, op: Ops, *src: UOp) -> UOp:
        self.uops.append(u := src[0].alu(op, *src[1:]))
        return u

    def cast(self, x: UOp, dtype: DType) -> UOp:
        self.uops.append(u := x.cast(dtype))
        return u

    def bitcast(self, x: UOp, dtype: DType) -> UOp:
        self.uops.append(u := x.bitcast(dtype))
        return u

    def broadcast(self, x: UOp, lanes: int) -> UOp:
        return self.add(UOps.BROADCAST, x.dtype.vec(lanes), (x,))

    def vectorize(self, *lanes: UOp) -> UOp:
        return self.add(UOps.VECTORIZE, lanes[0].dtype.vec(len(lanes)), lanes)

    def gep(self, x: UOp, *lanes: int) -> UOp:
        return self.add(UOps.GEP, x.dtype.scalar().vec(len(lanes)), (x,), lanes)


Launch = Callable[..., None]
Compile = Callable[[str, str], Launch]


@pytest.fixture
def linear() -> type[Linear]:
    return Linear


@pytest.fixture
def pack() -> Callable[[Sequence[ConstType], DType], bytearray]:
    """Encodes numbers as the memory of a buffer."""

    def encode(values: Sequence[ConstType], dtype: DType) -> bytearray:
        return bytearray(b"".join(to_bits(v, dtype).to_bytes(dtype.itemsize, "little") for v in values))

    return encode


@pytest.fixture
def unpack() -> Callable[[bytearray, DType], list[ConstType]]:
    """Decodes the memory of a buffer."""

    def decode(raw: bytearray, dtype: DType) -> list[ConstType]:
        size = dtype.itemsize
        return [from_bits(int.from_bytes(raw[i : i + size], "little"), dtype) for i in range(0, len(raw), size)]

    return decode


def _launcher(address: int, keep: object) -> Launch:
    def launch(*buffers: Any, vals: Sequence[int] = ()) -> None:
        views = [memoryview(b).cast("B") if not hasattr(b, "ctypes") else memoryview(b.reshape(-1)).cast("B") for b in buffers]
        raw = [(ctypes.c_char * max(len(v), 1)).from_buffer(v) for v in views]
        kinds = [ctypes.c_void_p] * len(raw) + [ctypes.c_int32] * len(vals)
        ctypes.CFUNCTYPE(None, *kinds)(address)(*(ctypes.addressof(b) for b in raw), *vals)
        assert keep is not None

    return launch


_shared_objects = 0


def _c_compiler(command: list[str], tmp_path: Path) -> Compile:
    def build(source: str, name: str) -> Launch:
        global _shared_objects
        _shared_objects += 1
        text, library = tmp_path / f"{name}.c", tmp_path / f"{name}{_shared_objects}.so"
        text.write_text(source)
        done = subprocess.run([*command, "-o", str(library), str(text)], capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stderr}\n{source}"
        loaded = ctypes.CDLL(str(library))
        address = ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value
        assert address is not None
        return _launcher(address, loaded)

    return build


_NATIVE = ["-march=native"] if platform.machine() in ("x86_64", "AMD64") else ["-mcpu=native"]


@pytest.fixture
def clang(tmp_path: Path) -> Compile:
    found = shutil.which("clang-19") or shutil.which("clang")
    if found is None:
        pytest.skip("clang is not installed")
    flags = ["-x", "c", "-std=c11", "-shared", "-fPIC", "-O1", *_NATIVE, "-fno-math-errno", "-nostdlib", "-Wall",
             "-Wno-psabi", "-Werror", "-Wno-unused"]  # fmt: skip
    return _c_compiler([found, *flags], tmp_path)


@pytest.fixture
def gcc(tmp_path: Path) -> Compile:
    found = shutil.which("gcc")
    if found is None:
        pytest.skip("gcc is not installed")
    flags = ["-x", "c", "-std=gnu11", "-shared", "-fPIC", "-O1", *_NATIVE, "-fno-math-errno", "-Wno-psabi", "-w"]
    return _c_compiler([found, *flags], tmp_path)


@pytest.fixture
def llvm() -> Compile:
    binding = pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    host = binding.Target.from_default_triple()

    def build(source: str, name: str) -> Launch:
        machine = host.create_target_machine(
            cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=1, jit=True
        )
        module = binding.parse_assembly(source)
        module.verify()
        tuning = binding.create_pipeline_tuning_options(speed_level=1)
        binding.create_pass_builder(machine, tuning).getModulePassManager().run(
            module, binding.create_pass_builder(machine, tuning)
        )
        engine = binding.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        return _launcher(engine.get_function_address(name), engine)

    return build


