"""Run a command with the OpenCL runtime from PyPI: loader and CPU driver, with nothing of the system's.

    python -m tools.opencl pytest packages/tg-runtime

The wheel ``intel-opencl-rt`` puts its libraries into this environment's ``lib``, where neither the dynamic linker nor
the ICD loader looks, and its own vendor file names a path that is not there. The command is started with both pointed
right.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def environment(prefix: Path) -> dict[str, str]:
    """The variables under which the runtime installed below ``prefix`` is found; writes its vendor file.

    Raises:
        FileNotFoundError: if ``intel-opencl-rt`` is not installed below ``prefix``.
    """
    libraries = prefix / "lib"
    driver = libraries / "libintelocl.so"
    if not driver.is_file():
        raise FileNotFoundError(f"{driver}: not there; `pip install intel-opencl-rt intel-cmplr-lib-rt` brings it")
    vendors = prefix / "etc" / "OpenCL" / "tinytg"
    vendors.mkdir(parents=True, exist_ok=True)
    (vendors / "intel.icd").write_text(f"{driver}\n", encoding="utf-8")
    path = os.pathsep.join(part for part in (str(libraries), os.environ.get("LD_LIBRARY_PATH", "")) if part)
    return {**os.environ, "LD_LIBRARY_PATH": path, "OCL_ICD_VENDORS": str(vendors)}


def main(arguments: list[str]) -> int:
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    os.execvpe(arguments[0], arguments, environment(Path(sys.prefix)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
