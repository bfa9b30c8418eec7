"""Write the bindings of ``tg_runtime.backends.webgpu``, from Dawn's ``webgpu.h`` and wgpu-native's.

    pip install dawn-python==0.3.0 wgpu==0.32.0 ctypesgen==1.1.1 && python -m tools.webgpu
    python -m tools.webgpu --check      # whether the files are what would be written

``webgpu.h`` is not one header: Dawn and wgpu-native each have a state of it of their own. What is the same in both is
written to ``header.py``; what is not, to ``dawn.py`` and ``wgpu.py``. A full translation is some 6,000 lines: Dawn's
wheel carries one, made by ctypeslib; wgpu's carries the header, which ctypesgen translates. What is written here is
what we call and what that needs, with plain field types, annotated for type checkers. Sizes and offsets are compared
with those of the full modules.
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
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

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
SOURCES = {"dawn": "Dawn's webgpu.h (Chromium 133)", "wgpu": "webgpu.h and wgpu.h of wgpu-native 29"}
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
    """Our name of a structure. What Dawn calls ``…CallbackInfo2`` is ``…CallbackInfo`` in the newer header."""
    return re.sub(r"^(struct_)?(WGPU)?|(?<=CallbackInfo)2$", "", structure.__name__)


class Writer:
    """What is needed of one full module."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.classes: dict[str, str] = {}
        self.kinds: dict[str, Any] = {}

    def kind(self, kind: object) -> str:
        """A ctypes type as source; writes the structures that it needs."""
        if kind is None:
            return "None"
        assert isinstance(kind, type)
        if issubclass(kind, ctypes.Structure):
            return self.structure(kind)
        if issubclass(kind, FUNCTION):
            arguments = ", ".join(map(self.kind, getattr(kind, "_argtypes_", ())))
            return f"CFUNCTYPE(None, {arguments})"  # no callback returns anything; ctypesgen says c_void_p for void
        if issubclass(kind, ctypes._Pointer):
            target: type = getattr(kind, "_type_", type(None))
            opaque = issubclass(target, ctypes.Structure) and not getattr(target, "_fields_", None)
            if opaque or issubclass(target, (ctypes._Pointer, FUNCTION, ctypes.c_char, type(None))):
                return "c_void_p"
            if name_of(target).startswith("ChainedStruct") or target is ctypes.c_ubyte:  # the latter is a void *
                return "c_void_p"
            return f"POINTER({self.kind(target)})"
        if kind.__name__ in TEXTS:
            return "c_void_p"
        return SIMPLE[kind.__name__]

    def structure(self, kind: type[ctypes.Structure]) -> str:
        """A structure's class; returns its name."""
        name = name_of(kind)
        if name in self.classes:
            return name
        self.classes[name], self.kinds[name] = "", kind
        fields = [(f[0], f[1]) for f in getattr(kind, "_fields_", ()) if not f[0].startswith("PADDING_")]
        rows = [(field, self.kind(t)) for field, t in fields]
        del self.classes[name]  # those that it needs come before it
        notes = [f"    {field}: {annotation(text)}" for field, text in rows]
        table = [f'        ("{field}", {text}),' for field, text in rows]
        self.classes[name] = "\n".join(
            [f"class {name}(Structure):", *notes, "    _fields_ = [", *table, "    ]"]
        )
        return name

    def offsets(self) -> dict[str, list[int]]:
        """Size and offsets of every structure, as the full module has them."""
        found = {}
        for name in self.classes:
            kind = self.kinds[name]
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


@dataclass
class Bindings:
    """What is written of one header: each part by name, its text.

    Attributes:
      constants: numbers.
      classes: structures, each after those that it needs.
      prototypes: functions.
    """

    constants: dict[str, str]
    classes: dict[str, str]
    prototypes: dict[str, str]

    def parts(self) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
        """All of them."""
        return self.constants, self.classes, self.prototypes

    def common(self, other: Bindings) -> Bindings:
        """What two headers say alike, in words and in what these mean."""
        constants, classes, prototypes = (
            {name: text for name, text in mine.items() if theirs.get(name) == text}
            for mine, theirs in zip(self.parts(), other.parts(), strict=True)
        )
        apart = {*self.classes, *other.classes} - classes.keys()
        while more := [name for name, text in classes.items() if not apart.isdisjoint(re.findall(r"\w+", text))]:
            apart.update(more)
            for name in more:
                del classes[name]
        own = {name: text for name, text in prototypes.items() if apart.isdisjoint(re.findall(r"\w+", text))}
        return Bindings(constants, classes, own)

    def without(self, common: Bindings) -> Bindings:
        """The rest."""
        return Bindings(*(
            {name: text for name, text in mine.items() if name not in theirs}
            for mine, theirs in zip(self.parts(), common.parts(), strict=True)
        ))  # fmt: skip

    def text(self, says: str, header: bool = False) -> str:
        """The module."""
        body = "\n".join([*self.constants.values(), *self.classes.values(), *self.prototypes.values()])
        names = [name for name in dir(ctypes) if re.search(rf"\b{name}\b", body)]
        lines = [f'"""{says} Written by ``tools.webgpu``."""', "", "# fmt: off"]
        lines += ["# ruff: noqa: E501, F403, F405, RUF100", "from __future__ import annotations", ""]
        if names:
            lines += [f"from ctypes import {', '.join(sorted(names, key=isort))}"]
        lines += ["from typing import Any", ""] if re.search(r"\bAny\b", body) else [""]
        if not header:
            lines += ["from .header import *", "from .header import SHARED", ""]
        lines += [*self.constants.values(), "", *(f"\n{text}\n" for text in self.classes.values()), ""]
        table = "dict[str, tuple[object, tuple[object, ...]]]"
        if header:
            lines += [f"SHARED: {table} = {{"]
        else:
            lines += [f"PROTOTYPES: {table} = {{", "    **SHARED,"]
        return "\n".join([*lines, *self.prototypes.values(), "}", ""])


def bindings(kind: str, module: ModuleType) -> tuple[Bindings, dict[str, list[int]]]:
    """What is needed of a header, and how its structures are laid out in the full module."""
    writer = Writer(module)
    prototypes = {}
    for name in sorted([*COMMON, *FUNCTIONS[kind]]):
        function = getattr(module, f"wgpu{name}")
        arguments = [writer.kind(t) for t in function.argtypes]
        row = f"({writer.kind(function.restype)}, ({', '.join(arguments)}{',' if len(arguments) == 1 else ''}))"
        prototypes[name] = f'    "wgpu{name}": {row},'
    for name in STRUCTURES[kind]:
        writer.structure(getattr(module, f"WGPU{name}"))
    constants = {
        name: f"{name} = {getattr(module, f'WGPU{name}')}" for name in CONSTANTS if hasattr(module, f"WGPU{name}")
    }
    return Bindings(constants, writer.classes, prototypes), writer.offsets()


def written() -> dict[str, str]:
    """The text of each file."""
    found: dict[str, Bindings] = {}
    laid_out: dict[str, dict[str, list[int]]] = {}
    for kind in SOURCES:
        with full_module(kind) as module:
            found[kind], laid_out[kind] = bindings(kind, module)
    common = found["dawn"].common(found["wgpu"])
    texts = {"header": common.text("What Dawn's webgpu.h and wgpu-native's say alike, of what we use.", header=True)}
    for kind, source in SOURCES.items():
        texts[kind] = found[kind].without(common).text(f"What {source} says otherwise, of what we use.")
        _compare([texts["header"], texts[kind]], laid_out[kind])
    return texts


def isort(name: str) -> tuple[int, str]:
    """The order of names in an import: constants, classes, the rest."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def _compare(texts: list[str], expected: dict[str, list[int]]) -> None:
    space: dict[str, type[ctypes.Structure]] = {}
    for text in texts:
        exec(compile(re.sub(r"^from \.header .*$", "", text, flags=re.MULTILINE), "bindings", "exec"), space)
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
    check = arguments == ["--check"]
    if arguments and not check:
        print(__doc__, file=sys.stderr)
        return 2
    code = 0
    for name, text in written().items():
        target = FOLDER / f"{name}.py"
        if not check:
            target.write_text(text, encoding="utf-8")
            continue
        same = target.is_file() and target.read_text(encoding="utf-8") == text
        print(f"{target}: {'as written' if same else 'differs'}")
        code = code if same else 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
