"""HCQBuffer: memory that a device can address; LostBuffer: what becomes of one whose content was lost."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any, NoReturn

from tg_shape import sint

from .errors import ContentLost
from .fileio import MMIO, Format


class HCQBuffer:
    """A range of a device's address space.

    Attributes:
      address: where the device finds it; an expression for a buffer that a replay will name.
      nbytes: size.
      view: the same memory as the host sees it, or None where the host cannot.
      meta: what the allocator needs to free it.
      base: the buffer that owns the memory, where this is a part of one.
      mappings: names of the devices that can address it.
    """

    __slots__ = ("__weakref__", "_lent", "_why", "address", "base", "mappings", "meta", "nbytes", "view")

    def __init__(
        self,
        address: sint,
        nbytes: int,
        view: MMIO | None = None,
        meta: object = None,
        base: HCQBuffer | None = None,
        mappings: set[str] | None = None,
    ) -> None:
        self.address, self.nbytes, self.view, self.meta, self.base = address, nbytes, view, meta, base
        self.mappings: set[str] = set() if mappings is None else mappings
        self._lent: weakref.ref[ctypes.Array[ctypes.c_char]] | None = None
        self._why = ""

    def offset(self, start: int = 0, nbytes: int | None = None) -> HCQBuffer:
        """The part from byte ``start`` on; it keeps the whole alive.

        Raises:
          ValueError: if the part reaches outside.
        """
        size = self.nbytes - start if nbytes is None else nbytes
        if start < 0 or size < 0 or start + size > self.nbytes:
            raise ValueError(f"{size} bytes at {start} reach outside of a buffer of {self.nbytes} bytes")
        view = None if self.view is None else self.view.view(start, size, "B")
        return HCQBuffer(self.address + start, size, view, self.meta, self.base or self, self.mappings)

    def host_view(self, fmt: Format = "B") -> MMIO:
        """The memory as the host sees it.

        Raises:
          ValueError: if the host cannot see it.
        """
        if self.view is None:
            raise ValueError(f"{self!r} cannot be reached by the host")
        return self.view if self.view.fmt == fmt else self.view.view(0, None, fmt)

    def lend(self, nbytes: int) -> memoryview:
        """The first ``nbytes`` bytes as the host sees them; the memory stays valid as long as the view lives.

        Raises:
          ValueError: if the host cannot see them, or there are not so many.
        """
        view = self.host_view()
        if nbytes > view.nbytes:
            raise ValueError(f"{nbytes} bytes of {self!r}")
        window = (ctypes.c_char * nbytes).from_address(view.address)
        window.__dict__["owner"] = view
        (self.base or self)._lent = weakref.ref(window)
        return memoryview(window).cast("B")

    @property
    def is_lent(self) -> bool:
        """Whether somebody holds a view that ``lend`` gave last."""
        return self._lent is not None and self._lent() is not None

    def lose(self, why: str) -> None:
        """Makes this buffer and all parts of it such that every use raises :class:`ContentLost`.

        Args:
          why: what happened, for the message.
        """
        for buffer in [self, *parts_of([self])]:
            if not isinstance(buffer, LostBuffer):
                buffer._why = why
                buffer.__class__ = LostBuffer

    def __repr__(self) -> str:
        where = f"{self.address:#x}" if isinstance(self.address, int) else self.address.render()
        return f"<HCQBuffer {self.nbytes} bytes at {where}>"


class LostBuffer(HCQBuffer):
    """A buffer whose content was lost. It is found wherever the buffer was, and can only be freed."""

    __slots__ = ()

    def _raise(self) -> NoReturn:
        raise ContentLost(f"{self!r}: the content was lost: {self._why}")

    @property
    def address(self) -> NoReturn:  # type: ignore[override]
        """Raises ContentLost, as :attr:`view` does, and with them everything that uses a buffer."""
        self._raise()

    @property
    def view(self) -> NoReturn:  # type: ignore[override]
        """Raises ContentLost."""
        self._raise()

    def offset(self, start: int = 0, nbytes: int | None = None) -> HCQBuffer:
        """Raises ContentLost."""
        self._raise()

    def remains(self) -> HCQBuffer:
        """The memory as it was, for whoever frees it."""
        slots: Any = HCQBuffer
        address, view = slots.address.__get__(self), slots.view.__get__(self)
        return HCQBuffer(address, self.nbytes, view, self.meta, self.base, self.mappings)

    def __repr__(self) -> str:
        return repr(self.remains())


def parts_of(wholes: list[HCQBuffer]) -> list[HCQBuffer]:
    """The buffers that are parts of others, whoever holds them."""
    mine = {id(whole) for whole in wholes}
    return [
        found for found in gc.get_referrers(*wholes) if isinstance(found, HCQBuffer) and id(found.base) in mine
    ]  # fmt: skip
