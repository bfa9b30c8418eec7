"""Tensors from the web."""

from __future__ import annotations

import os
from pathlib import Path

from ..array.array import Array
from ..host.downloads import cache_folder, download, kept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..array.base import DTypeLike


def from_url(
    cls: type[Array],
    url: str,
    gunzip: bool = False,
    *,
    sha256: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> Array:
    """The bytes of a file from the web, which is fetched once and kept.

    Args:
      url: an address of http or https.
      gunzip: unpack the file.
      sha256: the SHA-256 digest, in hexadecimal digits, that the file must have as it was sent.
      folder: where it is kept; a folder of the user's cache if not given.
      progress: show at standard error how far it is; if None, where that is a terminal.
      device: where the elements are; the file itself, as a ``DISK`` device, if not given.
      dtype: what the bytes are; uint8 if not given.
      requires_grad: see the class.

    Raises:
      ValueError: if the address or the digest is another, or the bytes are no whole number of elements.
      TypeError: if the address or the folder is none.
      OSError: if the file cannot be fetched, is cut short, or cannot be unpacked or written.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.from_url("ftp://example.org/a")
      Traceback (most recent call last):
      ...
      tg_frontend.keywords.ArgumentError: Tensor.from_url: an address of http or https is wanted, got 'ftp://example.org/a'
    """
    if not isinstance(url, str) or not isinstance(folder, (str, os.PathLike, type(None))):
        raise TypeError(f"from_url: an address and a folder are wanted, got {url!r} and {folder!r}")
    home = cache_folder("downloads") if folder is None else Path(folder)
    path = download(url, kept(url, home, gunzip), "Tensor.from_url", gunzip=gunzip, sha256=sha256, progress=progress)
    return cls(path, device, dtype, requires_grad)
