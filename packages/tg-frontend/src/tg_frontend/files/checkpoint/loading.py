"""Checkpoints that PyTorch saved, read without PyTorch and without running what they name."""

from __future__ import annotations

import io
import os
from collections import OrderedDict
from typing import Any, BinaryIO

from tg_dtype import dtypes, part_dtype
from tg_runtime import Device

from ...tensor import Tensor
from ..source import Source
from .containers import Places, in_a_tar, one_after_the_other, zipped
from .pickled import TensorRecord

_ZIP = b"PK\x03\x04"
_TAR = (b"ustar", 257)


def torch_load(source: str | os.PathLike[str] | bytes | memoryview | BinaryIO, device: str | None = None) -> Any:
    """What ``torch.save`` wrote: tensors in dicts, lists and tuples, by a reader that runs none of the file's code.

    All three forms of such files are read: zip archives (since PyTorch 1.6), pickles one after the other, and tar
    archives. Tensors are read when they are first computed with, until when the file stays open; those that share a
    storage there are each a copy here.

    Args:
      source: the file, or its bytes; or a file that is open for reading bytes, of which all that follows is read.
      device: where the tensors go.

    Returns:
      The object that was saved.

    Raises:
      ValueError: if the file is truncated, damaged, or names anything else than tensors are made with; the message
        says what.
      OSError: if the file cannot be read, or is no regular one.

    Example:
      >>> from tg_frontend.nn import state
      >>> state.torch_load(b"not a checkpoint")
      Traceback (most recent call last):
      ...
      ValueError: torch_load: the pickle cannot be read: UnpicklingError: invalid load key, 'n'.
    """
    if hasattr(source, "read"):
        source = source.read()
    found = Source(source, "torch_load")
    try:
        made, places = _contents(found, source)
        return _Maker(found, places, Device.canonicalize(device)).made(made)
    except ValueError as error:
        raise ValueError(f"{found.what}: {error}") from None


def _contents(found: Source, source: str | os.PathLike[str] | bytes | memoryview) -> tuple[Any, Places]:
    text, at = _TAR
    first = found.read(0, min(4, found.nbytes))
    tar = found.nbytes > at + len(text) and found.read(at, at + len(text)) == text
    form = zipped if first == _ZIP else in_a_tar if tar else one_after_the_other
    if found.bytes is not None:
        return form(io.BytesIO(found.bytes))
    assert isinstance(source, (str, os.PathLike))
    with open(source, "rb") as file:
        if os.fstat(file.fileno()).st_size != found.nbytes:
            raise ValueError("the file changed while it was read")
        return form(file)


class _Maker:
    """Puts tensors in the place of records."""

    def __init__(self, source: Source, places: Places, device: str) -> None:
        self.source, self.places, self.device = source, places, device
        self.done: dict[int, Any] = {}
        self.kept: list[object] = []

    def made(self, found: Any) -> Any:
        """An object with tensors for records; what is there twice is one thing here, too."""
        if id(found) in self.done:
            return self.done[id(found)]
        self.kept.append(found)  # whose number must not be that of another thing meanwhile
        if isinstance(found, TensorRecord):
            out: Any = self.tensor(found)
        elif type(found) in (dict, OrderedDict):
            out = self.done[id(found)] = {}
            for key, value in found.items():
                out[key] = self.made(value)
        elif type(found) is list:
            out = self.done[id(found)] = []
            out.extend(map(self.made, found))
        elif type(found) is tuple:
            out = tuple(map(self.made, found))
        elif found is None or type(found) in (int, float, bool, str, bytes, bytearray, set, complex):
            out = found
        else:
            raise ValueError(f"it holds a {type(found).__name__} where a tensor, container or number is wanted")
        self.done[id(found)] = out
        return out

    def tensor(self, record: TensorRecord) -> Tensor:
        """A tensor of what a record says."""
        dtype, item = record.dtype, record.dtype.itemsize
        if 0 in record.size:
            return Tensor.zeros(*record.size, dtype=dtype, device=self.device)
        begin = self.places[record.storage.key]
        last = sum((n - 1) * step for n, step in zip(record.size, record.stride, strict=True))
        start = begin + record.offset * item
        pairs = dtype.kind == "complex"
        part, whole = (part_dtype(dtype), (last + 1, 2)) if pairs else (dtype, (last + 1,))
        flat = Tensor._wrap(self.source.tensor(start, start + (last + 1) * item, part, whole, self.device))
        flat = flat.view_as_complex() if pairs else flat
        order = sorted(range(len(record.size)), key=lambda axis: (-record.stride[axis], record.size[axis] == 1))
        dense, step = True, 1
        for axis in reversed(order):
            if record.size[axis] > 1:
                dense &= record.stride[axis] == step
                step *= record.size[axis]
        if dense:
            out = flat.reshape(tuple(record.size[axis] for axis in order))
            out = out.permute(*(order.index(axis) for axis in range(len(order)))) if len(order) > 1 else out
        else:
            out = flat.as_strided(record.size, record.stride)
        out = out.conj() if "conj" in record.marks else out
        out = -out if "neg" in record.marks else out
        learns = dtype.kind in ("float", "complex") and dtype not in (dtypes.fp8e4m3, dtypes.fp8e4m3fnuz)
        if record.requires_grad and learns:
            out = out.detach()
            out.requires_grad = True
        return out
