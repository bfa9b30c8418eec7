"""A module of PTX, compiled for the host and launched there: what a GPU's driver does, without the GPU."""

from __future__ import annotations

import ctypes
import functools
import importlib
from importlib.util import find_spec
from typing import Any

from ...errors import DeviceError
from ...host.execmem import ExecutableMemory
from .convention import EXIT, FRAME_SIZE, MISALIGNED, STUCK, align_up, identifier, offsets
from .errors import PTXUnsupported
from .launcher import RELEASE, launcher
from .parser import parse
from .syntax import Function, Module, Variable
from .translate import Translation

MISSING = "llvmlite is not installed (pip install 'tg-runtime[llvm]')"
_VERDICTS = {STUCK: "its threads wait for others that never come: a barrier that not all of them reach"}
_PASSES = ("sroa", "instruction_combine", "simplify_cfg", "dead_code_elimination")


def available() -> bool:
    """Whether llvmlite can be imported; it is not imported."""
    return find_spec("llvmlite") is not None


@functools.cache
def _binding() -> Any:
    if not available():
        raise DeviceError(f"PTX cannot be run here: {MISSING}")
    binding = importlib.import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


def _global(variable: Variable) -> str:
    data = (variable.initial or b"").ljust(max(variable.nbytes, 1), b"\0")
    text = "".join(f"\\{byte:02X}" for byte in data)
    align = max(variable.align, 16)
    return f'@{identifier(variable.name)} = internal global [{len(data)} x i8] c"{text}", align {align}'


class MisalignedAddress(DeviceError):
    """A kernel read or wrote at an address that is no multiple of what it read or wrote."""


class Kernel:
    """An entry of a compiled module.

    Attributes:
      name: its name.
      params: its parameters.
      shared_bytes: shared memory that it declares.
      frame_bytes: host memory for each thread of a block, 0 if threads never wait for others.
      max_threads: most threads of a block, or None if it does not say.
    """

    def __init__(self, function: Function, shared_bytes: int, frame_bytes: int, code: ExecutableMemory) -> None:
        self._code = code  # must outlive the function
        self.name, self.params = function.name, function.params
        self.offsets, self.params_bytes = offsets(function.params)
        self.shared_bytes, self.frame_bytes, self.max_threads = shared_bytes, frame_bytes, function.max_threads
        words = [ctypes.c_void_p] * 5 + [ctypes.c_uint64] * 2
        self._call = ctypes.CFUNCTYPE(ctypes.c_int32, *words)(code.function(_entry_name(function)))

    def launch(
        self, params: bytes, grid: tuple[int, int, int], block: tuple[int, int, int], dynamic_shared_bytes: int = 0
    ) -> None:
        """Runs it to its end.

        Args:
          params: the parameters as they lie in memory, each at a multiple of its alignment.
          grid: blocks along x, y, z.
          block: threads of a block along x, y, z.
          dynamic_shared_bytes: shared memory beside what it declares.

        Raises:
          DeviceError: if it trapped, or its threads wait for others that never come.
          MisalignedAddress: if it read or wrote at an address that is no multiple of the size.
        """
        threads = block[0] * block[1] * block[2]
        sizes = (ctypes.c_uint32 * 6)(*block, *grid)
        arguments = ctypes.create_string_buffer(params, max(self.params_bytes, len(params), 1))
        shared = ctypes.create_string_buffer(align_up(self.shared_bytes, 16) + dynamic_shared_bytes + 16)
        status = (ctypes.c_int32 * (threads if self.frame_bytes else 1))()
        frames = ctypes.create_string_buffer(threads * self.frame_bytes + 16)
        verdict = self._call(
            ctypes.addressof(arguments), ctypes.addressof(sizes), align_up(ctypes.addressof(shared), 16),
            ctypes.addressof(status), align_up(ctypes.addressof(frames), 16), 0, grid[0] * grid[1] * grid[2],
        )  # fmt: skip
        if verdict == MISALIGNED:
            raise MisalignedAddress(f"kernel {self.name}: an access that is not aligned to its size")
        if verdict != EXIT:
            raise DeviceError(f"kernel {self.name}: {_VERDICTS.get(verdict, 'it trapped')}")


class Program:
    """PTX text, translated and compiled.

    Args:
      text: the PTX.
      level: how hard LLVM tries, 0 to 3.

    Attributes:
      module: what the parser made of it.
      kernels: its entries.

    Raises:
      PTXSyntaxError: if the text is damaged.
      PTXUnsupported: if it has an instruction that the translator does not know.

    Example:
      >>> import ctypes
      >>> program = Program('''
      ... .version 7.0 .target sm_80 .address_size 64
      ... .visible .entry number(.param .u64 out) {
      ...   .reg .b64 %rd<2>; .reg .b32 %r<2>;
      ...   ld.param.u64 %rd1, [out];
      ...   mov.u32 %r1, %tid.x;
      ...   mad.wide.u32 %rd1, %r1, 4, %rd1;
      ...   st.global.u32 [%rd1], %r1;
      ...   ret;
      ... }''')
      >>> memory = (ctypes.c_uint32 * 4)()
      >>> program.kernels["number"].launch(ctypes.addressof(memory).to_bytes(8, "little"), (1, 1, 1), (4, 1, 1))
      >>> list(memory)
      [0, 1, 2, 3]
    """

    def __init__(self, text: str, level: int = 1) -> None:
        self.module = parse(text)
        self.ir, made = _translate(self.module)
        code = _compile(self.ir, level)
        self.kernels = {function.name: Kernel(function, shared, frame, code) for function, shared, frame in made}


def _entry_name(function: Function) -> str:
    return f"{function.name}.launch"


def _translate(module: Module) -> tuple[str, list[tuple[Function, int, int]]]:
    """LLVM IR, and for each entry its shared memory and the size of its frames."""
    declarations: dict[str, None] = {}
    parts = [_global(v) for v in module.variables.values() if v.space in ("global", "const")]
    made, waits = [], False
    for function in module.functions.values():
        if function.body is None:
            continue
        helpers: dict[str, str] = {}
        translation = Translation(module, function, declarations, helpers)
        # Helpers know the size of a frame: each function has its own.
        text = "".join([translation.text(), *helpers.values()])
        for name in helpers:
            text = text.replace(f"@{name}(", f"@{identifier(f'{function.name}.{name}')}(")
        parts.append(text.replace(FRAME_SIZE, str(translation.waits.frame_bytes)))
        if function.entry:
            thread, entry = (identifier(name) for name in (f"{function.name}.thread", _entry_name(function)))
            parts.append(launcher(entry, thread, translation.waits.frame_bytes))
            made.append((function, translation.storage.shared_bytes, translation.waits.frame_bytes))
            waits = waits or bool(translation.waits.count)
    declarations["declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"] = None
    if waits:
        parts.append(RELEASE)
    return "\n".join([*parts, *declarations, "attributes #0 = { nounwind }"]) + "\n", made


def _compile(ir: str, level: int) -> ExecutableMemory:
    binding = _binding()
    features = binding.get_host_cpu_features().flatten()
    target = binding.Target.from_triple(binding.get_process_triple())
    machine = target.create_target_machine(
        cpu=binding.get_host_cpu_name(), features=features, opt=level, reloc="pic", codemodel="small"
    )
    try:
        module = binding.parse_assembly(ir)
        module.verify()
    except RuntimeError as error:
        raise PTXUnsupported(f"PTX: the translation is not valid LLVM IR: {error}") from None
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=level))
    passes = binding.create_new_function_pass_manager()
    for name in _PASSES:
        getattr(passes, f"add_{name}_pass")()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
    return ExecutableMemory(machine.emit_object(module))
