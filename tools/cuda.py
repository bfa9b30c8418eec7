"""Write the bindings of ``tg_runtime.backends.cuda``: the driver API of NVIDIA's ``cuda.h``.

    pip install ctypesgen==1.1.1 nvidia-cuda-runtime==13.5.37 && python -m tools.cuda
    python -m tools.cuda /usr/local/cuda/include/cuda.h     # of another header
    python -m tools.cuda --check                            # whether the file is what would be written

A full translation of the header is some 10,000 lines. What is written here is what we call and what that needs. Where a
function has versions, the oldest that has what we need is taken: a driver keeps them all. ``cuda.h`` hides those under
macros unless ``__CUDA_API_VERSION_INTERNAL`` is defined. ctypesgen reads the header, with the compiler's preprocessor,
and tells its declarations as JSON.
"""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "packages/tg-runtime/src/tg_runtime/headers/cuda/bindings.py"
FUNCTIONS = """
    cuInit cuDriverGetVersion cuGetErrorName cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceGetAttribute
    cuDeviceTotalMem_v2 cuDeviceCanAccessPeer cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2 cuCtxSetCurrent
    cuCtxEnablePeerAccess cuMemAlloc_v2 cuMemFree_v2 cuMemHostAlloc cuMemFreeHost cuMemcpyHtoDAsync_v2
    cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuMemcpyPeerAsync cuStreamCreate cuStreamSynchronize cuStreamQuery
    cuStreamWaitEvent cuStreamDestroy_v2 cuEventCreate cuEventRecord cuEventSynchronize cuEventQuery cuEventElapsedTime
    cuEventDestroy_v2
    cuModuleLoadDataEx cuModuleUnload cuModuleGetFunction cuFuncGetAttribute cuFuncSetAttribute
    cuOccupancyMaxActiveBlocksPerMultiprocessor cuLaunchKernel cuGraphCreate cuGraphAddKernelNode
    cuGraphInstantiateWithFlags cuGraphExecKernelNodeSetParams cuGraphLaunch cuGraphExecDestroy cuGraphDestroy
""".split()
NEWER = ["cuFuncGetParamInfo"]  # used where the driver has them
CONSTANTS = """
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
    CU_FUNC_ATTRIBUTE_NUM_REGS CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    CU_STREAM_NON_BLOCKING CU_EVENT_DISABLE_TIMING CU_MEMHOSTALLOC_PORTABLE
    CU_JIT_ERROR_LOG_BUFFER CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
""".split()
SIMPLE = {
    ("void", True): "None", ("int", True): "c_int", ("int", False): "c_uint",
    ("size_t", True): "c_size_t", ("float", True): "c_float", ("uint64_t", True): "c_uint64",
}  # fmt: skip
Declaration = dict[str, Any]


class Header:
    """The declarations of a header, by name."""

    def __init__(self, path: Path) -> None:
        declared = [*translated(path), *translated(path, without_macros=True)]
        self.functions = {d["name"]: d for d in declared if d["type"] == "function"}
        self.typedefs = {d["name"]: d["ctype"] for d in declared if d["type"] == "typedef"}
        self.structures = {d["name"]: d for d in declared if d["type"] == "struct" and d.get("fields")}
        self.values: dict[str, int] = {}
        for d in declared:
            if d["type"] == "enum":
                known = [f for f in d["fields"] if "value" in f["ctype"]]
                self.values.update((f["name"], int(str(f["ctype"]["value"]), 0)) for f in known)
            elif d["type"] == "macro" and re.fullmatch(r"\(?(0[xX][0-9a-fA-F]+|\d+)\)?", str(d.get("value"))):
                self.values[d["name"]] = int(str(d["value"]).strip("()"), 0)

    @property
    def version(self) -> str:
        """CUDA's, as ``13.0``."""
        number = self.values["CUDA_VERSION"]
        return f"{number // 1000}.{number % 1000 // 10}"


def translated(path: Path, without_macros: bool = False) -> list[Declaration]:
    """The declarations of a header as ctypesgen tells them. It forgets a function whose name was ever a macro's."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "cuda.json"
        if without_macros:
            text = re.sub(r"^#include.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            command = ["cc", "-E", "-P", "-D_Alignas(x)=", "-D__CUDA_API_VERSION_INTERNAL", "-x", "c", "-"]
            plain = subprocess.run(command, input=text, capture_output=True, check=True, text=True).stdout
            path = Path(folder) / "cuda.h"
            path.write_text(f"#include <stddef.h>\n#include <stdint.h>\n{plain}", encoding="utf-8")
        run = "from ctypesgen.main import main; main()"
        command = [sys.executable, "-c", run, "--output-language", "json", "-D_Alignas(x)="]
        subprocess.run([*command, str(path), "-o", str(out)], check=True, capture_output=True)
        found: list[Declaration] = json.loads(out.read_text(encoding="utf-8"))
        return found


class Writer:
    """What is needed of one header."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.classes: dict[str, str] = {}
        self.used: set[str] = set()

    def use(self, name: str) -> str:
        """A name of ctypes, to be imported."""
        if name != "None":
            self.used.add(name)
        return name

    def kind(self, declared: Declaration) -> str:
        """A type as source; writes the structures that it needs."""
        match declared["Klass"]:
            case "CtypesTypedef":
                name = declared["name"]
                if name in ("cuuint64_t", "uint64_t"):
                    return self.use("c_uint64")
                return self.kind(self.header.typedefs[name])
            case "CtypesEnum":
                return self.use("c_int")
            case "CtypesStruct":
                return self.structure(declared)
            case "CtypesPointer":
                return self.pointer(declared)
            case "CtypesSpecial":  # text
                return self.use("c_char_p")
            case "CtypesSimple":
                if declared["name"] == "int" and declared["longs"]:
                    signed = "" if declared["signed"] else "u"
                    return self.use(f"c_{signed}int64")
                return self.use(SIMPLE[declared["name"], declared["signed"]])
        raise SystemExit(f"no form for {declared}")

    def pointer(self, declared: Declaration) -> str:
        """A pointer: to text, to anything, to what is opaque, or to a value."""
        inside = declared["destination"]
        target = inside
        while target["Klass"] == "CtypesTypedef":
            target = self.header.typedefs[target["name"]]
        if target["Klass"] == "CtypesStruct" and self.definition(target) is None:
            return self.use("c_void_p")  # a handle
        if target["Klass"] == "CtypesSimple" and target["name"] == "char":
            return self.use("c_char_p")
        kind = self.kind(inside)
        if kind == "None":
            return self.use("c_void_p")
        return f"{self.use('POINTER')}({kind})"

    def definition(self, declared: Declaration) -> Declaration | None:
        """A structure with its fields; None if it is opaque."""
        return self.header.structures.get(declared.get("tag") or declared.get("name"))

    def structure(self, declared: Declaration) -> str:
        """A structure's class; returns its name."""
        defined = self.definition(declared)
        assert defined is not None
        name = str(defined["name"]).removesuffix("_st")
        if name not in self.classes:
            rows = [(field["name"], self.kind(field["ctype"])) for field in defined["fields"]]
            notes = [f"    {field}: {'int | None' if text == 'c_void_p' else 'Any' if '(' in text else 'int'}"
                     for field, text in rows]
            table = [f'        ("{field}", {text}),' for field, text in rows]
            self.use("Structure")
            self.classes[name] = "\n".join([f"class {name}(Structure):", *notes, "    _fields_ = [", *table, "    ]"])
        return name

    def row(self, name: str) -> str:
        """A function as a row of the table."""
        function = self.header.functions[name]
        given = function["args"]
        arguments = [self.kind(argument) for argument in given]
        for number, argument in enumerate(given[1:]):
            if argument["identifier"] == "len" and arguments[number] == "c_char_p":  # text that the function writes
                arguments[number] = self.use("c_void_p")
        return f'    "{name}": ({", ".join(arguments)}{"," if len(arguments) == 1 else ""}),'


def write(header: Header) -> str:
    """The text of the bindings."""
    writer = Writer(header)
    functions = [writer.row(name) for name in FUNCTIONS]
    newer = [writer.row(name) for name in NEWER]
    errors = [f'    {value}: "{name.removeprefix("CUDA_ERROR_").removeprefix("CUDA_")}",'
              for name, value in header.values.items() if re.match(r"CUDA_(ERROR_\w+|SUCCESS)\Z", name)]
    names = sorted(writer.used, key=lambda n: (0 if n.isupper() else 1 if n[0].isupper() else 2, n))
    text = "\n".join([
        f'"""The driver API of CUDA {header.version} that we use. Written by ``tools.cuda``."""',
        "", "# fmt: off", "# ruff: noqa: E501, RUF100", "from __future__ import annotations", "",
        f"from ctypes import {', '.join(names)}", "from typing import Any", "",
        *(f"{name} = {header.values[name]}" for name in CONSTANTS), "",
        *(f"\n{text}\n" for text in writer.classes.values()), "",
        "PROTOTYPES: dict[str, tuple[Any, ...]] = {", *functions, "}",
        "NEWER: dict[str, tuple[Any, ...]] = {", *newer, "}",
        "ERRORS = {", *errors, "}", "",
    ])  # fmt: skip
    space: dict[str, Any] = {}
    exec(compile(text, "bindings", "exec"), space)
    expected = {"CUDA_KERNEL_NODE_PARAMS": 56}
    for name, nbytes in expected.items():
        if ctypes.sizeof(space[name]) != nbytes:
            raise SystemExit(f"{name} has {ctypes.sizeof(space[name])} bytes, the header's has {nbytes}")
    return text


def find_header() -> Path:
    """The header of the wheel, or of a toolkit."""
    from tg_runtime.backends.cuda.libraries import folders

    for folder in folders():
        path = Path(folder) / "include" / "cuda.h"
        if path.is_file():
            return path
    raise SystemExit("no cuda.h here: pip install nvidia-cuda-runtime, or name one")


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    paths = [a for a in arguments if a != "--check"]
    if len(paths) > 1 or any(p.startswith("-") for p in paths):
        print(__doc__, file=sys.stderr)
        return 2
    text = write(Header(Path(paths[0]) if paths else find_header()))
    if check:
        same = TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text
        print(f"{TARGET}: {'as written' if same else 'differs'}")
        return 0 if same else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
