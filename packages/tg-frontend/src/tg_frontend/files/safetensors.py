"""Files of tensors in the safetensors format, read when they are wanted and written as a whole.

A file is 8 bytes of little-endian header length, a JSON header, and the tensors' bytes. The header maps names to
``{"dtype", "shape", "data_offsets": [begin, end]}``, and ``__metadata__`` to strings. Source: the format's README,
version 0.4. Everything is checked before any tensor is made: a hostile file gives an error, not memory.
"""

from __future__ import annotations

import os

from tg_dtype import DType, interop, part_dtype
from tg_runtime import Device
from tg_runtime.memory.drafts import replacing, target_of
from tg_shape import prod, sint

from ..array.reading import host_bytes
from ..tensor import Tensor
from .shards import shards_of
from .source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

Entry = tuple[str, DType, tuple[int, ...], int, int]
"""Name, dtype, shape, and where the bytes begin and end."""

MAX_HEADER = 100_000_000
_MAX_AXES = 64
_METADATA = "__metadata__"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise ValueError(f"the key {key!r} stands twice")
        out[key] = value
    return out


def _natural(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _header(source: Source) -> tuple[int, dict[str, Any]]:
    """Where the tensors' bytes begin, and the parsed header."""
    what = source.what
    if source.nbytes < 8:
        raise ValueError(f"{what}: {source.nbytes} bytes are too few for a header length")
    length = int.from_bytes(source.read(0, 8), "little")
    if length > MAX_HEADER:
        raise ValueError(f"{what}: a header of {length} bytes; at most {MAX_HEADER} are read")
    if 8 + length > source.nbytes:
        raise ValueError(f"{what}: a header of {length} bytes in a file of {source.nbytes}: the file is truncated")
    from json import loads

    try:
        header = loads(source.read(8, 8 + length).decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what}: the header cannot be read: {error}") from None
    if not isinstance(header, dict):
        raise ValueError(f"{what}: the header is a JSON {type(header).__name__}, not an object")
    return 8 + length, header


def _entry(name: str, row: Any, size: int, what: str) -> Entry:
    label = f"{what}: tensor {name!r}"
    if not isinstance(row, dict) or not {"dtype", "shape", "data_offsets"} <= row.keys():
        raise ValueError(f"{label}: dtype, shape and data_offsets are wanted, got {row!r:.200}")
    shape, offsets = row["shape"], row["data_offsets"]
    try:
        dtype = interop.from_safetensors_name(row["dtype"])
    except TypeError:
        raise ValueError(f"{label}: the dtype {row['dtype']!r:.50} is unknown") from None
    if not isinstance(shape, list) or len(shape) > _MAX_AXES or not all(_natural(dim) for dim in shape):
        raise ValueError(f"{label}: {shape!r:.200} is no shape")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_natural(at) for at in offsets):
        raise ValueError(f"{label}: data_offsets {offsets!r:.200} are not [begin, end]")
    begin, end = offsets
    if begin > end or end > size:
        raise ValueError(f"{label}: data_offsets {offsets} lie outside of {size} bytes of data: truncated or damaged")
    wanted = prod(shape) * dtype.itemsize
    if wanted != end - begin:
        raise ValueError(f"{label}: {tuple(shape)} of {dtype.name} has {wanted} bytes, data_offsets {end - begin}")
    return name, dtype, tuple(shape), begin, end


def _entries(header: dict[str, Any], size: int, what: str) -> list[Entry]:
    metadata = header.get(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError(f"{what}: {_METADATA} must map strings to strings")
    entries = [_entry(name, row, size, what) for name, row in header.items() if name != _METADATA]
    place, last = 0, "the beginning of the data"
    for name, _, _, begin, end in sorted(entries, key=lambda entry: entry[3:]):
        if begin != place:
            problem = "overlaps" if begin < place else "leaves a hole after"
            raise ValueError(f"{what}: tensor {name!r} at {begin} to {end} {problem} {last}, which ends at {place}")
        place, last = end, f"tensor {name!r}"
    if place != size:
        raise ValueError(f"{what}: the tensors end at {place} of {size} bytes of data")
    return entries


def safe_load_metadata(source: str | os.PathLike[str] | bytes | memoryview) -> tuple[int, dict[str, Any]]:
    """Where the tensors' bytes begin in a file (or its bytes), and its header, checked.

    Raises:
      ValueError: if the file is truncated, damaged or hostile; the message says what is wrong.
      OSError: if the file cannot be read, or is no regular one.

    Example:
      >>> import os, tempfile
      >>> from tg_frontend import Tensor, nn
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = os.path.join(folder, "t.safetensors")
      ...     nn.state.safe_save({"t": Tensor([1, 2])}, path)
      ...     start, header = nn.state.safe_load_metadata(path)
      >>> header["t"]["shape"]
      [2]
    """
    found = Source(source, "safe_load")
    begin, header = _header(found)
    _entries(header, found.nbytes - begin, found.what)
    return begin, header


def safe_load(
    source: str | os.PathLike[str] | bytes | memoryview, device: str | None = None
) -> dict[str, Tensor]:
    """The tensors of a safetensors file (or its bytes), or of all shards of a model, by name.

    A model in shards is given by its index (``*.index.json``), or by a folder with one index or one safetensors file.

    Only the header is read at once. A tensor is read when it is first computed with, into memory of its own; until then
    the file stays open, so that it may be replaced (as ``safe_save`` does) or removed. One that was written to in place
    meanwhile, or cut, is an error then (``DeviceError``): never other weights, and never a signal.

    Raises:
      ValueError: if the file is truncated, damaged or hostile, or index and shards disagree; the message says how.
      OSError: if the file cannot be read, or is no regular one, or a shard is missing.

    Example:
      >>> import os, tempfile
      >>> from tg_frontend import Tensor, nn
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = os.path.join(folder, "t.safetensors")
      ...     nn.state.safe_save({"t": Tensor([1, 2])}, path)
      ...     loaded = nn.state.safe_load(path)
      >>> loaded["t"]  # read now, of a file that need not be at its path any more
      Tensor([1, 2])
    """
    shards = None if isinstance(source, (bytes, bytearray, memoryview)) else shards_of(os.fspath(source))
    if shards is None:
        return _load(source, device)
    whole: dict[str, Tensor] = {}
    for path, names in shards.items():
        part = _load(path, device)
        if names and names != part.keys():
            odd = sorted(names ^ part.keys())
            raise ValueError(f"safe_load {path}: the index and the shard disagree about the tensors {odd[:8]}")
        whole |= part
    return whole


def _load(source: str | os.PathLike[str] | bytes | memoryview, device: str | None) -> dict[str, Tensor]:
    """The tensors of one file, or of its bytes."""
    found = Source(source, "safe_load")
    begin, header = _header(found)
    name = Device.canonicalize(device)
    out = {}
    for key, dtype, shape, start, stop in _entries(header, found.nbytes - begin, found.what):
        pairs = dtype.kind == "complex"
        part, whole = (part_dtype(dtype), (*shape, 2)) if pairs else (dtype, shape)
        out[key] = Tensor(found.tensor(begin + start, begin + stop, part, whole, name), requires_grad=None)
        if pairs:
            out[key] = out[key].view_as_complex()
    return out


def _flat(tensors: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """What stands under each name; of dicts and lists the tensors in them."""
    for name, value in tensors.items():
        if not isinstance(value, (dict, list, tuple)):
            yield name, value
            continue
        inner = value if isinstance(value, dict) else dict(enumerate(value))
        for key, part in _flat(inner):
            if isinstance(part, Tensor):
                yield f"{name}.{key}", part


def safe_save(
    tensors: Mapping[str, Any], path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes tensors to a safetensors file, which appears whole or not at all; one that was there stays until then.

    Tensors in dicts and lists under a name, as an optimiser's state has them, get dotted names; what is no tensor in
    these is left out.

    It keeps the permissions of the file that was there. A symbolic link stays one: what it leads to is replaced. Of
    several who save to one path at once, one wins.

    Raises:
      TypeError: if something is no tensor, a name or metadata is no string, or a dtype has no name in the format.
      ValueError: if a tensor is named ``__metadata__``.
      OSError: if the file cannot be written (no space is left, for one), or is a directory, a FIFO or a device.

    Example:
      >>> import os, tempfile
      >>> from tg_frontend import Tensor, nn
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = os.path.join(folder, "t.safetensors")
      ...     nn.state.safe_save({"t": Tensor([1, 2])}, path)
      ...     nn.state.safe_load(path)["t"].tolist()
      [1, 2]
    """
    target = os.fspath(path)
    target_of(target, "safe_save")  # before anything is computed
    tensors = dict(_flat(tensors))
    header: dict[str, Any] = {}
    if metadata is not None:
        if not all(isinstance(key, str) and isinstance(value, str) for key, value in metadata.items()):
            raise TypeError("safe_save: metadata maps strings to strings")
        header[_METADATA] = dict(metadata)
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise TypeError(f"safe_save: {name!r}: names are strings and values tensors, not {type(tensor).__name__}")
        if name == _METADATA:
            raise ValueError(f"safe_save: no tensor can be named {_METADATA}")
        if interop.to_safetensors_name(tensor.dtype) is None:
            raise TypeError(f"safe_save: {name!r}: {tensor.dtype.name} has no name in the format")
    # wide elements first, so that each begins at a multiple of its size
    order = sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    place: sint = 0
    for name, tensor in order:
        shape, kind = list(tensor._ints()), interop.to_safetensors_name(tensor.dtype)
        end = place + prod(shape) * tensor.dtype.itemsize
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [place, end]}
        place = end
    from json import dumps

    text = dumps(header, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    # complex numbers lie in the file as pairs
    pairs = [tensor.view_as_real() if tensor.is_complex() else tensor for _, tensor in order]
    whole = [tensor.detach().contiguous() for tensor in pairs]
    if whole:
        whole[0].realize(*whole[1:])
    with replacing(target, "safe_save") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for tensor in whole:
            file.write(host_bytes(tensor))
