"""Compares what the software cards decode with ``llvm-objdump-22``, in the code objects of AMD that a cache holds.

    CACHEDIR=/tmp/kernels python -m tinytg …         # anything that compiles kernels for AMD
    python -m tools.amd_listings /tmp/kernels        # each instruction of each of them

The tests do so with every code object that they compile, in whatever process, when all of them are over: their cache is
the run's own. Instructions are compared as words, size, mnemonic and operands; each that differs is printed once.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tg_hcq.simulate.amd.isa import decoder, text
from tg_hcq.simulate.amd.isa.listing import EM_AMDGPU, processor_of
from tg_hcq.simulate.amd.isa.table import PROCESSORS
from tg_hcq.simulate.engine import Undecodable
from tg_runtime.host.elf import ELFError, ELFFile

OBJDUMP: Final = "llvm-objdump-22"
SECONDS: Final = 120.0
"""A run that takes longer than this stops, and says how many code objects it has not seen."""

LINE: Final = re.compile(r"\t(.*?)\s*// ([0-9A-F]{12}): ([0-9A-F ]{8,}?)(?: <.*>)?$")
"""An instruction of objdump: text, address, words, and where a branch goes."""

TOGETHER: Final = 64


class Result(NamedTuple):
    """What was compared.

    Attributes:
      objects: how many code objects.
      instructions: how many instructions they have.
      distinct: how many of these differ from one another.
      unseen: how many code objects there was no time for.
      differences: a line for each instruction that is decoded in another way.
    """

    objects: int
    instructions: int
    distinct: int
    unseen: int
    differences: tuple[str, ...]

    @property
    def line(self) -> str:
        """All of it in words."""
        unseen = f"; {self.unseen} were not looked at, for want of time" if self.unseen else ""
        return (
            f"{self.objects} code objects of AMD's, {self.instructions} instructions ({self.distinct} distinct): "
            f"{len(self.differences)} differ from {OBJDUMP}{unseen}"
        )


def available() -> bool:
    """Whether LLVM's program is there."""
    return shutil.which(OBJDUMP) is not None


def code_objects(folder: Path) -> dict[str, bytes]:
    """The code objects of a folder's files, by their digests; a cache writes a few words before each."""
    found = {}
    for path in sorted(folder.rglob("*")):
        try:
            data = path.read_bytes() if path.is_file() else b""
        except OSError:
            continue
        begin = data.find(b"\x7fELF")
        image = data[begin:]
        if begin >= 0 and int.from_bytes(image[18:20], "little") == EM_AMDGPU and _decodable(image):
            found[hashlib.sha256(image).hexdigest()] = image
    return found


def _decodable(image: bytes) -> bool:
    try:
        return processor_of(ELFFile(image)) in PROCESSORS
    except ELFError:
        return False  # a test's: damaged on purpose


def listings(objects: Sequence[bytes]) -> Iterator[list[str]]:
    """The lines of objdump for each code object."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.o" for number in range(len(objects))]
        for path, image in zip(paths, objects, strict=True):
            path.write_bytes(image)
        command = [OBJDUMP, "-d", "-z", *map(str, paths)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    parts = re.split(r"^.*/\d+\.o:\tfile format .*$", printed, flags=re.M)[1:]
    yield from (part.splitlines() for part in parts)


class Comparison:
    """Decodes words once for each processor, however often they come."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, bytes], tuple[str, int]] = {}
        self.instructions = 0
        self.differences: dict[str, None] = {}

    def decoded(self, processor: str, words: bytes) -> tuple[str, int]:
        """The text of an instruction, and its size in bytes."""
        key = processor, words
        if key not in self.known:
            try:
                found = decoder(processor)(words.ljust(20, b"\0"))
                self.known[key] = text(found).rstrip(), found.nbytes
            except Undecodable:
                self.known[key] = f".long {int.from_bytes(words[:4], 'little'):#010x}", 4
        return self.known[key]

    def compare(self, image: bytes, lines: Sequence[str]) -> None:
        """Compares a code object with its listing by objdump; no byte of its code is left out."""
        file = ELFFile(image)
        processor, seen = processor_of(file), 0
        for line in lines:
            if (match := LINE.match(line)) is None:
                continue
            theirs = match[1]
            words = b"".join(int(word, 16).to_bytes(4, "little") for word in match[3].split())
            ours, nbytes = self.decoded(processor, words)
            self.instructions += 1
            seen += len(words)
            if (ours, nbytes) != (theirs, len(words)):
                told = f"{processor} {match[3]}: {ours!r} of {nbytes} bytes, {OBJDUMP}: {theirs!r} of {len(words)}"
                self.differences[told] = None
        size = sum(section.size for section in file.sections if section.flags & 4)
        if seen != size:
            self.differences[f"{processor}: {OBJDUMP} lists {seen} bytes of {size}"] = None


def compared(objects: Sequence[bytes], seconds: float = SECONDS) -> Result:
    """Compares code objects until there is no time left.

    objdump takes the processor of the first file that it is given for all of them.
    """
    until, done, comparison = time.monotonic() + seconds, 0, Comparison()
    by_processor: dict[str, list[bytes]] = {}
    for image in objects:
        by_processor.setdefault(processor_of(ELFFile(image)), []).append(image)
    for images in by_processor.values():
        for begin in range(0, len(images), TOGETHER):
            if time.monotonic() > until:
                break
            together = images[begin : begin + TOGETHER]
            try:
                for image, lines in zip(together, listings(together), strict=True):
                    comparison.compare(image, lines)
            except subprocess.CalledProcessError as error:
                comparison.differences[f"{OBJDUMP} lists {len(together)} code objects not: {error.stderr}"] = None
            done += len(together)
    distinct = len(comparison.known)
    return Result(done, comparison.instructions, distinct, len(objects) - done, tuple(comparison.differences))


def main(arguments: list[str]) -> int:
    """Compares the code objects of folders; the exit status tells whether all are decoded alike."""
    if not arguments or not available():
        print(__doc__ if available() else f"{OBJDUMP} is not on the PATH: apt-get install llvm-22")
        return 2
    found: dict[str, bytes] = {}
    for argument in arguments:
        found |= code_objects(Path(argument))
    result = compared([found[key] for key in sorted(found)])
    print(*result.differences, result.line, sep="\n")
    return bool(result.differences or result.unseen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
