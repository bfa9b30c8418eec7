"""DLPack in both directions: every dtype and layout, with each of the arguments, beside what numpy does."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes, interop
from tg_frontend import Tensor
from tg_frontend.interchange import dlpack
from tg_frontend.nn import Linear
from tg_lazy import Context

SHARED = [d.name for d in dtypes.all if interop.to_numpy_name(d)]
LAYOUTS = {
    "whole": lambda a: a, "turned": lambda a: a.T, "sliced": lambda a: a[1:, ::2], "backward": lambda a: a[::-1, ::-2],
    "one number": lambda a: a[1, 2], "empty": lambda a: a[:, 3:3], "a row": lambda a: a[2],
}  # fmt: skip
PLACES: list[Any] = [None, (1, 0), (2, 0), (1, 3), (8, 0)]


@pytest.fixture(autouse=True)
def _on_numpy() -> Iterator[None]:
    with Context(DEV="NUMPY"):
        yield


def _elements(name: str) -> np.ndarray:
    return (np.arange(35).reshape(5, 7) % 3).astype(name)


class _Capsule:
    """Somebody who gives one capsule."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SHARED)
def test_arguments(name: str, layout: str) -> None:
    """With every combination of arguments the elements are right, shared or copied as is asked, or refused."""
    whole = Tensor(_elements(name)).realize()
    want = np.asarray(LAYOUTS[layout](_elements(name)))
    for version in (None, (0, 8), (1, 0), (1, 1), (2, 0)):
        for copy in (None, True, False):
            for place in PLACES:
                part = LAYOUTS[layout](whole) if layout != "turned" else whole.permute(1, 0)
                asked = {"max_version": version, "copy": copy, "dl_device": place}
                pairs = want.dtype.kind == "c"
                if place not in (None, (1, 0)) or (pairs and copy is False):
                    with pytest.raises(BufferError):
                        part.__dlpack__(**asked)
                    continue
                got = np.from_dlpack(_Capsule(part.__dlpack__(**asked)))
                assert got.dtype == want.dtype and got.shape == want.shape, asked
                np.testing.assert_array_equal(got, want)
                if got.size and not pairs:
                    assert np.shares_memory(got, np.asarray(whole)) is not bool(copy), asked


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SHARED)
def test_arrays_are_taken(name: str, layout: str) -> None:
    theirs = LAYOUTS[layout](_elements(name))
    theirs = np.asarray(theirs)
    for readonly in (False, True):
        theirs.flags.writeable = not readonly
        for copy in (None, True, False):
            t = Tensor.from_dlpack(theirs, copy=copy)
            assert t.dtype.name == name and t.shape == theirs.shape
            np.testing.assert_array_equal(t.numpy(), theirs)
            before = theirs.copy()
            t.assign(t.full_like(1)).realize()
            np.testing.assert_array_equal(t.numpy(), np.ones_like(theirs))
            if readonly or copy:
                np.testing.assert_array_equal(theirs, before)
            elif name[:7] != "complex":
                np.testing.assert_array_equal(theirs, np.ones_like(theirs))
            if not readonly:
                theirs[...] = before


@pytest.mark.parametrize("version", [None, (1, 1)])
@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_every_dtype_comes_back(dtype: Any, version: Any) -> None:
    """Those that numpy has not, too."""
    x = Tensor([[0, 1], [1, 0], [1, 1]], dtype=dtype).realize()
    for part in (x, x[1], x.T, x[0, 0], x[3:]):
        back = Tensor.from_dlpack(part.__dlpack__(max_version=version))
        assert back.dtype is dtype and back.shape == part.shape and back.tolist() == part.tolist()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("copy", [None, True, False])
def test_what_requires_a_gradient_is_refused(dtype: str, copy: bool | None) -> None:
    x = Tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
    layer = Linear(2, 3)
    for wanting in (x, x * 2, x[0], layer.weight, layer(Tensor([1.0, 2.0]))):
        for call in (lambda t: t.__dlpack__(copy=copy), np.from_dlpack, lambda t: t.__buffer__(0)):
            with pytest.raises(BufferError, match=r"requires a gradient .* detach\(\)"):
                call(wanting)
        for call in (np.asarray, np.array, lambda t: t.__array__(copy=copy)):
            with pytest.raises(RuntimeError, match=r"requires a gradient .* detach\(\)"):
                call(wanting)
        assert np.from_dlpack(wanting.detach()).tolist() == wanting.numpy().tolist() == wanting.tolist()
        with Tensor.no_grad():
            assert np.asarray(wanting).tolist() == np.from_dlpack(wanting).tolist()


def test_streams_of_the_host() -> None:
    for stream in (0, 1, -1, 12345):
        with pytest.raises(BufferError, match="has none"):
            Tensor([1]).__dlpack__(stream=stream)


def test_capsules_that_hold_no_tensor() -> None:
    mine = ctypes.create_string_buffer(8)
    odd = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    with pytest.raises(
        BufferError, match="a capsule of the name 'arrow_array' holds no tensor; that of one is 'dltensor' or"
    ):
        Tensor.from_dlpack(odd(ctypes.addressof(mine), b"arrow_array", None))
    with pytest.raises(BufferError, match="a capsule of no name holds no tensor"):
        Tensor.from_dlpack(odd(ctypes.addressof(mine), None, None))
    for version in (None, (1, 1)):
        capsule = Tensor([1, 2]).__dlpack__(max_version=version)
        Tensor.from_dlpack(capsule)
        with pytest.raises(BufferError, match="was taken before; call __dlpack__"):
            Tensor.from_dlpack(capsule)


def test_read_only_memory_says_so() -> None:
    theirs = np.arange(6.0)
    theirs.flags.writeable = False
    t = Tensor.from_dlpack(theirs)
    assert not np.from_dlpack(t).flags.writeable
    flags = {version: dlpack.Taken(t.__dlpack__(max_version=version)).flags for version in (None, (1, 0))}
    assert flags == {None: 0, (1, 0): dlpack.READ_ONLY}
    assert dlpack.Taken(t.__dlpack__(max_version=(1, 0), copy=True)).flags == dlpack.IS_COPIED
    with pytest.raises(BufferError, match="read-only, which the taker cannot be told"):
        t.__dlpack__(copy=False)
