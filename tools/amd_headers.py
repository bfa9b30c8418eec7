"""The tables of tg_hcq/headers/amd, from the headers of Linux and LLVM.

    apt-get install linux-source-6.12 llvm-22-dev && tar -xf /usr/src/linux-source-6.12.tar.xz
    python -m tools.amd_headers linux-source-6.12 /usr/include/llvm-22           # writes them
    python -m tools.amd_headers linux-source-6.12 /usr/include/llvm-22 --check   # whether they are what it would write

Numbers only: names, values, offsets, widths. Each file that is written says which header it is from.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

OUT: Final = Path(__file__).resolve().parents[1] / "packages/tg-hcq/src/tg_hcq/headers/amd"
AMD: Final = "drivers/gpu/drm/amd"
WIDTH: Final = 118

REGISTERS: Final = re.compile(
    r"COMPUTE_(?!THREAD_TRACE|PERFCOUNT|PIPELINESTAT).*|GRBM_GFX_INDEX|SH_MEM_(BASES|CONFIG)|SQ_CONFIG|CP_COHER_.*"
)
"""What a compute driver writes, by packets; the rest belongs to the kernel."""

BASES: Final = {
    "9_4_3": ("arct_ip_offset.h", "GC_BASE__INST0_SEG"),
    "10_3_0": ("sienna_cichlid_ip_offset.h", "GC_BASE__INST0_SEG"),
    # the kernel asks the card from there on; the segments of graphics stay where they were
    "11_0_0": ("sienna_cichlid_ip_offset.h", "GC_BASE__INST0_SEG"),
    "12_0_0": ("sienna_cichlid_ip_offset.h", "GC_BASE__INST0_SEG"),
}

SDMA_PACKETS: Final = (
    "COPY_LINEAR WRITE_UNTILED INDIRECT FENCE CONSTANT_FILL POLL_REGMEM POLL_REG_WRITE_MEM ATOMIC TIMESTAMP_GET "
    "TIMESTAMP_GET_GLOBAL TRAP GCR_REQ NOP SRBM_WRITE COND_EXE POLL_MEM_VERIFY"
).split()

SCALARS: Final = {
    "__u64": "Q", "__u32": "I", "__s32": "i", "__u16": "H", "__u8": "B", "__aligned_u64": "Q", "uint64_t": "Q",
    "int64_t": "q", "uint32_t": "I", "uint16_t": "H", "uint8_t": "B",
}  # fmt: skip
NBYTES: Final = {"Q": 8, "q": 8, "I": 4, "i": 4, "H": 2, "B": 1}


# C


def without_comments(text: str) -> str:
    """A header's text without comments, with continued lines joined."""
    return re.sub(r"\\\n", " ", re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)))


def number(text: str) -> int | None:
    """The value of a constant expression of C; None if it is none."""
    text = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text.strip())
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return None
    allowed = (ast.Expression, ast.BinOp, ast.Constant, ast.LShift, ast.BitOr, ast.Add, ast.Sub, ast.UnaryOp, ast.USub)
    if not all(isinstance(node, allowed) for node in ast.walk(tree)):
        return None
    value = eval(compile(tree, "header", "eval"), {})  # nothing but the nodes above
    return value if isinstance(value, int) else None


def defines(text: str) -> dict[str, int]:
    """The constants of a header, in their order."""
    found = {}
    for name, value in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]+)$", without_comments(text), re.M):
        if (known := number(value)) is not None:
            found[name] = known
    return found


def shifts(text: str) -> dict[str, int]:
    """The macros that shift their argument, without a mask: how far."""
    pattern = r"^[ \t]*#[ \t]*define[ \t]+(\w+)\((\w+)\)[ \t]+\(?\(\(?\2\)?(?:[ \t]*&[ \t]*\w+)?\)[ \t]*<<[ \t]*(\d+)\)"
    return {name: int(by) for name, _, by in re.findall(pattern, without_comments(text), re.M)}


def enumerators(text: str, wanted: str = r"\w+") -> dict[str, int]:
    """The members of all enums whose name matches."""
    found: dict[str, int] = {}
    for body in re.findall(rf"\benum\s*(?::\s*\w+\s*|(?:{wanted})\s*)\{{(.*?)\}}", without_comments(text), re.DOTALL):
        value = -1
        for member in body.split(","):
            name, _, given = (part.strip() for part in member.partition("="))
            if not name:
                continue
            known = number(given) if given else value + 1
            if known is None:
                continue
            value = found[name] = known
    return found


@dataclass
class Layout:
    """A struct, laid out by the rules of the x86-64 ABI, which are AArch64's, too."""

    nbytes: int = 0
    alignment: int = 1
    fields: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, name: str, member: Layout, count: int | None, union: bool) -> None:
        offset = 0 if union else -(-self.nbytes // member.alignment) * member.alignment
        for index in range(count or 1):
            at = offset + index * member.nbytes
            label = name if count is None else f"{name}[{index}]"
            for inner, (where, code) in member.fields.items():
                self.fields[".".join(part for part in (label, inner) if part)] = at + where, code
        self.nbytes = max(self.nbytes, offset + member.nbytes * (1 if count is None else count))
        self.alignment = max(self.alignment, member.alignment)


def structs(text: str, constants: Mapping[str, int]) -> dict[str, Layout]:
    """The structs of a header whose members are numbers and earlier structs."""
    text = without_comments(text)
    found: dict[str, Layout] = {}
    for match in re.finditer(r"^struct (\w+) \{", text, re.M):
        tokens = re.findall(r"\w+|[{}\[\];*:]", text[match.end() - 1 :])
        try:
            found[match[1]] = _body(tokens, 0, found, constants, union=False)[0]
        except LookupError:
            continue  # a kind of member that no table here needs
    return found


def _body(
    tokens: list[str], at: int, known: Mapping[str, Layout], constants: Mapping[str, int], *, union: bool
) -> tuple[Layout, int]:
    layout = Layout()
    at += 1
    while tokens[at] != "}":
        if tokens[at] in ("struct", "union") and tokens[at + 1] == "{":
            member, at = _body(tokens, at + 1, known, constants, union=tokens[at] == "union")
        elif tokens[at] in ("struct", "union"):
            member, at = known[tokens[at + 1]], at + 2
        else:
            code = SCALARS[tokens[at]]
            member, at = Layout(NBYTES[code], NBYTES[code], {"": (0, code)}), at + 1
        name = "" if tokens[at] == ";" else tokens[at]
        at += name != ""
        dims: list[int] = []
        while tokens[at] == "[":
            size = number(tokens[at + 1])
            dims.append(constants[tokens[at + 1]] if size is None else size)
            at += 3
        if tokens[at] != ";":
            raise LookupError(tokens[at])
        for size in dims[:0:-1]:
            row = Layout()
            row.add("", member, size, union=False)
            member = row
        layout.add(name, member, dims[0] if dims else None, union)
        at += 1
    layout.nbytes = -(-layout.nbytes // layout.alignment) * layout.alignment
    return layout, at + 1


# Python


@dataclass
class Page:
    """A module to be written."""

    name: str
    doc: str
    sources: tuple[str, ...]
    lines: list[str] = field(default_factory=list)
    types: set[str] = field(default_factory=set)

    def constants(self, values: Mapping[str, int], *, digits: int = 0) -> None:
        self.lines += [
            f"{name} = {value:#0{digits + 2}x}" if digits or value > 9 else f"{name} = {value}"
            for name, value in values.items()
        ]

    def table(self, kind: str, variable: str, name: str, first: str, rows: Mapping[str, Iterable[int | str]]) -> None:
        """One object, its fields in as many to the line as fit."""
        self.types.add(kind)
        items = [f'"{key}": ({", ".join(str(part) for part in row)})' for key, row in rows.items()]
        line = f'{variable} = {kind}("{name}", {first}, {{{", ".join(items)}}})'
        if len(line) <= WIDTH:
            self.lines.append(line)
            return
        self.lines.append(f'{variable} = {kind}("{name}", {first}, {{')
        row = "   "
        for item in items:
            if len(row) + len(item) + 2 > WIDTH:
                self.lines.append(row)
                row = "   "
            row += f" {item},"
        self.lines += [row, "})  # fmt: skip"]

    def gap(self, heading: str = "") -> None:
        if self.lines:
            self.lines.append("")
        if heading:
            self.lines += [f"# {heading}", ""]

    @property
    def path(self) -> Path:
        """The module's file."""
        return OUT / f"{self.name}.py"

    def text(self, versions: str) -> str:
        """The module, made from such versions."""
        sources = "\n".join(f"  {source}" for source in self.sources)
        text = f'"""{self.doc}\n\nMade by ``python -m tools.amd_headers`` from {versions}:\n\n{sources}\n"""\n\n'
        if self.types:
            text += f"from ..layout import {', '.join(sorted(self.types))}\n\n"
        return text + "\n".join(self.lines) + "\n"


def kfd_page(linux: Path) -> Page:
    """KFD's ioctls and their arguments."""
    source = "include/uapi/linux/kfd_ioctl.h"
    page = Page("kfd_ioctl", "KFD: ioctl numbers, flags and argument structs.", (source,))
    text = (linux / source).read_text()
    constants = defines(text)
    layouts = structs(text, constants)
    page.constants({name: value for name, value in constants.items() if not name.endswith("_H_INCLUDED")})
    page.gap("enums")
    page.constants(enumerators(text, "kfd_mmio_remap|kfd_smi_event|kfd_dbg_trap_exception_code"))
    page.gap("arguments")
    numbers = {}
    pattern = r"#define\s+AMDKFD_IOC_(\w+)\s+AMDKFD_IO(WR|W|R)\((0x\w+),\s*struct (\w+)\)"
    calls = re.findall(pattern, without_comments(text))
    wanted = ["kfd_process_device_apertures", "kfd_event_data", "kfd_context_save_area_header"]
    for name, direction, number_text, struct_name in calls:
        if struct_name not in layouts or name.endswith("_DEPRECATED") or name in ("DBG_TRAP", "GET_PROCESS_APERTURES"):
            continue  # for debuggers, or for at most seven GPUs
        wanted.append(struct_name)
        bits = {"R": 2, "W": 1, "WR": 3}[direction]
        # include/uapi/asm-generic/ioctl.h: direction 31:30, size 29:16, type 15:8, number 7:0
        numbers[f"IOC_{name}"] = bits << 30 | layouts[struct_name].nbytes << 16 | ord("K") << 8 | int(number_text, 16)
    for name in dict.fromkeys(wanted):
        rows = {key: (at, f'"{code}"') for key, (at, code) in layouts[name].fields.items()}
        page.table("Struct", name, name, str(layouts[name].nbytes), rows)
    page.gap("ioctls, as the last argument but one of ioctl(2)")
    page.constants(numbers, digits=8)
    page.lines += ["", "ARGUMENTS = {"]
    page.lines += [f"    IOC_{name}: {made}," for name, _, _, made in calls if f"IOC_{name}" in numbers]
    page.lines += ["}", '"""The struct that each ioctl takes."""']
    return page


def sysfs_page(linux: Path) -> Page:
    """Bits of the topology files."""
    source = "include/uapi/linux/kfd_sysfs.h"
    page = Page("kfd_sysfs", "KFD: bits of the properties in /sys/class/kfd/kfd/topology.", (source,))
    page.constants(defines((linux / source).read_text()))
    return page


def drm_page(linux: Path) -> Page:
    """What is asked of a render node."""
    source = "include/uapi/drm/amdgpu_drm.h"
    page = Page("amdgpu_drm", "Render nodes of amdgpu: the ioctl that tells facts of the card.", (source,))
    text = (linux / source).read_text()
    constants = defines(text)
    layouts = structs(text, constants)
    page.constants({name: constants[name] for name in ("AMDGPU_INFO_DEV_INFO", "AMDGPU_INFO_MEMORY")})
    info = layouts["drm_amdgpu_info_device"]
    rows = {key: (at, f'"{code}"') for key, (at, code) in info.fields.items() if "[" not in key}
    page.table("Struct", "drm_amdgpu_info_device", "drm_amdgpu_info_device", str(info.nbytes), rows)
    # its union's other members are for other queries
    head = {"return_pointer": (0, '"Q"'), "return_size": (8, '"I"'), "query": (12, '"I"')}
    page.table("Struct", "drm_amdgpu_info", "drm_amdgpu_info", "32", head)
    # DRM_IOW(DRM_COMMAND_BASE + DRM_AMDGPU_INFO, struct drm_amdgpu_info), 'd' from drm.h
    page.constants({"IOC_INFO": 1 << 30 | 32 << 16 | ord("d") << 8 | 0x40 + constants["DRM_AMDGPU_INFO"]}, digits=8)
    return page


def pm4_page(linux: Path, name: str, header: str, generations: str) -> Page:
    """PM4: packets of compute queues."""
    source = f"{AMD}/amdgpu/{header}"
    page = Page(name, f"PM4 of {generations}: opcodes and the bits of packets.", (source,))
    text = (linux / source).read_text()
    values = defines(text)
    page.constants({key: value for key, value in values.items() if not re.search(r"_H$", key)})
    page.gap("fields: the first bit of each")
    page.constants({f"{key}__SHIFT": by for key, by in shifts(text).items() if not key.startswith("CP_PACKET")})
    return page


def sdma_page(linux: Path, name: str, header: str, generations: str) -> Page:
    """Packets of a generation of copy engines."""
    source = f"{AMD}/amdgpu/{header}"
    page = Page(name, f"SDMA packets of {generations}.", (source,))
    text = (linux / source).read_text()
    values = defines(text)
    page.constants({key: value for key, value in values.items() if re.match(r"SDMA_(OP|SUBOP|GCR)_", key)})
    page.constants({f"{key}__SHIFT": by for key, by in shifts(text).items() if key.startswith("SDMA_GCR_")})
    page.gap()
    for packet in SDMA_PACKETS:
        pattern = re.compile(rf"SDMA_PKT_{packet}_([A-Z0-9_]+?)_([a-z]\w*)_offset")
        rows: dict[str, tuple[int, int, int]] = {}
        heading = f"Definitions for SDMA_PKT_{packet} packet"
        if heading not in text:
            continue
        part = text.split(heading, 1)[1].split("Definitions for", 1)[0]
        for key in defines(part):
            if match := pattern.fullmatch(key):
                stem = key.removesuffix("_offset")
                label = match[2] if match[2] not in rows else f"{match[1].lower()}_{match[2]}"
                rows[label] = values[key], values[f"{stem}_shift"], values[f"{stem}_mask"].bit_count()
        page.table("Packet", packet, packet, str(1 + max(row[0] for row in rows.values())), rows)
    return page


def gc_page(linux: Path, version: str, generations: str) -> Page:
    """Registers of a generation's graphics and compute block."""
    sources = tuple(f"{AMD}/include/asic_reg/gc/gc_{version}_{kind}.h" for kind in ("offset", "sh_mask"))
    base_file, stem = BASES[version]
    base_source = f"{AMD}/include/{base_file}"
    page = Page(f"gc_{version}", f"Registers of {generations} that compute drivers write.", (*sources, base_source))
    offsets, masks = (defines((linux / source).read_text()) for source in sources)
    bases = defines((linux / base_source).read_text())
    for key, offset in offsets.items():
        name = key.removeprefix("reg").removeprefix("mm")
        if key == name or name.endswith("_BASE_IDX") or not REGISTERS.fullmatch(name):
            continue
        address = bases[f"{stem}{offsets[f'{key}_BASE_IDX']}"] + offset
        rows = {}
        for label in masks:
            if label.startswith(f"{name}__") and label.endswith("_MASK"):
                part = label[len(name) + 2 : -5]
                shift = masks.get(f"{name}__{part}__SHIFT")
                if shift is not None:
                    rows[part] = shift, masks[label].bit_count()
        page.table("Register", name, name, f"{address:#06x}", rows)
    page.lines += ["", "BY_ADDRESS = {", "    register.address: register"]
    page.lines += ["    for register in tuple(globals().values())", "    if isinstance(register, Register)", "}"]
    return page


def events_page(linux: Path) -> Page:
    """Event types of EVENT_WRITE and RELEASE_MEM."""
    source = f"{AMD}/include/soc21_enum.h"
    page = Page("events", "Events of PM4's EVENT_WRITE and RELEASE_MEM, the same from gfx9 to gfx12.", (source,))
    page.constants(enumerators((linux / source).read_text(), "VGT_EVENT_TYPE"))
    return page


def llvm_page(llvm: Path) -> Page:
    """Code objects: the kernel descriptor and the ELF header's flags."""
    descriptor, elf = "llvm/Support/AMDHSAKernelDescriptor.h", "llvm/BinaryFormat/ELF.h"
    page = Page("code_object", "Code objects: kernel descriptors and flags of the ELF header.", (descriptor, elf))
    text = without_comments((llvm / descriptor).read_text())
    body = text[text.index("struct kernel_descriptor_t {") :]
    layout, _ = _body(re.findall(r"\w+|[{}\[\];*:]", body[body.index("{") :]), 0, {}, {}, union=False)
    rows = {key: (at, f'"{code}"') for key, (at, code) in layout.fields.items() if not key.startswith("reserved")}
    page.table("Struct", "kernel_descriptor_t", "kernel_descriptor_t", str(layout.nbytes), rows)
    groups: dict[str, dict[str, tuple[int, int]]] = {}
    # COMPUTE_PGM_RSRC1(NAME, SHIFT, WIDTH), COMPUTE_PGM_RSRC1_GFX10_PLUS(…), KERNEL_CODE_PROPERTY(…)
    words = "COMPUTE_PGM_RSRC[123]|KERNEL_CODE_PROPERTY|KERNARG_PRELOAD_SPEC"
    pattern = re.compile(rf"^\s*({words})(?:_(GFX\w+))?\((\w+),\s*(\d+),\s*(\d+)\)", re.M)
    for group, generations, name, shift, width in pattern.findall(text):
        variable = "_".join(part for part in (group, generations) if part)
        groups.setdefault(variable, {})[name] = int(shift), int(width)
    page.gap("bits of its words; a name with a generation holds for that one only")
    for variable, fields in groups.items():
        page.table("Register", variable, variable, "0", fields)
    page.gap("e_flags")
    elf_text = (llvm / elf).read_text()
    flags = {**enumerators(elf_text), **defines(elf_text)}
    values = {name: value for name, value in flags.items() if name.startswith("EF_AMDGPU_") and "R600" not in name}
    machines = re.findall(r"^\s*X\((0x[0-9a-f]+), AMDGCN_(GFX\w+),", elf_text, re.M | re.I)
    values |= {f"EF_AMDGPU_MACH_AMDGCN_{name}": int(value, 16) for value, name in machines}
    page.constants(values)
    return page


def pages(linux: Path, llvm: Path) -> list[Page]:
    """Everything that is made."""
    return [
        kfd_page(linux),
        sysfs_page(linux),
        drm_page(linux),
        pm4_page(linux, "pm4", "nvd.h", "gfx10 to gfx12"),
        pm4_page(linux, "pm4_gfx9", "soc15d.h", "gfx9"),
        sdma_page(linux, "sdma_v4", "vega10_sdma_pkt_open.h", "SDMA 4.x (gfx942, gfx950)"),
        sdma_page(linux, "sdma_v5", "navi10_sdma_pkt_open.h", "SDMA 5.x (gfx10.3)"),
        sdma_page(linux, "sdma_v6", "sdma_v6_0_0_pkt_open.h", "SDMA 6.x and 7.x (gfx11, gfx12)"),
        gc_page(linux, "9_4_3", "gfx942 and gfx950"),
        gc_page(linux, "10_3_0", "gfx10.3"),
        gc_page(linux, "11_0_0", "gfx11"),
        gc_page(linux, "12_0_0", "gfx12"),
        events_page(linux),
        llvm_page(llvm),
    ]


def version_of(linux: Path) -> str:
    """The version that a kernel's source says it is."""
    numbers = re.findall(r"^(?:VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)$", (linux / "Makefile").read_text(), re.M)
    return ".".join(numbers)


def texts(linux: Path, llvm: Path) -> dict[Path, str]:
    """Every module that is made, by its path."""
    config = (llvm / "llvm/Config/llvm-config.h").read_text()
    release = re.findall(r"^#define LLVM_VERSION_MAJOR (\d+)$", config, re.M)[0]
    versions = {"code_object": f"LLVM {release}"}
    return {page.path: page.text(versions.get(page.name, f"Linux {version_of(linux)}")) for page in pages(linux, llvm)}


def main(arguments: list[str]) -> int:
    """Writes the tables, or tells whether they are stale; the folders have Linux's source and LLVM's headers."""
    folders = [Path(argument) for argument in arguments if not argument.startswith("-")]
    if len(folders) != 2:
        print(__doc__)
        return 2
    stale = False
    for path, text in texts(*folders).items():
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
            print(path.name, text.count("\n"), "lines")
        elif path.read_text(encoding="utf-8") != text:
            stale = True
            print(f"{path.name} is not what tools/amd_headers.py makes of these headers")
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
