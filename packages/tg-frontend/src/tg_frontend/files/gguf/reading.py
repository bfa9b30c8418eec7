"""GGUF files read when they are wanted."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property

from tg_dtype import dtypes
from tg_runtime import Device

from ...tensor import Tensor
from ..source import Source
from .digits import Digits, digits_of
from .header import Value, read_header
from .kinds import Kind


def gguf_load(
    source: str | os.PathLike[str] | bytes | memoryview, device: str | None = None
) -> tuple[dict[str, Value], dict[str, Tensor]]:
    """The metadata and the tensors of a GGUF file (or its bytes), by name.

    Only the header is read at once; a tensor is read when it is first computed with (see ``safe_load``). Quantised ones
    are float32 here, and are unpacked in the kernel that uses them: a product reads the blocks, and no float32 copy of
    a weight is made. Every quantisation that the package ``gguf`` unpacks is read. The last axis of a shape is the one
    whose elements lie side by side, as everywhere here; in the file it is the first.

    Returns:
      The metadata (booleans, numbers, strings and lists of these), and the tensors.

    Raises:
      ValueError: if the file is truncated, damaged or hostile, or a quantisation is unknown; the message says which.
      OSError: if the file cannot be read, or is no regular one.

    Example:
      >>> import os, tempfile
      >>> from tg_frontend import Tensor, nn
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = os.path.join(folder, "t.gguf")
      ...     nn.state.gguf_save({"t": Tensor([1.0, 2.0])}, path, {"general.name": "two"}, "F16")
      ...     metadata, tensors = nn.state.gguf_load(path)
      >>> metadata["general.name"], tensors["t"].tolist()
      ('two', [1.0, 2.0])
    """
    metadata, entries = read(source, device)
    return metadata, {key: entry.tensor for key, entry in entries.items()}


@dataclass(frozen=True)
class Entry:
    """A tensor of a file.

    Attributes:
      kind: how it is stored.
      shape: of the tensor.
      stored: its elements; or its blocks, of shape (..., blocks, nbytes).
    """

    kind: Kind
    shape: tuple[int, ...]
    stored: Tensor

    @cached_property
    def tensor(self) -> Tensor:
        """The tensor: blocks as an expression, which takes longer to build than to read the header for."""
        return self.stored if self.kind.decode is None else self.kind.decode(self.stored).reshape(self.shape)

    @property
    def digits(self) -> Digits | None:
        """It as whole numbers; None where it is no matrix, or its elements are no such numbers."""
        whole = self.kind.decode is not None and self.stored.ndim == 3
        return digits_of(self.kind.name, self.stored) if whole else None


def read(
    source: str | os.PathLike[str] | bytes | memoryview, device: str | None = None
) -> tuple[dict[str, Value], dict[str, Entry]]:
    """The metadata and what the tensors are stored as, by name; see :func:`gguf_load`, errors included."""
    found = Source(source, "gguf_load")
    metadata, entries = read_header(found)
    name = Device.canonicalize(device)
    return metadata, {key: _entry(found, kind, shape, begin, end, name) for key, kind, shape, begin, end in entries}


def _entry(source: Source, kind: Kind, shape: tuple[int, ...], begin: int, end: int, device: str) -> Entry:
    if kind.decode is not None and 0 in shape:
        return Entry(replace(kind, decode=None), shape, Tensor.zeros(*shape, device=device))
    stored, dtype = shape, kind.dtype
    if kind.decode is not None:
        stored, dtype = (*shape[:-1], shape[-1] // kind.elements, kind.nbytes), dtypes.uint8
    return Entry(kind, shape, Tensor(source.tensor(begin, end, dtype, stored, device), requires_grad=None))
