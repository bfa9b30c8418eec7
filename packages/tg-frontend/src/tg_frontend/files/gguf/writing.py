"""GGUF files written as a whole, in blocks of 4 or 8 bits or as float16."""

from __future__ import annotations

import os
import struct
from math import prod

from tg_dtype import dtypes
from tg_runtime.memory.drafts import replacing, target_of

from ...array.reading import host_bytes
from ...tensor import Tensor
from .header import ALIGNMENT, ARRAY, BOOL, DEFAULT_ALIGNMENT, MAGIC, STRING, Value
from .kinds import KINDS, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_VERSION = 3
_INT32, _INT64, _UINT64, _FLOAT64 = 5, 11, 10, 12
_NUMBERS = {kind.name: number for number, kind in KINDS.items()}


def _bytes(x: Tensor) -> Tensor:
    return x.cast("float16").bitcast("uint8")


def _reciprocal(x: Tensor) -> Tensor:
    return (x == 0).where(0.0, 1.0 / x)


def _q8_0(x: Tensor) -> Tensor:
    scale = x.abs().max(axis=-1, keepdim=True) / 127.0
    values = x * _reciprocal(scale)
    rounded = values.sign() * (values.abs() + 0.5).floor()  # halves away from zero
    return _bytes(scale).cat(rounded.cast("int8").bitcast("uint8"), dim=-1)


def _q4_0(x: Tensor) -> Tensor:
    furthest = x.gather(-1, x.abs().argmax(axis=-1, keepdim=True))
    scale = furthest / -8.0
    digits = (x * _reciprocal(scale) + 8.5).trunc().cast("uint8").minimum(15)
    return _bytes(scale).cat(digits[..., :16] | (digits[..., 16:] << 4), dim=-1)


_ENCODERS = {"Q4_0": _q4_0, "Q8_0": _q8_0}


def _encoded(x: Tensor, kind: Kind) -> Tensor:
    """The elements as they stand in the file."""
    if kind.name not in _ENCODERS:
        return x.cast(kind.dtype).contiguous()
    blocks = x.float().reshape(*x.shape[:-1], x._ints()[-1] // kind.elements, kind.elements).contiguous()
    return _ENCODERS[kind.name](blocks).contiguous()


def _kind(x: Tensor, quantization: str) -> Kind:
    """Vectors (biases, scales of norms) and rows that are no whole blocks stay float32 where blocks are wanted."""
    kind = KINDS[_NUMBERS[quantization]]
    if kind.decode is not None and (x.ndim < 2 or int(x.shape[-1]) % kind.elements):
        return KINDS[_NUMBERS["F32"]]
    return kind


def _text(value: str) -> bytes:
    data = value.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def _typed(key: str, value: Value) -> tuple[int, bytes]:
    """The type and the bytes of a value of metadata."""
    if isinstance(value, bool):
        return BOOL, struct.pack("<?", value)
    if isinstance(value, int):
        for kind, letter, least, most in (
            (_INT32, "i", -(1 << 31), 1 << 31), (_INT64, "q", -(1 << 63), 1 << 63), (_UINT64, "Q", 0, 1 << 64),
        ):  # fmt: skip
            if least <= value < most:
                return kind, struct.pack("<" + letter, value)
        raise ValueError(f"gguf_save: metadata {key!r}: {value} has more than 64 bits")
    if isinstance(value, float):
        return _FLOAT64, struct.pack("<d", value)
    if isinstance(value, str):
        return STRING, _text(value)
    if isinstance(value, list):
        items = [_typed(key, item) for item in value]
        kinds = {kind for kind, _ in items}
        if len(kinds) > 1:
            raise TypeError(f"gguf_save: metadata {key!r}: a list has elements of one type, here they differ")
        data = b"".join(item for _, item in items)
        return ARRAY, struct.pack("<IQ", kinds.pop() if kinds else _INT32, len(items)) + data
    raise TypeError(f"gguf_save: metadata {key!r} is a {type(value).__name__}, which the format has not")


def gguf_save(
    tensors: Mapping[str, Tensor],
    path: str | os.PathLike[str],
    metadata: Mapping[str, Value] | None = None,
    quantization: str = "Q8_0",
) -> None:
    """Writes tensors to a GGUF file, which appears whole or not at all; one that was there stays until then.

    Args:
      tensors: by name.
      path: of the file.
      metadata: booleans, numbers, strings, and lists of one of these.
      quantization: ``Q4_0``, ``Q8_0`` or ``F16``. Vectors, and rows that are no whole blocks of 32, are written as
        float32 where the first two are asked for.

    Raises:
      TypeError: if something is no tensor or no floating point one, or metadata is of a type that the format has not.
      ValueError: if the quantization is another one, a tensor has more than 4 axes, or metadata does not fit.
      OSError: if the file cannot be written.

    Example:
      >>> import os, tempfile
      >>> from tg_frontend import Tensor, nn
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = os.path.join(folder, "t.gguf")
      ...     nn.state.gguf_save({"t": Tensor.full((1, 32), 127.0)}, path)
      ...     nn.state.gguf_load(path)[1]["t"].max().item()
      127.0
    """
    target = os.fspath(path)
    target_of(target, "gguf_save")  # before anything is computed
    if quantization not in ("Q4_0", "Q8_0", "F16"):
        raise ValueError(f"gguf_save: quantization={quantization!r}: Q4_0, Q8_0 and F16 are written")
    entries = dict(metadata or {})
    if entries.pop(ALIGNMENT, DEFAULT_ALIGNMENT) != DEFAULT_ALIGNMENT:  # what it is where nothing is said
        raise ValueError(f"gguf_save: {ALIGNMENT} is {DEFAULT_ALIGNMENT}, not {(metadata or {})[ALIGNMENT]!r}")
    header = [MAGIC, struct.pack("<IQQ", _VERSION, len(tensors), len(entries))]
    for key, value in entries.items():
        kind, data = _typed(key, value)
        header += [_text(key), struct.pack("<I", kind), data]
    place, whole = 0, []
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise TypeError(f"gguf_save: {name!r}: names are strings and values tensors, not {type(tensor).__name__}")
        if not dtypes.is_float(tensor.dtype):
            raise TypeError(f"gguf_save: {name!r} is of {tensor.dtype.name}; floating point is written")
        shape = tensor._ints()
        if len(shape) > 4:
            raise ValueError(f"gguf_save: {name!r} has the shape {shape}; the format has at most 4 axes")
        form = _kind(tensor, quantization)
        whole.append(_encoded(tensor.detach(), form))
        header += [_text(name), struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], _NUMBERS[form.name], place)]
        place += prod(whole[-1]._ints()) * whole[-1].dtype.itemsize
        place += -place % DEFAULT_ALIGNMENT
    text = b"".join(header)
    if whole:
        whole[0].realize(*whole[1:])
    with replacing(target, "gguf_save") as file:
        file.write(text + bytes(-len(text) % DEFAULT_ALIGNMENT))
        for tensor in whole:
            elements = host_bytes(tensor)
            file.write(elements)
            file.write(bytes(-elements.nbytes % DEFAULT_ALIGNMENT))
