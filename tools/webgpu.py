"""Write the bindings of ``tg_runtime.backends.webgpu``: of Dawn's ``webgpu.h`` or of wgpu-native's.

    pip install dawn-python==0.3.0 && python -m tools.webgpu dawn
    pip install wgpu==0.32.0 ctypesgen==1.1.1 && python -m tools.webgpu wgpu
    python -m tools.webgpu --check dawn      # whether the file is what would be written

``webgpu.h`` is not one header: Dawn and wgpu-native have each a state of it of their own, with other structures and
values. A full translation is some 6,000 lines: Dawn's wheel carries one, made by ctypeslib; wgpu's carries the header,
which ctypesgen translates. What is written here is what we call and what that needs, with plain field types,
annotated for type checkers. Sizes and offsets are compared with those of the full module.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[1] / "packages/tg-runtime/src/tg_runtime/backends/webgpu"
COMMON = """
    CreateInstance InstanceProcessEvents AdapterGetInfo AdapterGetLimits AdapterHasFeature AdapterRelease
    DeviceCreateBindGroup DeviceCreateBindGroupLayout DeviceCreateBuffer DeviceCreateCommandEncoder
    DeviceCreateComputePipeline DeviceCreatePipelineLayout DeviceCreateQuerySet DeviceCreateShaderModule DeviceDestroy
    DeviceGetQueue DevicePushErrorScope DeviceRelease BindGroupLayoutRelease BindGroupRelease BufferDestroy
    BufferGetConstMappedRange BufferRelease BufferUnmap CommandBufferRelease CommandEncoderBeginComputePass
    CommandEncoderCopyBufferToBuffer CommandEncoderFinish CommandEncoderRelease CommandEncoderResolveQuerySet
    ComputePassEncoderDispatchWorkgroups ComputePassEncoderEnd ComputePassEncoderRelease ComputePassEncoderSetBindGroup
    ComputePassEncoderSetPipeline ComputePipelineRelease PipelineLayoutRelease QuerySetRelease QueueSubmit
    QueueWriteBuffer ShaderModuleRelease
""".split()
FUNCTIONS = {
    "dawn": """InstanceWaitAny InstanceRequestAdapter2 AdapterRequestDevice2 BufferMapAsync2 DevicePopErrorScope2
        QueueOnSubmittedWorkDone2 DeviceForceLoss""".split(),
    "wgpu": """InstanceRequestAdapter AdapterRequestDevice BufferMapAsync DevicePopErrorScope DevicePoll GetVersion
        QueueOnSubmittedWorkDone QueueGetTimestampPeriod""".split(),
}
STRUCTURES = {"dawn": ["ShaderSourceWGSL", "DawnTogglesDescriptor"], "wgpu": ["ShaderSourceWGSL"]}
CONSTANTS = """
    BufferBindingType_Storage BufferBindingType_Uniform BufferUsage_CopyDst BufferUsage_CopySrc BufferUsage_MapRead
    BufferUsage_QueryResolve BufferUsage_Storage BufferUsage_Uniform CallbackMode_AllowProcessEvents
    CallbackMode_AllowSpontaneous CallbackMode_WaitAnyOnly DeviceLostReason_Destroyed DeviceLostReason_Unknown
    ErrorFilter_OutOfMemory ErrorFilter_Validation ErrorType_NoError FeatureName_ShaderF16
    FeatureName_TimestampQuery MapMode_Read PowerPreference_HighPerformance QueryType_Timestamp
    SType_DawnTogglesDescriptor SType_ShaderSourceWGSL ShaderStage_Compute AdapterType_CPU BackendType_Null
    BackendType_OpenGL BackendType_OpenGLES
    FeatureLevel_Core Status_Success WaitStatus_Success WaitStatus_TimedOut
""".split()
FUNCTION: type = type(ctypes.CFUNCTYPE(None)(lambda: None)).__mro__[1]
TEXTS = ("c_char_p", "LP_None", "String")
# An int is an enumeration.
SIMPLE = {
    "c_byte": "c_int8", "c_ubyte": "c_uint8", "c_short": "c_int16", "c_ushort": "c_uint16", "c_int": "c_uint32",
    "c_uint": "c_uint32", "c_long": "c_int64", "c_ulong": "c_uint64", "c_float": "c_float", "c_double": "c_double",
    "c_void_p": "c_void_p", "c_bool": "c_bool",
}  # fmt: skip


def load(path: Path) -> ModuleType:
    """The full module."""
    spec = importlib.util.spec_from_file_location("full_webgpu", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path}: not a Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def name_of(structure: type) -> str:
    """Our name of a structure."""
    return re.sub(r"^(struct_)?(WGPU)?", "", structure.__name__)


class Writer:
    """What is needed of one full module."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.classes: dict[str, str] = {}
        self.used: set[str] = {"CDLL"}

    def kind(self, kind: object) -> str:
        """A ctypes type as source; writes the structures that it needs."""
        if kind is None:
            return "None"
        assert isinstance(kind, type)
        if issubclass(kind, ctypes.Structure):
            return self.structure(kind)
        if issubclass(kind, FUNCTION):
            parts: list[object] = [getattr(kind, "_restype_", None), *getattr(kind, "_argtypes_", ())]
            return f"{self.use('CFUNCTYPE')}({', '.join(map(self.kind, parts))})"
        if issubclass(kind, ctypes._Pointer):
            target: type = getattr(kind, "_type_", type(None))
            opaque = issubclass(target, ctypes.Structure) and not getattr(target, "_fields_", None)
            if opaque or issubclass(target, (ctypes._Pointer, FUNCTION, ctypes.c_char, type(None))):
                return self.use("c_void_p")
            if name_of(target).startswith("ChainedStruct") or target is ctypes.c_ubyte:  # the latter is a void *
                return self.use("c_void_p")
            return f"{self.use('POINTER')}({self.kind(target)})"
        if kind.__name__ in TEXTS:
            return self.use("c_void_p")
        return self.use(SIMPLE[kind.__name__])

    def use(self, name: str) -> str:
        """A name of ctypes, to be imported."""
        self.used.add(name)
        return name

    def structure(self, kind: type[ctypes.Structure]) -> str:
        """A structure's class; returns its name."""
        name = name_of(kind)
        if name in self.classes:
            return name
        self.classes[name] = ""
        fields = [(f[0], f[1]) for f in getattr(kind, "_fields_", ()) if not f[0].startswith("PADDING_")]
        rows = [(field, self.kind(t)) for field, t in fields]
        del self.classes[name]  # those that it needs come before it
        notes = [f"    {field}: {annotation(text)}" for field, text in rows]
        table = [f'        ("{field}", {text}),' for field, text in rows]
        self.classes[name] = "\n".join(
            [f"class {name}(Structure):", *notes, "    _fields_ = [", *table, "    ]"]
        )
        self.use("Structure")
        return name

    def offsets(self) -> dict[str, list[int]]:
        """Size and offsets of every structure, as the full module has them."""
        found = {}
        for name in self.classes:
            kind = getattr(self.module, f"struct_WGPU{name}", None) or getattr(self.module, f"WGPU{name}")
            fields = [f[0] for f in kind._fields_ if not f[0].startswith("PADDING_")]
            found[name] = [ctypes.sizeof(kind), *(getattr(kind, field).offset for field in fields)]
        return found


def annotation(text: str) -> str:
    """What a type checker sees in a field."""
    if text in ("c_float", "c_double"):
        return "float"
    if text == "c_void_p":
        return "int | None"
    return "int" if text.startswith("c_") else "Any" if "(" in text else text


def write(kind: str, module: ModuleType, source: str) -> str:
    """The text of the bindings."""
    writer = Writer(module)
    functions = []
    for name in sorted([*COMMON, *FUNCTIONS[kind]]):
        function = getattr(module, f"wgpu{name}")
        arguments = [writer.kind(t) for t in function.argtypes]
        row = f"({writer.kind(function.restype)}, ({', '.join(arguments)}{',' if len(arguments) == 1 else ''}))"
        functions.append(f'    "wgpu{name}": {row},')
    for name in STRUCTURES[kind]:
        writer.structure(getattr(module, f"WGPU{name}"))
    constants = [
        f"{name} = {getattr(module, f'WGPU{name}')}" for name in CONSTANTS if hasattr(module, f"WGPU{name}")
    ]
    text = "\n".join([
        f'"""Structures, values and functions of {source} that we use. Written by ``tools.webgpu {kind}``."""',
        "", "# fmt: off", "# ruff: noqa: E501, RUF100", "from __future__ import annotations", "",
        f"from ctypes import {', '.join(sorted(writer.used - {'CDLL'}, key=isort))}", "from typing import Any", "",
        *constants, "",
        *(f"\n{text}\n" for text in writer.classes.values()), "",
        "PROTOTYPES: dict[str, tuple[object, tuple[object, ...]]] = {", *functions, "}", "",
    ])  # fmt: skip
    _compare(text, writer.offsets())
    return text


def isort(name: str) -> tuple[int, str]:
    """The order of names in an import: constants, classes, the rest."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def _compare(text: str, expected: dict[str, list[int]]) -> None:
    space: dict[str, type[ctypes.Structure]] = {}
    exec(compile(text, "bindings", "exec"), space)
    for name, numbers in expected.items():
        kind = space[name]
        got = [ctypes.sizeof(kind), *(getattr(kind, field[0]).offset for field in kind._fields_)]
        if got != numbers:
            raise SystemExit(f"{name}: laid out as {got}, the full module has {numbers}")


@contextmanager
def full_module(kind: str) -> Iterator[ModuleType]:
    """The full translation of a header, from what is installed in this environment."""
    package = {"dawn": "pydawn", "wgpu": "wgpu"}[kind]
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{package} is not installed here")
    folder = Path(spec.submodule_search_locations[0])
    if kind == "dawn":
        yield load(folder / "webgpu.py")
        return
    with tempfile.TemporaryDirectory() as scratch:
        header, module = Path(scratch) / "header.h", Path(scratch) / "full.py"
        text = (folder / "resources" / "combined_header.h").read_text(encoding="utf-8")
        # It has its macros undone, and needs its types; constants are no symbols of the library.
        text = re.sub(r"^#define .*$", "", text, flags=re.MULTILINE)
        text = re.sub(r"^static const \w+ (\w+) = (\w+);", r"#define \1 \2", text, flags=re.MULTILINE)
        header.write_text(f"#include <stdint.h>\n#include <stddef.h>\n{text}", encoding="utf-8")
        run = "from ctypesgen.main import main; main()"
        command = [sys.executable, "-c", run, "-l", str(folder / "resources" / "libwgpu_native-release.so")]
        subprocess.run([*command, str(header), "-o", str(module)], check=True, capture_output=True)
        yield load(module)


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    names = [a for a in arguments if a != "--check"]
    if len(names) != 1 or names[0] not in FUNCTIONS:
        print(__doc__, file=sys.stderr)
        return 2
    (kind,) = names
    sources = {"dawn": "Dawn's webgpu.h (Chromium 133)", "wgpu": "webgpu.h and wgpu.h of wgpu-native 29"}
    with full_module(kind) as module:
        text = write(kind, module, sources[kind])
    target = FOLDER / f"{kind}.py"
    if check:
        same = target.is_file() and target.read_text(encoding="utf-8") == text
        print(f"{target}: {'as written' if same else 'differs'}")
        return 0 if same else 1
    target.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
