"""What was made of headers and records of others is what they make now, byte for byte, where they can be had.

None of them is in the repository. ``LINUX_SOURCE`` is the folder of Linux's source, of the version that the tables name
(Debian: ``linux-source-6.12``, unpacked), ``LLVM_HEADERS`` one of LLVM 22's headers (``llvm-22-dev`` puts them into
``/usr/include/llvm-22``), ``LLVM_SOURCE`` the folder ``llvm`` of LLVM's source (``llvm-toolchain-22``).
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from tools import amd_headers, amd_isa

MADE = sorted(path for path in amd_headers.OUT.glob("*.py") if "python -m tools.amd_headers" in path.read_text())


def folder(variable: str, usual: str, inside: str) -> Path:
    """A folder of somebody else's; skips the test where it is not here."""
    found = Path(os.environ.get(variable, usual))
    if not (found / inside).is_file():
        pytest.skip(f"the source of others is not here: {variable} names no folder with {inside}")
    return found


def test_tables_of_headers_are_what_the_headers_make() -> None:
    linux = folder("LINUX_SOURCE", "/usr/src/linux-source-6.12", "Makefile")
    llvm = folder("LLVM_HEADERS", "/usr/include/llvm-22", "llvm/BinaryFormat/ELF.h")
    named = set(re.findall(r"from Linux ([\d.]+):", "".join(path.read_text() for path in MADE)))
    if named != {amd_headers.version_of(linux)}:
        pytest.skip(f"the source of others is not here: Linux {amd_headers.version_of(linux)} is, and not {named}")
    made = amd_headers.texts(linux, llvm)
    assert sorted(made) == MADE
    assert [path.name for path, text in made.items() if path.read_bytes() != text.encode()] == []


def test_a_table_that_somebody_edited_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what is written is no longer stale."""
    table = tmp_path / "kfd_sysfs.py"
    monkeypatch.setattr(amd_headers, "OUT", tmp_path)
    monkeypatch.setattr(amd_headers, "pages", lambda linux, llvm: [amd_headers.sysfs_page(linux)])
    for path, text in {
        "linux/Makefile": "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\n",
        "linux/include/uapi/linux/kfd_sysfs.h": "#define HSA_CAP_HOT_PLUGGABLE 0x00000001\n#define HSA_CAP_MASK 0xff\n",
        "llvm/llvm/Config/llvm-config.h": "#define LLVM_VERSION_MAJOR 22\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    folders = [str(tmp_path / "linux"), str(tmp_path / "llvm")]
    assert amd_headers.main(folders) == 0
    assert "from Linux 6.12.117:" in table.read_text() and "HSA_CAP_MASK = 0xff" in table.read_text()
    assert amd_headers.main([*folders, "--check"]) == 0 and "is not what" not in capsys.readouterr().out
    table.write_text(table.read_text().replace("0xff", "0xfe"))
    assert amd_headers.main([*folders, "--check"]) == 1
    assert capsys.readouterr().out.startswith("kfd_sysfs.py is not what tools/amd_headers.py makes")
    assert amd_headers.main([]) == 2


@pytest.mark.slow
def test_instruction_tables_are_what_the_records_make(capsys: pytest.CaptureFixture[str]) -> None:
    """By llvm-tblgen, which takes 20 GB of memory for a dump of 500 MB."""
    source = folder("LLVM_SOURCE", "", "lib/Target/AMDGPU/AMDGPU.td")
    if shutil.which("llvm-tblgen-22") is None:
        pytest.skip("llvm-tblgen-22 is not installed")
    assert amd_isa.main([str(source), "--check"]) == 0, capsys.readouterr().out
