"""What the namespace can do: ``__array_namespace_info__``."""

from __future__ import annotations

from tg_dtype import DType, dtypes
from tg_runtime import Device

from .data_types import KINDS
from .operands import DEFAULT_INT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Info:
    """Capabilities, devices and dtypes of the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Selecting by booleans and shapes that depend on data: both; at most 64 axes are tried."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The device of tensors that are given none."""
        return Device.DEFAULT

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        """The dtypes of what is given none, by kind."""
        kinds = {"real floating": dtypes.default_float, "integral": DEFAULT_INT, "indexing": DEFAULT_INT}
        return kinds | {"complex floating": KINDS["complex floating"][dtypes.default_float is dtypes.float64]}

    def dtypes(self, *, device: str | None = None, kind: Any = None) -> dict[str, DType]:
        """The dtypes by their names, all or those of a kind or several.

        Raises:
          ValueError: if there is no such kind.
        """
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else tuple(kind)
        for one in kinds:
            if one not in KINDS:
                raise ValueError(f"dtypes: {one!r} is none of {', '.join(map(repr, KINDS))}")
        return {dtype.name: dtype for one in kinds for dtype in KINDS[one]}

    def devices(self) -> list[str]:
        """The names of the devices that run kernels here, the default one first."""
        names = [Device.DEFAULT, *(name for name in ("CPU", "NUMPY") if name != Device.DEFAULT)]
        return [name for name in names if name]


def namespace_info() -> Info:
    """An :class:`Info`."""
    return Info()
