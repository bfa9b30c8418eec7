"""What ``DEV=MOCKKFD+AMD`` opens."""

from __future__ import annotations

from tg_runtime import DevEntry, DeviceUnavailable

from ....core.system import System
from ..settings import AMD_PROCESS
from .remote import RemoteKfd
from .system import KfdSystem


def mock_kfd(entry: DevEntry) -> System:
    """The machine of ``DEV=MOCKKFD+AMD``: the entry's arch names its two cards, gfx1100 if it names none.

    With ``AMD_PROCESS=1`` they are in a process of their own.

    Raises:
      DeviceUnavailable: if no such card is played.
    """
    make = RemoteKfd if AMD_PROCESS.value else KfdSystem
    try:
        return make(entry.arch or "gfx1100", gpus=2)
    except ValueError as error:
        raise DeviceUnavailable.here(entry.device, str(error)) from None
