"""Write the bindings of ``tg_runtime.webgpu`` from a full ctypes module made of a ``webgpu.h``.

    python -m tools.webgpu dawn [MODULE]     # MODULE: pydawn/webgpu.py of the wheel dawn-python, by default where it is
    python -m tools.webgpu wgpu MODULE       # MODULE: ctypesgen's output for wgpu/resources/combined_header.h of wgpu
    python -m tools.webgpu --check dawn      # whether the file is what would be written

``webgpu.h`` is not one header: Dawn and wgpu-native have each a state of it of their own, with other structures and
values. A full translation is some 6,000 lines; what is written here is what we call and what that needs, with plain
field types, annotated for type checkers. Sizes and offsets are compared with those of the full module.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[1] / "packages/tg-runtime/src/tg_runtime/webgpu"
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
    "wgpu": """InstanceEnumerateAdapters AdapterRequestDevice BufferMapAsync DevicePopErrorScope DevicePoll
        QueueOnSubmittedWorkDone QueueGetTimestampPeriod SetLogCallback""".split(),
}
STRUCTURES = {"dawn": ["ShaderModuleWGSLDescriptor", "DawnTogglesDescriptor"], "wgpu": ["ShaderSourceWGSL"]}
CONSTANTS = """
    BufferBindingType_Storage BufferBindingType_Uniform BufferUsage_CopyDst BufferUsage_CopySrc BufferUsage_MapRead
    BufferUsage_QueryResolve BufferUsage_Storage BufferUsage_Uniform CallbackMode_AllowProcessEvents
    CallbackMode_AllowSpontaneous CallbackMode_WaitAnyOnly DeviceLostReason_Destroyed DeviceLostReason_Unknown
    ErrorFilter_OutOfMemory ErrorFilter_Validation ErrorType_NoError FeatureName_ShaderF16
    FeatureName_TimestampQuery MapMode_Read PowerPreference_HighPerformance QueryType_Timestamp
    SType_DawnTogglesDescriptor SType_ShaderSourceWGSL ShaderStage_Compute AdapterType_CPU BackendType_Null
    FeatureLevel_Core Status_Success WaitStatus_Success WaitStatus_TimedOut
""".split()
SIMPLE = {
    "c_byte": "c_int8", "c_ubyte": "c_uint8", "c_short": "c_int16", "c_ushort": "c_uint16", "c_int": "c_int32",
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

    def type(self, kind: object) -> str:
        """A ctypes type as source; writes the structures that it needs."""
        if kind is None:
            return "None"
        assert isinstance(kind, type)
        if issubclass(kind, ctypes.Structure):
            return self.structure(kind)
        if issubclass(kind, ctypes._CFuncPtr):
            arguments = ", ".join(map(self.type, [kind._restype_, *kind._argtypes_]))
            return f"{self.use('CFUNCTYPE')}({arguments})"
        if issubclass(kind, ctypes._Pointer):
            target = kind._type_
            opaque = issubclass(target, ctypes.Structure) and not getattr(target, "_fields_", None)
            if opaque or issubclass(target, (ctypes._Pointer, ctypes._CFuncPtr, ctypes.c_char)) or target is None:
                return self.use("c_void_p")
            if name_of(target).startswith("ChainedStruct") or "uctures" in target.__name__:
                return self.use("c_void_p")
            return f"{self.use('POINTER')}({self.type(target)})"
        if kind.__name__ in ("c_char_p", "LP_None", "String", "UNCHECKED"):
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
        fields = [(f[0], f[1]) for f in kind._fields_ if not f[0].startswith("PADDING_")]
        rows = [(field, self.type(t)) for field, t in fields]
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
        arguments = [writer.type(t) for t in function.argtypes]
        row = f"({writer.type(function.restype)}, ({', '.join(arguments)}{',' if len(arguments) == 1 else ''}))"
        functions.append(f'    "wgpu{name}": {row},')
    for name in STRUCTURES[kind]:
        writer.structure(getattr(module, f"WGPU{name}"))
    constants = [
        f"{name} = {getattr(module, f'WGPU{name}')}" for name in CONSTANTS if hasattr(module, f"WGPU{name}")
    ]
    text = "\n".join([
        f'"""Structures, values and functions of {source} that we use. Written by ``python -m tools.webgpu {kind}``."""',
        "", "# fmt: off", "# ruff: noqa: E501", "from __future__ import annotations", "",
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


def default(kind: str) -> Path:
    """Where the full module lies in this environment."""
    found = importlib.util.find_spec("pydawn") if kind == "dawn" else None
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"{kind}: name the full module")
    return Path(found.submodule_search_locations[0]) / "webgpu.py"


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    names = [a for a in arguments if a != "--check"]
    if not names or names[0] not in FUNCTIONS:
        print(__doc__, file=sys.stderr)
        return 2
    kind = names[0]
    sources = {"dawn": "Dawn's webgpu.h (Chromium 133)", "wgpu": "wgpu-native's webgpu.h and wgpu.h"}
    text = write(kind, load(Path(names[1]) if len(names) > 1 else default(kind)), sources[kind])
    target = FOLDER / f"{kind}.py"
    if check:
        same = target.is_file() and target.read_text(encoding="utf-8") == text
        print(f"{target}: {'as written' if same else 'differs'}")
        return 0 if same else 1
    target.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
