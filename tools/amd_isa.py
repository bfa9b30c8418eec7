"""Write the instruction tables of ``tg_hcq.simulate.amd.isa`` from LLVM's TableGen records of the AMDGPU target.

    apt-get source llvm-toolchain-22 && apt-get install llvm-22
    python -m tools.amd_isa llvm-toolchain-22-22.1.8/llvm      # runs llvm-tblgen-22 -dump-json: 500 MB, 20 GB of memory
    python -m tools.amd_isa amdgpu.json                        # of a dump that is there already
    python -m tools.amd_isa amdgpu.json --check                # whether the tables are what would be written

A table holds the rows that LLVM's disassembler tries for one processor, in its order: by the size of the encoding, then
by decoder namespace; rows whose predicates the processor does not meet are left out, as are the instructions of
graphics (images, exports, interpolation, typed buffers). The names of fields and operands are LLVM's.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "packages/tg-hcq/src/tg_hcq/simulate/amd/isa/tables"
SOURCE = "LLVM 22.1.8, llvm/lib/Target/AMDGPU/AMDGPU.td, by llvm-tblgen-22 -dump-json and tools/amd_isa.py"
LICENCE = "Apache-2.0 WITH LLVM-exception"
Record = dict[str, Any]

# Decoder namespaces in the order in which AMDGPUDisassembler.cpp tries them, for encodings of so many bits.
GFX9_64 = ["GFX9_DL", "GFX940", "GFX90A", "GFX8", "GFX9"]
GFX9_32 = ["GFX8", "AMDGPU", "GFX9", "GFX90A"]
NAMESPACES: dict[str, dict[int, list[str]]] = {
    "gfx1030": {64: ["GFX10_B", "GFX10"], 32: ["AMDGPU", "GFX10_B", "GFX10"]},
    "gfx1100": {
        96: ["GFX11", "GFX11_FAKE16"],
        64: ["GFX11", "GFX11_FAKE16", "GFX11W64"],
        32: ["AMDGPU", "GFX11", "GFX11_FAKE16"],
    },
    "gfx1201": {
        96: ["GFX12", "GFX12_FAKE16", "GFX12W64"],
        64: ["GFX12", "GFX12_FAKE16", "GFX12W64"],
        32: ["AMDGPU", "GFX12", "GFX12_FAKE16"],
    },
    "gfx942": {64: GFX9_64, 32: GFX9_32},
    "gfx950": {128: ["GFX940"], 64: ["GFX950", *GFX9_64], 32: [*GFX9_32[:3], "GFX950", "GFX90A"]},
}
# What a bit of TSFlags says: the class InstSI of SIInstrFormats.td.
FLAGS = {
    0: "SALU", 1: "VALU", 2: "SOP1", 3: "SOP2", 4: "SOPC", 5: "SOPK", 6: "SOPP", 7: "VOP1", 8: "VOP2", 9: "VOPC",
    10: "VOP3", 12: "VOP3P", 13: "VINTRP", 14: "SDWA", 15: "DPP", 16: "TRANS", 17: "MUBUF", 18: "MTBUF", 19: "SMEM",
    20: "MIMG", 21: "VIMAGE", 22: "VSAMPLE", 23: "EXP", 24: "FLAT", 25: "DS", 28: "LDSDIR", 29: "VINTERP",
    32: "VM_CNT", 33: "EXP_CNT", 34: "LGKM_CNT", 39: "ScalarStore", 42: "VOP3_OPSEL", 45: "FPClamp", 46: "IntClamp",
    47: "ClampLo", 48: "ClampHi", 49: "IsPacked", 50: "D16Buf", 51: "FlatGlobal", 53: "FPAtomic", 54: "IsMAI",
    55: "IsDOT", 56: "FlatScratch", 57: "IsAtomicNoRet", 58: "IsAtomicRet", 59: "IsWMMA", 62: "GWS", 63: "IsSWMMAC",
}  # fmt: skip
FURTHER = ["mayLoad", "mayStore", "isBranch", "isTerminator", "isReturn", "isCall", "isConvergent", "hasSideEffects"]
GRAPHICS = {"VINTRP", "MTBUF", "MIMG", "VIMAGE", "VSAMPLE", "EXP", "LDSDIR", "VINTERP"}
# Instructions that read (and, those with a carry, write) VCC without an operand in LLVM's records: the printer adds it.
READS_VCC = re.compile(r"V_(CNDMASK_B32|(ADD|SUB|SUBREV)_CO_CI_U32)_(e32|dpp|dpp8|sdwa)_gfx1\d|V_CNDMASK_B32_e32_vi")


def name(value: Any) -> str:
    """The name of a record that a field refers to."""
    return str(value["def"]) if isinstance(value, dict) else str(value)


class Target:
    """The records of the target, seen from one processor."""

    def __init__(self, records: dict[str, Any], processor: str) -> None:
        self.records = records
        self.processor = processor
        self.instances: dict[str, list[str]] = records["!instanceof"]
        self.lanes = 32 if processor.startswith("gfx1") else 64
        self.features = self._features() | {f"FeatureWavefrontSize{self.lanes}"}
        self.aligned = "FeatureRequiresAlignedVGPRs" in self.features

    def _features(self) -> set[str]:
        found: set[str] = set()
        named = (n for n in self.instances["Processor"] if self.records[n]["Name"] == self.processor)
        todo = [name(feature) for feature in self.records[next(named)]["Features"]]
        while todo:
            feature = todo.pop()
            if feature not in found:
                found.add(feature)
                todo += [name(implied) for implied in self.records[feature].get("Implies") or []]
        return found

    def meets(self, predicate: Record) -> bool:
        """Whether the processor meets a predicate; one that the assembler does not know is met."""
        condition = predicate.get("AssemblerCondDag")
        if not predicate.get("AssemblerMatcherPredicate") or not condition or not condition["args"]:
            return True
        return self._holds(condition)

    def _holds(self, condition: Record) -> bool:
        terms = [term for term, _ in condition["args"]]
        values = [self._holds(t) if t.get("kind") == "dag" else name(t) in self.features for t in terms]
        return {"all_of": all(values), "any_of": any(values), "not": not values[0]}[name(condition["operator"])]

    def rows(self) -> list[tuple[int, str]]:
        """The records of the processor's instructions, each with the rank of its decoder table, lowest first."""
        spaces = NAMESPACES[self.processor]
        ranks = {(bits, space): bits * -100 + i for bits in spaces for i, space in enumerate(spaces[bits])}
        found = []
        for key in self.instances["InstructionEncoding"]:
            record = self.records[key]
            rank = ranks.get((len(record.get("Inst") or []), record.get("DecoderNamespace")))
            if rank is None or record.get("isPseudo") or record.get("isCodeGenOnly") or record.get("isAsmParserOnly"):
                continue
            left_out = key.startswith(("V_ILLEGAL", "V_INTERP")) or self.flags(record) & GRAPHICS
            if not left_out and all(self.meets(self.records[name(p)]) for p in record["Predicates"]):
                found.append((rank, key))
        order = {rank: number for number, rank in enumerate(sorted({rank for rank, _ in found}))}
        return sorted((order[rank], key) for rank, key in found)

    def flags(self, record: Record) -> set[str]:
        """What is known of an instruction."""
        bits = record.get("TSFlags") or []
        flags = {FLAGS[i] for i, bit in enumerate(bits) if bit == 1 and i in FLAGS}
        flags |= {flag for flag in FURTHER if record.get(flag) == 1}
        return flags | ({"VOPD"} if "VOPD_Base" in record["!superclasses"] else set())

    def kind(self, operand: str) -> Record:
        """An operand's kind: how it is printed, how its field is coded, its register class and its type."""
        record = self.records[operand]
        is_class = "RegClass" not in record and record.get("PrintMethod") is None
        of_class = operand if is_class else (name(record["RegClass"]) if record.get("RegClass") else "")
        of_class, bits = self.register_class(of_class)
        return {
            "print": printing(record.get("PrintMethod") or "printOperand"),
            "decode": record.get("DecoderMethod") or "",
            "class": of_class,
            "bits": bits,
            "type": "REGISTER" if is_class else str(record.get("OperandType") or "").removeprefix("OPERAND_"),
        }

    def register_class(self, key: str) -> tuple[str, int]:
        """A register class as the processor has it, and its size in bits."""
        if not key:
            return "", 0
        if key in ("SReg_1", "SReg_1_XEXEC"):
            key = key.replace("SReg_1", f"SReg_{self.lanes}")
        for suffix in ("_AlignTarget", "_Target"):
            if key.endswith(suffix):
                key = key.removesuffix(suffix)
                wide = not key.endswith("_32")
                if key.startswith("AV_LdSt_"):
                    key = key.replace("AV_LdSt", "AV" if self.aligned else "VReg").replace("VReg_32", "VGPR_32")
                key += "_Align2" if self.aligned and wide else ""
        digits = re.search(r"_(\d+)", key)
        return key, int(digits[1]) if digits else 0

    def template(self, key: str, record: Record, operands: list[tuple[str, Record]]) -> str:
        """The assembly with ``$operand`` and ``$vcc``; suffixes and VCC that LLVM's printer adds are in it."""
        asm = re.sub(r"\{([^|}]*)(\|[^}]*)?\}", r"\1", record["AsmString"])
        flags = self.flags(record)
        first, kind = operands[0] if operands else ("", {"print": ""})
        if kind["print"] == "VOPDst" and f"${first}" in asm:
            short = ("VOP1" in flags or "VOP2" in flags) and not record.get("IsSingle")
            if "VOP3" in flags:
                suffix = "_e64_dpp" if "DPP" in flags else "" if record.get("IsSingle") else "_e64"
            else:
                suffix = "_dpp" if "DPP" in flags else "_sdwa" if "SDWA" in flags else "_e32" if short else ""
            asm = asm.replace(f"${first}", f"{suffix} ${first}", 1)
        if "VOPC" in flags and "VOP3" not in flags and "VCC" in map(name, record["Defs"]) and "SDWA" not in flags:
            asm = re.sub(r" (?=\$)", " $vcc, ", asm, count=1)
        if READS_VCC.fullmatch(key):
            if "CNDMASK" not in key:
                asm = asm.replace("$vdst", "$vdst, $vcc", 1)
            asm = re.sub(r"(\$src1(_modifiers)?)(?!\w)", r"\1, $vcc", asm, count=1)
        return asm

    def row(self, key: str) -> Record:
        """One row of the table."""
        record = self.records[key]
        operands = [
            (operand, self.kind(name(kind)))
            for side in ("OutOperandList", "InOperandList")
            for kind, operand in record[side]["args"]
        ]
        mask = value = 0
        fields: dict[str, list[list[int]]] = {}
        for position, bit in enumerate(record["Inst"]):
            if isinstance(bit, int):
                mask |= 1 << position
                value |= bit << position
            elif isinstance(bit, dict) and "var" in bit:  # others are conditions that no row here meets
                index = bit.get("index", 0)
                spans = fields.setdefault(bit["var"], [])
                if spans and spans[-1][0] + spans[-1][2] == position and spans[-1][1] + spans[-1][2] == index:
                    spans[-1][2] += 1
                else:
                    spans.append([position, index, 1])
        flags = self.flags(record)
        return {
            "record": key, "asm": self.template(key, record, operands), "encoding": encoding(key, record, flags),
            "mask": mask, "value": value, "layout": [len(record["Inst"]) // 8, sorted(fields.items())],
            "operands": operands, "flags": sorted(flags),
            "uses": [name(r) for r in record["Uses"]], "defs": [name(r) for r in record["Defs"]],
        }  # fmt: skip


def printing(method: str) -> str:
    """A short name of a method of LLVM's printer; a lambda's is the function that it calls and its arguments."""
    called = re.search(r"(print\w+)\(MI, OpNo, (?:STI, )?O, (.*?)\);", method)
    if called:
        return ":".join([called[1].removeprefix("print"), *called[2].replace('"', "").split(", ")])
    return method.removeprefix("print")


def encoding(key: str, record: Record, flags: set[str]) -> str:
    """The instruction's format."""
    if "VOPD" in flags:
        return "VOPD"
    outs = [operand for _, operand in record["OutOperandList"]["args"]]
    bases = {base.split("_")[0] for base in record["!superclasses"] if "DPP" in base or "SDWA" in base}
    for flag in ("VOP3P", "VOP3", "VOPC", "VOP2", "VOP1"):
        if flag in flags or (flag in bases and flags & {"DPP", "SDWA"}):
            base = "VOP3SD" if flag == "VOP3" and "sdst" in outs and "vdst" in outs else flag
            suffix = "_DPP8" if "_dpp8" in key else "_DPP16" if "DPP" in flags else "_SDWA" if "SDWA" in flags else ""
            return base + suffix
    if "FLAT" in flags:
        return "GLOBAL" if "FlatGlobal" in flags else "SCRATCH" if "FlatScratch" in flags else "FLAT"
    formats = ("SOP1", "SOP2", "SOPC", "SOPK", "SOPP", "SMEM", "MUBUF", "DS")
    return next((flag for flag in formats if flag in flags), "OTHER")


class Pool:
    """Values that several rows share, stored once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.numbers: dict[str, int] = {}

    def number(self, value: Any) -> int:
        """The value's number."""
        key = json.dumps(value)
        if key not in self.numbers:
            self.numbers[key] = len(self.values)
            self.values.append(value)
        return self.numbers[key]


def table(records: dict[str, Any], processor: str) -> bytes:
    """The table of a processor, compressed."""
    target = Target(records, processor)
    pools = {key: Pool() for key in ("kinds", "layouts", "signatures", "flags", "registers")}
    rows = []
    for rank, key in target.rows():
        row = target.row(key)
        signature = [[operand, pools["kinds"].number(kind)] for operand, kind in row["operands"]]
        rows.append([
            row["record"], row["asm"], row["encoding"], rank, row["mask"], row["value"],
            pools["layouts"].number(row["layout"]), pools["signatures"].number(signature),
            pools["flags"].number(row["flags"]),
            pools["registers"].number(row["uses"]), pools["registers"].number(row["defs"]),
        ])  # fmt: skip
    data = {
        "source": SOURCE, "licence": LICENCE, "processor": processor, "lanes": target.lanes,
        "features": sorted(target.features), **{key: pool.values for key, pool in pools.items()}, "rows": rows,
    }  # fmt: skip
    return gzip.compress(json.dumps(data, separators=(",", ":")).encode(), 9, mtime=0)


def dump(source: Path) -> dict[str, Any]:
    """The records, from a dump or from the source of LLVM."""
    if source.is_file():
        return dict(json.loads(source.read_text()))
    target = source / "lib/Target/AMDGPU"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "amdgpu.json"
        includes = ["-I", str(source / "include"), "-I", str(target)]
        command = ["llvm-tblgen-22", "-dump-json", *includes, str(target / "AMDGPU.td"), "-o", str(out)]
        subprocess.run(command, check=True)
        return dict(json.loads(out.read_text()))


def main(arguments: list[str]) -> int:
    """Writes the tables, or with ``--check`` tells whether they are the ones that would be written."""
    records = dump(Path(next(a for a in arguments if not a.startswith("-"))))
    stale = []
    for processor in NAMESPACES:
        path = TARGET / f"{processor}.json.gz"
        data = table(records, processor)
        if "--check" in arguments:
            same = path.exists() and gzip.decompress(path.read_bytes()) == gzip.decompress(data)
            stale += [] if same else [path.name]
        else:
            path.write_bytes(data)
            print(f"{path.name}: {len(data)} bytes")
    for file in stale:
        print(f"{file} is not what tools/amd_isa.py makes of these records")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
