"""Runs a program of AMD's own, such as ``rocminfo``, on a software card: ``python -m tools.amd_client rocminfo``.

The program is not changed. A library that is preloaded (``shim.c``, which the C compiler of the machine compiles) leads
what it opens of the kernel's to a software card in a process of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tg_hcq.simulate.amd.kfd import KfdSystem
from tg_hcq.simulate.amd.kfd.topology import ROOT

_SHIM = Path(__file__).with_name("shim.c")


def build(folder: Path) -> Path:
    """The library that is preloaded, compiled into a folder.

    Raises:
      CalledProcessError: if the machine's compiler refuses it.
    """
    library = folder / "shim.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(_SHIM), "-ldl"], check=True)
    return library


def write_tree(folder: Path, system: KfdSystem) -> None:
    """The texts of sysfs as files.

    Args:
      folder: that stands for ``/sys/class/kfd/kfd``.
      system: whose texts they are.
    """

    def write(path: str, to: Path) -> None:
        if system.may_open(path):
            to.write_text(system.read_text(path) + "\n", encoding="ascii")
            return
        to.mkdir(parents=True)
        for name in system.listdir(path):
            write(f"{path}/{name}", to / name)

    write(ROOT, folder / "topology")


def environment(folder: Path, arch: str, kfd: int) -> dict[str, str]:
    """Variables with which a program meets the software card instead of the kernel.

    Args:
      folder: an empty one, which lives as long as the program.
      arch: of the card.
      kfd: minor version of the kernel interface.
    """
    system = KfdSystem(arch, kfd=kfd)
    write_tree(folder / "kfd", system)
    system.close()
    return os.environ | {
        "LD_PRELOAD": str(build(folder)), "AMD_CLIENT_TREE": str(folder), "AMD_CLIENT_PYTHON": sys.executable,
        "AMD_CLIENT_ARCH": arch, "AMD_CLIENT_KFD": str(kfd),
        # memory of the process that is made the card's afterwards is the one thing that two processes do not share
        "HSA_USERPTR_FOR_PAGED_MEM": "0",
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.amd_client", description=__doc__)
    parser.add_argument("--arch", default="gfx1030", help="of the card")
    parser.add_argument("--kfd", type=int, default=11, help="minor version of the kernel interface")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the program, and what it is called with")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(told.command, env=environment(Path(folder), told.arch, told.kfd), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
