"""The grammar of DEV: what is accepted, what is refused, and how it is written back."""

from __future__ import annotations

import pytest

from tg_runtime import DevEntry, DevSyntaxError, parse_dev

GOOD = {
    "": (),
    "  ": (),
    "CPU": (DevEntry("CPU"),),
    "cpu": (DevEntry("CPU"),),
    " CPU ": (DevEntry("CPU"),),
    "CPU:LLVM": (DevEntry("CPU", "LLVM"),),
    "cpu:clang": (DevEntry("CPU", "CLANG"),),
    "CPU:LLVM:x86_64,znver2,avx2,-avx512f": (DevEntry("CPU", "LLVM", "x86_64,znver2,avx2,-avx512f"),),
    "AMD::gfx950": (DevEntry("AMD", "", "gfx950"),),
    "CL::IMAGE_PITCH_ALIGNMENT=64": (DevEntry("CL", "", "IMAGE_PITCH_ALIGNMENT=64"),),
    "NULL:HIP:gfx950": (DevEntry("NULL", "HIP", "gfx950"),),
    "NULL:LLVM:+a:b": (DevEntry("NULL", "LLVM", "+a:b"),),
    ":LLVM": (DevEntry("", "LLVM"),),
    "USB+AMD": (DevEntry("AMD", iface="USB"),),
    "KFD:0-1+AMD": (DevEntry("AMD", iface="KFD", indices=(0, 1)),),
    "KFD:0,2+AMD": (DevEntry("AMD", iface="KFD", indices=(0, 2)),),
    "KFD:0-1,1-3,9+AMD:LLVM": (DevEntry("AMD", "LLVM", iface="KFD", indices=(0, 1, 2, 3, 9)),),
    ":1+AMD": (DevEntry("AMD", indices=(1,)),),
    "MOCKKFD+AMD:LLVM:gfx1201": (DevEntry("AMD", "LLVM", "gfx1201", "MOCKKFD"),),
    "PCI:1+NV:PTX:sm_90": (DevEntry("NV", "PTX", "sm_90", "PCI", (1,)),),
    "CPU:LLVM;AMD::gfx950": (DevEntry("CPU", "LLVM"), DevEntry("AMD", "", "gfx950")),
    "NUMPY; CL ; KFD:1+AMD": (DevEntry("NUMPY"), DevEntry("CL"), DevEntry("AMD", iface="KFD", indices=(1,))),
}

BAD = {
    ";": "empty entry",
    "CPU;": "empty entry",
    ":": "names no device",
    "::": "names no device",
    "+": "names no device",
    "KFD+": "names no device",
    "CPU:0": "not the name of a renderer; a device's number goes before a '+'",
    "0": "not the name of a device",
    "C PU": "not the name of a device",
    "1KFD+AMD": "not the name of a interface",
    "KFD:3-1+AMD": "empty or beyond",
    "KFD:+AMD": "not a device number",
    "KFD:0,,1+AMD": "not a device number",
    "KFD:0-99999+AMD": "empty or beyond",
    "CPU;CPU:LLVM": "names CPU twice",
    "cpu;CPU": "names CPU twice",
    ":LLVM;:CLANG": "names the automatic device twice",
}


@pytest.mark.parametrize("text", GOOD)
def test_accepted(text: str) -> None:
    assert parse_dev(text) == GOOD[text]


@pytest.mark.parametrize("text", GOOD)
def test_written_back(text: str) -> None:
    entries = parse_dev(text)
    assert parse_dev(";".join(map(str, entries))) == entries


@pytest.mark.parametrize("text", BAD)
def test_refused(text: str) -> None:
    with pytest.raises(DevSyntaxError, match=BAD[text].replace("+", r"\+")):
        parse_dev(text)
