"""KfdSystem: a machine with software cards, as a driver sees it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable

from ....core.fileio import FileIO
from ....core.software import SoftwareSystem
from ...engine import AddressSpace, Machine
from ..processor import Interrupt, MachineMaker, PacketFault, Processor
from ..settings import asked
from . import topology
from .cards import CARDS
from .files import KfdFile, Node, RenderFile, report
from .gpu import Gpu
from .process import Process
from .window import Windows

RENDER_MINOR = 128


def _machines(arch: str) -> MachineMaker:
    """The card's own: executes its machine code."""

    def made(lanes: int, space: AddressSpace) -> Machine:
        try:
            return asked(arch, lanes, space)
        except ValueError as error:
            raise PacketFault(str(error)) from None

    return made


class KfdSystem(SoftwareSystem):
    """A machine with cards of AMD's, all of one kind.

    Args:
      arch: of the cards.
      gpus: how many.
      kfd: minor version of the kernel interface: 11 as of Linux 6.1, 14 of 6.4 to 6.9, 17 of 6.12.
      large_bar: whether the host can map all of VRAM.
      machines: makes what executes waves, instead of the card's own.
      memory: a descriptor of the memory of a caller that is another process.

    Attributes:
      log: what the kernel had to say, from the first line on.

    Raises:
      ValueError: if the arch is none that is played.

    Example:
      >>> machine = KfdSystem("gfx1100")
      >>> machine.listdir("/dev/dri"), machine.read_text("/sys/class/kfd/kfd/topology/nodes/0/gpu_id")
      (['renderD128'], '0')
    """

    def __init__(
        self, arch: str = "gfx1100", gpus: int = 1, kfd: int = 17, *, large_bar: bool = True,
        machines: MachineMaker | None = None, memory: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if arch not in CARDS:
            raise ValueError(f"no card of {arch!r} is played; {', '.join(CARDS)} are")
        card = CARDS[arch]
        self.log: list[str] = []
        self._kfd, self._machines, self._memory = kfd, machines or _machines(arch), memory
        self._render_files: weakref.WeakValueDictionary[int, RenderFile] = weakref.WeakValueDictionary()
        self._files: weakref.WeakSet[Node] = weakref.WeakSet()
        self._process: Process | None = None
        self.gpus = [Gpu(card, 0x5A10 + 0x1111 * n, RENDER_MINOR + n, large_bar) for n in range(gpus)]
        for path, text in topology.files([(card, g.gpu_id, g.minor) for g in self.gpus], large_bar, kfd >= 17):
            self.put_text(path, text)
        self.put_node("/dev/kfd", self._open_kfd)
        for gpu in self.gpus:
            self.put_node(f"/dev/dri/renderD{gpu.minor}", self._opener(gpu))

    def _open_kfd(self, path: str, flags: int) -> FileIO:
        if self._process is None or self._process.process_id != os.getpid():
            self._process = Process(
                self.gpus, self._kfd, self._say, self._render, self._processor, self._memory
            )  # fmt: skip
        opened = self._process
        file = KfdFile(path, lambda: opened)
        self._files.add(file)
        return file

    def _opener(self, gpu: Gpu) -> Callable[[str, int], FileIO]:
        def opened(path: str, flags: int) -> FileIO:
            file = RenderFile(path, gpu, lambda: self._process)
            self._render_files[file.number] = file
            self._files.add(file)
            return file

        return opened

    def name(self, file: Node, number: int) -> None:
        """Has requests know a file by the descriptor that it has in the process of the caller."""
        if isinstance(file, RenderFile):
            self._render_files[number] = self._render_files.pop(file.number)
        file.number = number

    def _render(self, number: int) -> int | None:
        file = self._render_files.get(number)
        return file.gpu.minor if file is not None and file.fd >= 0 and file.number == number else None

    def _processor(self, gpu: Gpu, interrupt: Callable[[Interrupt], None]) -> Processor:
        windows = Windows([card.window for card in self.gpus])
        return Processor(gpu.card.arch, self._machines, interrupt, gpu.card.xccs, windows)

    def _say(self, line: str) -> None:
        self.log.append(line)
        if not line.startswith("kfd:"):
            report(line)

    def close(self) -> None:
        """Ends the process that uses the cards, with its files, and the cards. Closing twice does nothing."""
        process, self._process = self._process, None
        if process is not None and process.process_id == os.getpid():
            process.close()
        for file in list(self._files):
            file.close()
        for gpu in self.gpus:
            gpu.close()

    def __del__(self) -> None:
        if "gpus" in self.__dict__:
            self.close()
