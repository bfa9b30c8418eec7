"""Which files hold the tensors of a model that is stored in several safetensors files.

Such a model has an index, ``*.index.json``, whose ``weight_map`` says for each tensor the file beside it that holds it.
"""

from __future__ import annotations

import os

_INDEX = ".index.json"
_MAX_INDEX = 100_000_000
"""Bytes of an index; the largest published ones have a few megabytes."""


def shards_of(path: str) -> dict[str, set[str]] | None:
    """The names of the tensors in each shard, by the shard's path; None if the path is of neither index nor folder.

    Raises:
      ValueError: if the index is damaged, or names a file outside of its folder.
      FileNotFoundError: if a shard is missing, or a folder has no safetensors file.
    """
    index = _in_folder(path) if os.path.isdir(path) else path
    if not index.endswith(_INDEX):
        return None if index == path else {index: set()}
    folder, out = os.path.dirname(index), dict[str, set[str]]()
    for tensor, file in _weight_map(index).items():
        if not isinstance(file, str) or file in ("", ".", "..") or any(mark in file for mark in "/\\\0"):
            raise ValueError(f"safe_load {index}: tensor {tensor!r}: {file!r:.200} is no name of a file beside it")
        out.setdefault(os.path.join(folder, file), set()).add(tensor)
    missing = [os.path.basename(shard) for shard in out if not os.path.exists(shard)]
    if missing:
        raise FileNotFoundError(f"safe_load {index}: {len(missing)} of {len(out)} shards missing: {missing[:8]}")
    return out


def _in_folder(folder: str) -> str:
    """The index in a folder, or the only safetensors file."""
    names = sorted(os.listdir(folder))
    indices = [name for name in names if name.endswith(f".safetensors{_INDEX}")]
    found = indices or [name for name in names if name.endswith(".safetensors")]
    if not found:
        raise FileNotFoundError(f"safe_load {folder}: no safetensors file in the folder")
    if len(found) > 1:
        raise ValueError(f"safe_load {folder}: several candidates, name one: {found[:8]}")
    return os.path.join(folder, found[0])


def _weight_map(index: str) -> dict[str, object]:
    from json import loads

    if (nbytes := os.path.getsize(index)) > _MAX_INDEX:
        raise ValueError(f"safe_load {index}: an index of {nbytes} bytes; at most {_MAX_INDEX} are read")
    with open(index, "rb") as file:
        try:
            parsed = loads(file.read().decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"safe_load {index}: the index cannot be read: {error}") from None
    found = parsed.get("weight_map") if isinstance(parsed, dict) else None
    if not isinstance(found, dict):
        raise ValueError(f"safe_load {index}: the index has no weight_map")
    return found
