"""Well-known data sets: from files, and from where they are published if there is a network."""

from __future__ import annotations

import gzip
import os
import pickle
import tarfile
from pathlib import Path

from ..host.downloads import cache_folder, download
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Four = tuple[Tensor, Tensor, Tensor, Tensor]

__all__ = ["cifar", "digits", "mnist"]

_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_CIFAR = "https://www.cs.toronto.edu/~kriz/"
_PARTS = tuple(f"{part}-{kind}.gz" for part in ("train", "t10k") for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"))
_MAGIC = {2049: 1, 2051: 3}  # the first number of a file of labels, and of one of images: how many axes it has


def folder_of(root: str | os.PathLike[str] | None, name: str) -> Path:
    """Where the files of a data set are: ``root``, or a folder of that name in the user's cache."""
    return cache_folder("datasets") / name if root is None else Path(root)


def _file(folder: Path, name: str, url: str, fetch: bool, what: str) -> Path:
    """A file of a data set: there, uncompressed perhaps, or fetched."""
    for known in (folder / name, folder / name.removesuffix(".gz")):
        if known.exists():
            return known
    why = "it is not to be fetched"
    if fetch:
        try:
            return download(url + name, folder / name, what)
        except OSError as error:
            why = f"it could not be fetched: {error}"
    raise FileNotFoundError(f"{what}: there is no {folder / name}, and {why}. Put the file there: {url}{name}")


def _idx(path: Path, what: str) -> npt.NDArray[np.uint8]:
    import numpy as np

    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    axes = _MAGIC.get(int.from_bytes(data[:4], "big"))
    shape = () if axes is None else tuple(int(size) for size in np.frombuffer(data, ">u4", axes, 4))
    if axes is None or len(data) != 4 + 4 * axes + int(np.prod(shape)):
        raise ValueError(f"{what}: {path} is no file of images or labels in the format IDX, or is cut")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape).copy()


def mnist(
    device: str | None = None, fashion: bool = False, root: str | os.PathLike[str] | None = None, download: bool = True
) -> Four:
    """Handwritten digits (LeCun, Cortes and Burges), or pictures of clothes (Xiao et al., 2017).

    Args:
      device: where the tensors are.
      fashion: the clothes.
      root: the folder with the four files, compressed or not; a folder of the user's cache if not given.
      download: fetch what is missing.

    Returns:
      Images to learn from, shape (60000, 1, 28, 28), uint8, and their labels, shape (60000,), uint8; then 10,000 of
      each to test on.

    Raises:
      FileNotFoundError: if a file is missing, and cannot be fetched; it says from where, and where to put it.
      ValueError: if a file is another.

    Example:
      >>> from tg_frontend import nn
      >>> try:
      ...     images, labels, *test = nn.datasets.mnist(root="/nowhere", download=False)
      ... except FileNotFoundError as error:
      ...     print(str(error)[:27])
      mnist: there is no /nowhere
    """
    folder, url = folder_of(root, "fashion-mnist" if fashion else "mnist"), _FASHION if fashion else _MNIST
    arrays = [_idx(_file(folder, name, url, download, "mnist"), "mnist") for name in _PARTS]
    a, b, c, d = (
        Tensor(one.reshape(-1, 1, *one.shape[1:]) if one.ndim == 3 else one, device=device) for one in arrays
    )
    return a, b, c, d


class _Plain(pickle.Unpickler):
    """Reads dicts of arrays, and runs nothing that is in the file."""

    _KNOWN = frozenset((
        ("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct"), ("numpy", "ndarray"),
        ("numpy", "dtype"), ("_codecs", "encode"),
    ))  # fmt: skip

    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in self._KNOWN:
            raise pickle.UnpicklingError(f"{module}.{name} is nothing that this data set has")
        return super().find_class(module, name)


def cifar(device: str | None = None, root: str | os.PathLike[str] | None = None, download: bool = True) -> Four:
    """Small colour pictures of ten kinds, CIFAR-10 (Krizhevsky, 2009).

    Args:
      device: where the tensors are.
      root: the folder with ``cifar-10-python.tar.gz``; a folder of the user's cache if not given.
      download: fetch what is missing.

    Returns:
      Images to learn from, shape (50000, 3, 32, 32), uint8, and their labels, shape (50000,), uint8; then 10,000 of
      each to test on.

    Raises:
      FileNotFoundError: if the file is missing, and cannot be fetched; it says from where, and where to put it.
      ValueError: if the file is another.

    Example:
      >>> from tg_frontend import nn
      >>> try:
      ...     images, labels, *test = nn.datasets.cifar(root="/nowhere", download=False)
      ... except FileNotFoundError as error:
      ...     print(str(error)[:27])
      cifar: there is no /nowhere
    """
    import numpy as np

    path = _file(folder_of(root, "cifar-10"), "cifar-10-python.tar.gz", _CIFAR, download, "cifar")
    found: dict[str, tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]] = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = Path(member.name).name
                stream = archive.extractfile(member) if "_batch" in name else None
                if stream is not None:
                    batch = _Plain(stream, encoding="bytes").load()
                    images = np.asarray(batch[b"data"], np.uint8).reshape(-1, 3, 32, 32)
                    found[name] = images, np.asarray(batch[b"labels"], np.uint8)
        names = sorted(name for name in found if name.startswith("data_batch"))
        train = [np.concatenate([found[name][part] for name in names]) for part in (0, 1)]
        test = found["test_batch"]
    except (tarfile.TarError, pickle.UnpicklingError, KeyError, ValueError) as error:
        raise ValueError(f"cifar: {path} is not the archive of CIFAR-10 for Python: {error}") from error
    a, b, c, d = (Tensor(one, device=device) for one in (*train, *test))
    return a, b, c, d


def digits(device: str | None = None, held_out: int = 360, seed: int = 0) -> Four:
    """The 1797 handwritten digits of 8 x 8 pixels that come with scikit-learn: nothing is fetched.

    Args:
      device: where the tensors are.
      held_out: how many are to test on.
      seed: of the order.

    Returns:
      Images to learn from, shape (1797 - held_out, 1, 8, 8), float32 from 0 to 1, and their labels, int32; then those
      to test on.

    Raises:
      ImportError: if scikit-learn is not installed.
      ValueError: if fewer or more are held out than there are.

    Example:
      >>> from tg_frontend import nn
      >>> images, labels, *test = nn.datasets.digits()
      >>> images.shape, labels.shape, test[0].shape
      ((1437, 1, 8, 8), (1437,), (360, 1, 8, 8))
    """
    import numpy as np

    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError("digits: the images come with scikit-learn: pip install scikit-learn") from error
    images, labels = load_digits(return_X_y=True)
    if not 0 < held_out < len(images):
        raise ValueError(f"digits: {held_out} of {len(images)} held out")
    order = np.random.default_rng(seed).permutation(len(images))
    pictures = (images[order].reshape(-1, 1, 8, 8) / 16).astype(np.float32)
    kinds = labels[order].astype(np.int32)
    a, b = Tensor(pictures[held_out:], device=device), Tensor(kinds[held_out:], device=device)
    return a, b, Tensor(pictures[:held_out], device=device), Tensor(kinds[:held_out], device=device)
