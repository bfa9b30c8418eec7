"""Process: what one process holds of KFD, whatever devices it opens: the file, the cards, the events."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Final

from ..core.errors import DeviceFault
from ..core.fault import FaultReport, Known
from ..core.system import System
from ..headers.amd import kfd_ioctl
from .kfd.card import COHERENT, GTT, NO_SUBSTITUTE, WRITABLE, Card, Memory
from .kfd.driver import Driver
from .kfd.topology import Node

_EVENT_PAGE: Final = 8 * kfd_ioctl.KFD_SIGNAL_EVENT_LIMIT
_ASK: Final = -1
"""Of SET_XNACK_MODE: changes nothing."""
_SOURCE: Final = "KFD's event"


class Process:
    """KFD of a process. The kernel hands a card out once, so that it is shared by all devices that use it.

    Attributes:
      driver: the kfd file.
      cards: those that were acquired, by their ids.
      faults: what the kernel told of each card, in its order: from a device's name, the error. Each stops all devices
        on a card.
      forgetful: ids of the cards whose memory was lost as the kernel reset them, until whoever uses them knows.
    """

    def __init__(self, system: System, device: str) -> None:
        self._system = system
        self.id = system.process_id
        self.driver = Driver(system, device)
        self.cards: dict[int, Card] = {}
        self.faults: dict[int, list[Callable[[str], DeviceFault]]] = {}
        self.forgetful: set[int] = set()
        self._events: dict[int, int] = {}
        self._shared: set[int] = set()
        if self.driver.has("runtime enable"):
            try:
                mode = kfd_ioctl.KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK
                self.driver.ioctl(kfd_ioctl.IOC_RUNTIME_ENABLE, mode_mask=mode)
            except OSError:
                pass  # debuggers cannot attach, and everything else works

    def card(self, node: Node, device: str) -> Card:
        """A card, acquired if it is not yet.

        Raises:
          DeviceUnavailable: if it may not be used.
        """
        found = self.cards.get(node.gpu_id)
        if found is None:
            found = self.cards[node.gpu_id] = Card(self._system, self.driver, node, device)
            self._listen(found)
            for handle in self._shared:
                found.map(handle, [node.gpu_id])
        return found

    def xnack(self) -> bool:
        """Whether accesses of this process are tried again after a fault, where a card can do so."""
        try:
            told = self.driver.ioctl(kfd_ioctl.IOC_SET_XNACK_MODE, xnack_enabled=_ASK)
        except OSError:
            return False
        return told["xnack_enabled"] > 0

    def share(self, memory: Memory) -> None:
        """Lets all cards address memory of the host, those that are acquired later, too: signals are waited for by all.

        Raises:
          OSError: if the kernel refuses.
        """
        for card in self.cards.values():
            if card.node.gpu_id != memory.gpu_id:
                card.map(memory.handle, [card.node.gpu_id])
        self._shared.add(memory.handle)

    def unshare(self, memory: Memory) -> None:
        """Undoes :meth:`share`, if it was done; the card that the memory was taken through still addresses it."""
        if memory.handle in self._shared:
            self._shared.discard(memory.handle)
            for card in self.cards.values():
                if card.node.gpu_id != memory.gpu_id:
                    card.unmap(memory.handle, [card.node.gpu_id])

    def _listen(self, card: Card) -> None:
        """Has the kernel tell of faults. Discrete cards want memory for events, handed over with the first of them."""
        if self._events:
            return
        page = card.allocate(_EVENT_PAGE, GTT | WRITABLE | COHERENT | NO_SUBSTITUTE, visible=True)
        for kind in (kfd_ioctl.KFD_IOC_EVENT_MEMORY, kfd_ioctl.KFD_IOC_EVENT_HW_EXCEPTION):
            offset = 0 if self._events else page.handle
            made = self.driver.ioctl(
                kfd_ioctl.IOC_CREATE_EVENT, event_type=kind, event_page_offset=offset, auto_reset=1
            )
            self._events[kind] = made["event_id"]

    def fault(self, device: str, gpu_id: int, known: int) -> DeviceFault | None:
        """What the kernel told of a card beyond the faults that are known; None if nothing. Never waits."""
        try:
            self._ask()
        except OSError as error:
            return DeviceFault(f"{device}: the kernel does not answer any more: {error}")
        found = self.faults.get(gpu_id, [])
        return found[known](device) if len(found) > known else None

    def _ask(self) -> None:
        """Takes what the kernel has to tell; it tells everything once."""
        layout = kfd_ioctl.kfd_event_data
        data = bytearray().join(layout.pack(event_id=number) for number in self._events.values())
        place = (ctypes.c_ubyte * len(data)).from_buffer(data)
        told = self.driver.ioctl(
            kfd_ioctl.IOC_WAIT_EVENTS, events_ptr=ctypes.addressof(place), num_events=len(self._events)
        )
        if told["wait_result"] != kfd_ioctl.KFD_IOC_WAIT_RESULT_COMPLETE:
            return
        memory, hardware = (
            layout.unpack(data[at : at + layout.nbytes]) for at in range(0, len(data), layout.nbytes)
        )
        if gpu_id := memory["memory_exception_data.gpu_id"]:
            self.faults.setdefault(gpu_id, []).append(partial(_memory_fault, told=memory))
        if gpu_id := hardware["hw_exception_data.gpu_id"]:
            if hardware["hw_exception_data.memory_lost"]:
                self.forgetful.add(gpu_id)
            self.faults.setdefault(gpu_id, []).append(partial(_hardware_fault, told=hardware))


def _memory_fault(device: str, told: dict[str, int]) -> DeviceFault:
    at = "memory_exception_data."
    address = told[f"{at}va"]
    why = {
        "NotPresent": "the page is not mapped",
        "ReadOnly": "the page may not be written",
        "NoExecute": "the page may not be executed",
    }
    found = [text for name, text in why.items() if told[f"{at}failure.{name}"]]
    access = "write" if told[f"{at}failure.ReadOnly"] else "execute" if told[f"{at}failure.NoExecute"] else None
    what = f"memory fault at {address:#x}: {', '.join(found) or 'the kernel does not say why'}"
    if told[f"{at}failure.imprecise"]:
        what += " (the address is that of the page, or about it)"
    error = DeviceFault(f"{device}: {what}")
    error.report = FaultReport(
        device, Known(what, _SOURCE), Known(address, _SOURCE), None if access is None else Known(access, _SOURCE)
    )
    return error


def _hardware_fault(device: str, told: dict[str, int]) -> DeviceFault:
    at = "hw_exception_data."
    ecc = told[f"{at}reset_cause"] == kfd_ioctl.KFD_HW_EXCEPTION_ECC
    what = "the kernel resets the card: " + ("a memory error that ECC found" if ecc else "it hung")
    if told[f"{at}memory_lost"]:
        what += "; its memory is lost"
    error = DeviceFault(f"{device}: {what}")
    error.report = FaultReport(device, Known(what, _SOURCE))
    return error


def process_of(system: System, device: str) -> Process:
    """What this process holds of a system's KFD; opened if it holds nothing yet. A forked child's is its own.

    Raises:
      DeviceUnavailable: if there is no KFD, it may not be opened, or it is too old.
    """
    return system.kept("KFD", lambda: Process(system, device))
