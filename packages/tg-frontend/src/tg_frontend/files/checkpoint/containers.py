"""The three forms of PyTorch's checkpoints: where in the file the pickle is, and where each storage.

Since 1.6 a checkpoint is a zip archive that is not compressed, with a folder that holds ``data.pkl`` and the storages
as ``data/KEY``. Before, it was pickles one after the other (a magic number, the version of the format, what machine it
was, the object, the keys of storages), and then each storage as a count and its elements. The oldest is a tar archive
of ``sys_info``, ``pickle``, ``tensors`` and ``storages``. Sources: PyTorch's "Serialization semantics" and the readers
``_load`` and ``_legacy_load`` of torch.serialization.
"""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

from .pickled import Refused, StorageRecord, TensorRecord, read, storage_record

MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_MAX_PICKLE = 1 << 30
"""Bytes of a pickle that is read, at the most: it holds no elements."""
_LOCAL = struct.Struct("<4s2B4HL2L2H")
"""A local file header (PKWARE, "APPNOTE.TXT", 4.3.7)."""

Places = Mapping[str, int]
"""Where the bytes of each storage begin in the file, by its key."""


def zipped(file: BinaryIO) -> tuple[Any, Places]:
    """The object of a zip archive, its tensors as records, and where storages begin.

    Raises:
      ValueError: if it is damaged, or no checkpoint.
    """
    try:
        archive = zipfile.ZipFile(file)
        entries = {entry.filename: entry for entry in archive.infolist()}
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise ValueError(f"the archive cannot be read: {error}") from None
    roots = [name[: -len("data.pkl")] for name in entries if name.endswith("/data.pkl") or name == "data.pkl"]
    if len(roots) != 1:
        raise ValueError(f"the archive has {len(roots)} data.pkl; a checkpoint has one")
    root = roots[0]
    size = file.seek(0, io.SEEK_END)

    def plain(name: str, most: int) -> tuple[int, int]:
        """Where an entry's bytes begin and end."""
        entry = entries.get(root + name)
        if entry is None:
            raise ValueError(f"the archive has no {root}{name}")
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            raise ValueError(f"{root}{name} is compressed or encrypted, which a checkpoint never is")
        file.seek(entry.header_offset)
        header = file.read(_LOCAL.size)
        if len(header) < _LOCAL.size or header[:4] != b"PK\x03\x04":
            raise ValueError(f"{root}{name} is not where the archive says")
        fields = _LOCAL.unpack(header)
        begin = entry.header_offset + _LOCAL.size + fields[-2] + fields[-1]
        if entry.file_size > most or begin + entry.file_size > size:
            raise ValueError(f"{root}{name} of {entry.file_size} bytes does not lie in a file of {size}: truncated")
        return begin, begin + entry.file_size

    if root + "byteorder" in entries:
        begin, end = plain("byteorder", 16)
        file.seek(begin)
        order = file.read(end - begin)
        if order != b"little":
            raise ValueError(f"its bytes are in the order {order!r}, not little-endian")
    places: dict[str, int] = {}
    ends: dict[str, int] = {}

    def storage(pid: Any) -> StorageRecord:
        record = storage_record(pid)
        if record.key not in ends:
            places[record.key], ends[record.key] = plain(f"data/{record.key}", size)
        there = ends[record.key] - places[record.key]
        if there < record.nbytes:
            raise Refused(f"storage {record.key} has {there} bytes, {record.nbytes} are spoken of")
        return record

    begin, end = plain("data.pkl", _MAX_PICKLE)
    file.seek(begin)
    return read(io.BytesIO(file.read(end - begin)), storage), places


def _nobody(pid: Any) -> Any:
    raise Refused(f"it keeps {pid!r:.100} elsewhere")


def one_after_the_other(file: BinaryIO) -> tuple[Any, Places]:
    """As :func:`zipped`, of pickles one after the other.

    Raises:
      ValueError: if it is damaged, or no checkpoint.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    for want, name in ((MAGIC, "magic number"), (_PROTOCOL, "version of the format")):
        found = read(file, _nobody)
        if type(found) is not int or found != want:
            raise ValueError(f"the {name} is {found!r:.50}, not {want}")
    about = read(file, _nobody)
    if isinstance(about, dict) and about.get("little_endian") is False:
        raise ValueError("its bytes are in big-endian order")
    records: dict[str, StorageRecord] = {}
    views: list[StorageRecord] = []

    def storage(pid: Any) -> StorageRecord:
        record = storage_record(pid)
        if len(pid) > 5 and pid[5] is not None:
            views.append(record)
        known = records.setdefault(record.key, record)
        if known.nbytes < record.nbytes or known.kind != record.kind:
            raise Refused(f"storage {record.key} is spoken of in two ways")
        return record

    found = read(file, storage)
    if views:
        raise ValueError("it has views of storages, as PyTorch before 0.4 wrote them")
    keys = read(file, _nobody)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise ValueError("the list of storages is damaged")
    places: dict[str, int] = {}
    for key in keys:
        if key not in records:
            raise ValueError(f"storage {key!r:.50} belongs to no tensor")
        places[key] = _counted(file, records[key], size)
    if missing := sorted(records.keys() - places.keys()):
        raise ValueError(f"storages are missing: {missing[:8]}")
    return found, places


def _counted(file: BinaryIO, record: StorageRecord, size: int) -> int:
    """Where a storage begins that stands behind its count; the file goes on behind it."""
    head = file.read(8)
    count = int.from_bytes(head, "little", signed=True)
    begin = file.tell()
    nbytes = count if record.kind.dtype is None else count * record.kind.dtype.itemsize
    if len(head) < 8 or count < record.count or begin + nbytes > size:
        raise ValueError(f"storage {record.key} of {count} elements at {begin} of {size} bytes: truncated or damaged")
    file.seek(begin + nbytes)
    return begin


def in_a_tar(file: BinaryIO) -> tuple[Any, Places]:
    """As :func:`zipped`, of a tar archive.

    Raises:
      ValueError: if it is damaged, or no checkpoint.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            members = {entry.name.removeprefix("./"): entry for entry in archive if entry.isfile()}
    except (tarfile.TarError, ValueError, OSError, EOFError) as error:
        raise ValueError(f"the archive cannot be read: {error}") from None

    def at(name: str) -> int:
        if name not in members:
            raise ValueError(f"the archive has no {name}")
        file.seek(members[name].offset_data)
        return members[name].offset_data

    records: dict[str, StorageRecord] = {}
    places: dict[str, int] = {}
    at("storages")
    for _ in range(_count(read(file, _nobody))):
        told = read(file, _nobody)
        if not isinstance(told, tuple) or len(told) != 3:
            raise ValueError("the list of storages is damaged")
        here = file.tell()
        count = int.from_bytes(file.read(8), "little", signed=True)
        file.seek(here)
        record = storage_record(("storage", told[2], str(told[0]), told[1], count))
        records[record.key], places[record.key] = record, _counted(file, record, size)
    at("storages")
    if read(file, _nobody) != len(records):
        raise ValueError("storages stand twice")
    tensors: dict[str, TensorRecord] = {}
    at("tensors")
    for _ in range(_count(read(file, _nobody))):
        told = read(file, _nobody)
        if not isinstance(told, tuple) or len(told) != 3 or str(told[1]) not in records:
            raise ValueError("the list of tensors is damaged")
        axes = struct.unpack("<i4x", file.read(8))[0]
        if not 0 <= axes <= 64:
            raise ValueError(f"a tensor of {axes} axes")
        body = file.read(16 * axes + 8)
        if len(body) < 16 * axes + 8:
            raise ValueError("the list of tensors is truncated")
        numbers = struct.unpack(f"<{2 * axes + 1}q", body)
        record = records[str(told[1])]
        if record.kind.dtype is None or min(numbers) < 0:
            raise ValueError(f"a tensor of sizes and strides {numbers}")
        made = TensorRecord(record, record.kind.dtype, numbers[-1], numbers[:axes], numbers[axes:-1])
        last = made.offset + sum((n - 1) * s for n, s in zip(made.size, made.stride, strict=True))
        if 0 not in made.size and last >= record.count:
            raise ValueError(f"a tensor of sizes {made.size} in a storage of {record.count} elements")
        tensors[str(told[0])] = made

    def tensor(pid: Any) -> Any:
        key = str(pid[1]) if isinstance(pid, tuple) and len(pid) > 1 else str(pid)
        if key not in tensors:
            raise Refused(f"it has a tensor {pid!r:.50} that the archive has not")
        return tensors[key]

    at("pickle")
    return read(file, tensor), places


def _count(found: object) -> int:
    if type(found) is not int or found < 0:
        raise ValueError(f"{found!r:.50} is no number of storages or tensors")
    return found
