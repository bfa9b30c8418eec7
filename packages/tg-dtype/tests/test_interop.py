"""Name tables: complete, reversible, and agreeing with what numpy itself says."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from tg_dtype import DType, dtypes, interop


@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_tables_are_complete_and_reversible(dtype: DType) -> None:
    torch, safetensors = interop.to_torch_name(dtype), interop.to_safetensors_name(dtype)
    assert torch is not None and interop.from_torch_name(torch) is dtype
    assert interop.from_torch_name("torch." + torch) is dtype
    assert safetensors is not None and interop.from_safetensors_name(safetensors) is dtype
    assert interop.from_dlpack(*interop.to_dlpack(dtype)) is dtype


@pytest.mark.parametrize("dtype", [d for d in dtypes.all if interop.to_numpy_name(d)], ids=str)
def test_numpy_agrees(dtype: DType) -> None:
    name = interop.to_numpy_name(dtype)
    assert name is not None
    theirs = np.dtype(name)
    assert theirs.name == name and theirs.itemsize == dtype.itemsize and theirs.char is not None
    assert interop.from_numpy_name(theirs.name) is dtype
    assert {"b": "bool", "i": "int", "u": "uint", "f": "float"}[theirs.kind] == dtype.kind
    assert dtype.fmt is not None and np.dtype(dtype.fmt) == theirs


@pytest.mark.parametrize("dtype", dtypes.complexes, ids=str)
def test_complex_is_in_the_tables(dtype: DType) -> None:
    assert interop.to_numpy_name(dtype) == interop.to_torch_name(dtype) == dtype.name
    assert interop.from_numpy_name(dtype.name) is interop.from_torch_name(f"torch.{dtype.name}") is dtype
    assert np.dtype(dtype.name).itemsize == dtype.itemsize
    assert interop.from_torch_name("cfloat") is dtypes.complex64
    assert interop.from_torch_name("cdouble") is dtypes.complex128
    assert interop.from_safetensors_name("C64") is dtypes.complex64  # the format has no wider one
    assert interop.to_safetensors_name(dtype) == (None if dtype is dtypes.complex128 else "C64")
    assert interop.from_dlpack(*interop.to_dlpack(dtype)) is dtype


NUMPYS = [d for d in (*dtypes.all, *dtypes.complexes) if interop.to_numpy_name(d)]


@pytest.mark.parametrize("dtype", NUMPYS, ids=str)
def test_dlpack_agrees_with_the_capsules_of_numpy(dtype: DType) -> None:
    name = interop.to_numpy_name(dtype)
    capsule = np.zeros(1, dtype=name).__dlpack__()
    api = ctypes.pythonapi.PyCapsule_GetPointer
    api.restype, api.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    head = ctypes.string_at(api(capsule, b"dltensor"), 24)  # data pointer, device (8 bytes), ndim (4), dtype (4)
    assert (head[20], head[21], int.from_bytes(head[22:24], "little")) == interop.to_dlpack(dtype)


def test_vectors_go_through_dlpack_alone() -> None:
    vector = dtypes.float16.vec(8)
    assert interop.to_dlpack(vector) == (2, 16, 8) and interop.from_dlpack(2, 16, 8) is vector
    assert interop.to_numpy_name(vector) is interop.to_torch_name(vector) is interop.to_safetensors_name(vector) is None


@pytest.mark.parametrize(
    ("look_up", "name"),
    [
        (interop.from_numpy_name, "complex256"),
        (interop.from_torch_name, "torch.qint8"),
        (interop.from_safetensors_name, "F4"),
    ],
)
def test_unknown_names_are_listed_against_the_known(look_up: Callable[[str], DType], name: str) -> None:
    with pytest.raises(TypeError, match=r"counterpart of.*there are"):
        look_up(name)


def test_unknown_dlpack() -> None:
    with pytest.raises(TypeError, match=r"\(5, 32\)"):
        interop.from_dlpack(5, 32)
    with pytest.raises(TypeError, match="void"):
        interop.to_dlpack(dtypes.void)
