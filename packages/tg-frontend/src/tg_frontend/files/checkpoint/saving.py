"""Checkpoints that PyTorch reads: a zip archive of a pickle, and of the bytes of each tensor.

The pickle is of protocol 2 (PEP 307), in the few opcodes that PyTorch's reader of weights alone knows, too. The form is
that of :mod:`tg_frontend.files.checkpoint.containers`.
"""

from __future__ import annotations

import os
import struct
from collections import OrderedDict
from typing import Any, BinaryIO

from tg_dtype import DType
from tg_runtime.memory.drafts import replacing, target_of

from ...array.reading import host_bytes
from ...tensor import Tensor
from .pickled import DTYPES, KINDS

_ROOT = "archive"
_ALIGNED = 64
"""Bytes of which storages begin at a multiple, as PyTorch writes them."""
_CLASSES: dict[DType, str] = {dtype: name for name, dtype in reversed(KINDS.items())}
_NAMES: dict[DType, str] = {dtype: name for name, dtype in reversed(DTYPES.items())}


def torch_save(obj: Any, path: str | os.PathLike[str] | BinaryIO) -> None:
    """Writes what ``torch.load`` reads, and ``torch_load``: tensors in dicts, lists and tuples, numbers and strings.

    A file appears whole or not at all, as of ``safe_save``. A tensor that is there twice is written once; two that
    share memory are two.

    Args:
      obj: for example ``{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}``.
      path: where to; or a file that is open for writing bytes.

    Raises:
      TypeError: if something is neither a tensor, nor a container, number or string, or PyTorch lacks the dtype.
      ValueError: if containers are nested too deeply.
      OSError: if the file cannot be written, or is a directory, a FIFO or a device.

    Example:
      >>> import io
      >>> from tg_frontend import Tensor, nn
      >>> file = io.BytesIO()
      >>> nn.state.torch_save({"weight": Tensor([1.0, 2.0]), "epoch": 3}, file)
      >>> nn.state.torch_load(file.getvalue())
      {'weight': Tensor([1., 2.]), 'epoch': 3}
    """
    if isinstance(path, (str, os.PathLike)):
        target_of(os.fspath(path), "torch_save")  # before anything is computed
    pickled = _Pickle()
    try:
        pickled.add(obj, "")
    except RecursionError:
        raise ValueError("torch_save: containers are nested too deeply") from None
    pickled.out += b"."
    # complex numbers lie in the file as pairs
    whole = [(x.view_as_real() if x.is_complex() else x).detach().contiguous() for x in pickled.tensors]
    if whole:
        whole[0].realize(*whole[1:])
    if isinstance(path, (str, os.PathLike)):
        with replacing(os.fspath(path), "torch_save") as file:
            _write(file, pickled.out, whole)
    else:
        _write(path, pickled.out, whole)


def _write(file: BinaryIO, pickled: bytearray, tensors: list[Tensor]) -> None:
    import zipfile

    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:

        def add(name: str, content: bytes | bytearray | memoryview) -> None:
            entry = zipfile.ZipInfo(f"{_ROOT}/{name}")
            entry.file_size = len(content)
            # a field of padding (PKWARE, "APPNOTE.TXT", 4.5) puts what follows at a multiple
            begin = archive.start_dir + 30 + len(entry.filename) + 4
            padding = -begin % _ALIGNED
            entry.extra = struct.pack("<2sH", b"FB", padding) + bytes(padding)
            with archive.open(entry, "w") as out:
                out.write(content)

        add("data.pkl", pickled)
        add("byteorder", b"little")
        for key, tensor in enumerate(tensors):
            add(f"data/{key}", host_bytes(tensor).cast("B"))
        add("version", b"3\n")


class _Pickle:
    """The opcodes of a pickle whose tensors' bytes stand elsewhere.

    Attributes:
      out: the opcodes.
      tensors: each tensor once; the key of its storage is its number.
    """

    def __init__(self) -> None:
        self.out = bytearray(b"\x80\x02")
        self.tensors: list[Tensor] = []
        self._memo: dict[int, int] = {}
        self._kept: list[object] = []  # whose number must not be that of another thing meanwhile

    def add(self, x: Any, place: str) -> None:
        """Appends what makes an object.

        Args:
          x: the object.
          place: where it stands, for messages.
        """
        known = self._memo.get(id(x))
        if known is not None:
            self.out += b"j" + struct.pack("<I", known)
        elif x is None or x is True or x is False:
            self.out += {None: b"N", True: b"\x88", False: b"\x89"}[x]
        elif type(x) is int:
            self._integer(x, place)
        elif type(x) is float:
            self.out += b"G" + struct.pack(">d", x)
        elif type(x) is str:
            self._text(x)
        elif isinstance(x, Tensor):
            self._tensor(x, place)
        elif type(x) in (dict, OrderedDict):
            self.out += b"}" if type(x) is dict else b"ccollections\nOrderedDict\n)R"
            self._remember(x)
            self.out += b"("
            for key, value in x.items():
                self.add(key, f"{place}[{key!r:.50}]")
                self.add(value, f"{place}[{key!r:.50}]")
            self.out += b"u"
        elif type(x) is list:
            self.out += b"]"
            self._remember(x)
            self.out += b"("
            self._all(x, place)
            self.out += b"e"
        elif type(x) is tuple:
            self.out += b"("
            self._all(x, place)
            self.out += b"t"
            self._remember(x)
        else:
            what = f"torch_save: {place or 'it'} is of {type(x).__module__}.{type(x).__name__}"
            raise TypeError(f"{what}; tensors, dicts, lists, tuples, numbers and strings are written")

    def _all(self, items: Any, place: str) -> None:
        for position, item in enumerate(items):
            self.add(item, f"{place}[{position}]")

    def _remember(self, x: object) -> None:
        """Keeps what was made last, for when it is there again."""
        self._memo[id(x)] = number = len(self._kept)  # a tuple that holds itself is made twice
        self._kept.append(x)
        self.out += b"r" + struct.pack("<I", number)

    def _integer(self, x: int, place: str) -> None:
        if -(1 << 31) <= x < 1 << 31:
            self.out += b"J" + struct.pack("<i", x)
            return
        body = x.to_bytes(x.bit_length() // 8 + 1, "little", signed=True)
        if len(body) > 255:
            raise TypeError(f"torch_save: {place or 'it'} is an integer of {x.bit_length()} bits")
        self.out += b"\x8a" + bytes([len(body)]) + body

    def _text(self, x: str) -> None:
        body = x.encode("utf-8", "surrogatepass")
        self.out += b"X" + struct.pack("<I", len(body)) + body

    def _name(self, module: str, name: str) -> None:
        self.out += f"c{module}\n{name}\n".encode()

    def _tensor(self, x: Tensor, place: str) -> None:
        shape, dtype = x._ints(), x.dtype
        kind = _CLASSES.get(dtype)
        if kind is None and dtype not in _NAMES:
            raise TypeError(f"torch_save: {place or 'it'} is of {dtype.name}, which PyTorch lacks")
        count = 1
        for n in shape:
            count *= n
        self._name("torch._utils", "_rebuild_tensor_v2" if kind else "_rebuild_tensor_v3")
        self.out += b"(("
        self._text("storage")
        self._name(*(("torch", f"{kind}Storage") if kind else ("torch.storage", "UntypedStorage")))
        self._text(str(len(self.tensors)))
        self._text("cpu")
        self._integer(count if kind else count * dtype.itemsize, place)
        self.out += b"tQ"
        strides, step = list[int](), 1
        for n in reversed(shape):
            strides.append(step)
            step *= max(n, 1)
        for item in (0, tuple(shape), tuple(reversed(strides)), bool(x._wish)):
            self.add(item, place)
        self._name("collections", "OrderedDict")
        self.out += b")R"
        if not kind:
            self._name("torch", _NAMES[dtype])
        self.out += b"tR"
        self.tensors.append(x)
        self._remember(x)
