"""Scalar, vector, pointer and image types: interned, immutable, compared by identity."""

from __future__ import annotations

from enum import Enum
from weakref import WeakValueDictionary

from .enumeration import fast_members

TYPE_CHECKING = False  # importing typing would cost more than this whole package
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal, NoReturn, TypeAlias

    Kind: TypeAlias = Literal["void", "bool", "int", "uint", "float", "complex"]

_interned: dict[tuple[object, ...], DType] = {}
# of pointers there are as many as sizes of buffers: those that nobody uses go
_pointers: WeakValueDictionary[tuple[object, ...], PtrDType] = WeakValueDictionary()

LIMITS: dict[str, Callable[[DType], int | float | bool]] = {}
"""``min`` and ``max`` of a type: filled by :mod:`tg_dtype.limits`, which knows the layouts of floats."""

POINTER_BYTES = 8  # every target of the project addresses memory with 64 bits


@fast_members
class AddrSpace(Enum):
    """Where a pointer points: device memory, memory shared by a workgroup, or registers of one thread."""

    GLOBAL = 0
    LOCAL = 1
    REG = 2

    def __repr__(self) -> str:
        return f"AddrSpace.{self.name}"


class DType:
    """A scalar or vector type. Equal types are one object, so ``is`` and ``==`` agree and hashing is free.

    Attributes:
      name: canonical name, e.g. ``"float32"`` or ``"float32x4"``; ``dtypes.from_name`` reads it back.
      kind: ``"void"``, ``"bool"``, ``"int"`` (signed), ``"uint"``, ``"float"`` or ``"complex"``.
      bits: width of one lane in bits (1 for bool).
      itemsize: bytes of the whole value, all lanes included.
      priority: total order used where one of two types must be named first; wider and floatier is higher.
      count: number of lanes, 1 for a scalar.
      fmt: character of the :mod:`struct` module for one lane, or None where it has none (bf16, fp8, complex, void).

    Example:
      >>> from tg_dtype import dtypes
      >>> dtypes.float32.vec(4).itemsize, dtypes.float32.vec(4).scalar() is dtypes.float32
      (16, True)
    """

    __slots__ = ("__weakref__", "_scalar", "_vectors", "bits", "count", "fmt", "itemsize", "kind", "name", "priority")

    name: str
    kind: Kind
    bits: int
    itemsize: int
    priority: int
    count: int
    fmt: str | None
    _scalar: DType
    _vectors: dict[int, DType]

    def __new__(cls, name: str, kind: Kind, bits: int, priority: int, fmt: str | None = None, count: int = 1) -> DType:
        """Return the interned type; ``name`` is that of one lane."""
        key = (DType, name, kind, bits, priority, fmt, count)
        found = _interned.get(key)
        if found is not None:
            return found
        new = object.__new__(DType)
        scalar = new if count == 1 else DType(name, kind, bits, priority, fmt)
        full = name if count == 1 else f"{name}x{count}"
        _fill(new, full, kind, bits, (bits + 7) // 8 * count, priority, count, fmt, scalar)
        return _interned.setdefault(key, new)

    @property
    def base(self) -> DType:
        """The type pointed at; the type itself where it is no pointer."""
        return self

    @property
    def is_floating_point(self) -> bool:
        """Whether these are floats, by PyTorch's name.

        Example:
          >>> from tg_dtype import dtypes
          >>> dtypes.bfloat16.is_floating_point, dtypes.int8.is_floating_point
          (True, False)
        """
        return self.kind == "float"

    @property
    def is_complex(self) -> bool:
        """Whether these are complex numbers, by PyTorch's name.

        Example:
          >>> from tg_dtype import dtypes
          >>> dtypes.complex64.is_complex
          True
        """
        return self.kind == "complex"

    @property
    def is_signed(self) -> bool:
        """Whether these may be negative, by PyTorch's name.

        Example:
          >>> from tg_dtype import dtypes
          >>> dtypes.int8.is_signed, dtypes.uint8.is_signed, dtypes.bool.is_signed
          (True, False, False)
        """
        return self.kind in ("int", "float", "complex")

    @property
    def min(self) -> int | float | bool:
        """The least value: see ``dtypes.min``.

        Example:
          >>> from tg_dtype import dtypes
          >>> dtypes.int8.min, dtypes.float32.min
          (-128, -inf)
        """
        return LIMITS["min"](self)

    @property
    def max(self) -> int | float | bool:
        """The greatest value: see ``dtypes.max``.

        Example:
          >>> from tg_dtype import dtypes
          >>> dtypes.uint8.max
          255
        """
        return LIMITS["max"](self)

    @property
    def element(self) -> DType:
        """What a kernel reads from memory of this type: the lane's type, of a pointer what it points at.

        >>> from tg_dtype import dtypes
        >>> dtypes.int8.vec(4).ptr().element.name, dtypes.imageh((2, 2, 4)).element.name
        ('int8', 'float32')
        """
        return self.base.scalar()

    def scalar(self) -> DType:
        """The type of one lane."""
        return self._scalar

    def vec(self, count: int) -> DType:
        """The vector of ``count`` lanes of this scalar; the scalar itself for 1.

        Raises:
          ValueError: if ``count < 1``.
          TypeError: if this is a vector already, a pointer, or void, and ``count > 1``.
        """
        if count == 1:
            return self
        found = self._vectors.get(count)
        if found is not None:
            return found
        if count < 1:
            raise ValueError(f"vec: {self.name} with {count} lanes: the count must be at least 1")
        if self.count != 1 or self.kind in ("void", "complex") or isinstance(self, PtrDType):
            raise TypeError(f"vec: {self.name} cannot be made a vector of {count} lanes; only scalars can")
        return self._vectors.setdefault(count, DType(self.name, self.kind, self.bits, self.priority, self.fmt, count))

    def ptr(self, size: int = -1, space: AddrSpace = AddrSpace.GLOBAL) -> PtrDType:
        """A pointer to ``size`` elements of this type; -1 is an unknown number."""
        return PtrDType(self, size, space)

    def __repr__(self) -> str:
        lanes = "" if self.count == 1 else f".vec({self.count})"
        return f"dtypes.{self._scalar.name}{lanes}"

    def __str__(self) -> str:
        return self.name

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"dtype {self.name} is immutable; cannot set {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"dtype {self.name} is immutable; cannot delete {name}")

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> DType:
        return self

    def __reduce__(self) -> tuple[type[DType], tuple[object, ...]]:
        return DType, (self._scalar.name, self.kind, self.bits, self.priority, self.fmt, self.count)


class PtrDType(DType):
    """A pointer to ``size`` elements of ``base`` in an address space; its own itemsize is that of an address.

    Attributes:
      base: the type pointed at (a vector for vector access).
      size: number of elements of ``base``, -1 when unknown.
      space: the address space.

    Example:
      >>> from tg_dtype import AddrSpace, dtypes
      >>> p = dtypes.float32.ptr(16, AddrSpace.LOCAL)
      >>> p.base, p.nbytes, p.name
      (dtypes.float32, 64, 'float32*16@local')
    """

    __slots__ = ("_base", "size", "space")

    _base: DType
    size: int
    space: AddrSpace

    def __new__(cls, base: DType, size: int = -1, space: AddrSpace = AddrSpace.GLOBAL) -> PtrDType:
        """Return the interned pointer type.

        Raises:
          ValueError: if ``size < -1``.
        """
        key = (PtrDType, base, size, space)
        found = _pointers.get(key)
        if found is None:
            if size < -1:
                raise ValueError(f"ptr: {base.name} with size {size}: give a number of elements, or -1 for unknown")
            where = "" if space is AddrSpace.GLOBAL else f"@{space.name.lower()}"
            name = f"{base.name}*{'' if size < 0 else size}{where}"
            found = _pointers.setdefault(key, _pointer(PtrDType, name, base, size, space))
        return found

    @property
    def base(self) -> DType:
        """The type pointed at."""
        return self._base

    @property
    def nbytes(self) -> int:
        """Bytes pointed at, -1 when the size is unknown."""
        return -1 if self.size < 0 else self.size * self._base.itemsize

    def __repr__(self) -> str:
        return f"{self._base!r}.ptr({self.size}, {self.space!r})"

    def __reduce__(self) -> tuple[type[DType], tuple[object, ...]]:
        return PtrDType, (self._base, self.size, self.space)


class ImageDType(PtrDType):
    """A two-dimensional texture in global memory: shape (height, width, 4) of channels stored as ``base``.

    Loads yield four float32 lanes whatever the storage is (``load_dtype``), because samplers convert.

    Attributes:
      base: storage type of a channel: float16 (``imageh``) or float32 (``imagef``).
      shape: (height, width, 4).
    """

    __slots__ = ("shape",)

    shape: tuple[int, ...]

    def __new__(cls, base: DType, shape: tuple[int, ...]) -> ImageDType:
        """Return the interned image type.

        Raises:
          TypeError: if ``base`` is not scalar float16 or float32.
          ValueError: if the shape is not (height, width, 4) with positive sides.
        """
        shape = tuple(shape)
        key = (ImageDType, base, shape)
        found = _pointers.get(key)
        if found is None:
            if base.kind != "float" or base.count != 1 or base.fmt not in ("e", "f"):
                raise TypeError(f"image: channels are float16 or float32, not {base.name}")
            if len(shape) != 3 or shape[2] != 4 or min(shape) < 1:
                raise ValueError(f"image: shape must be (height, width, 4), not {shape}")
            name = f"image{'h' if base.fmt == 'e' else 'f'}({','.join(map(str, shape))})"
            size = shape[0] * shape[1] * shape[2]
            found = _pointer(ImageDType, name, base, size, AddrSpace.GLOBAL)
            object.__setattr__(found, "shape", shape)
            found = _pointers.setdefault(key, found)
        assert isinstance(found, ImageDType)
        return found

    @property
    def load_dtype(self) -> DType:
        """What one read of the image yields: four lanes of float32."""
        return FLOAT32.vec(4)

    @property
    def element(self) -> DType:
        """A channel as a kernel reads it: float32."""
        return FLOAT32

    def ptr(self, size: int = -1, space: AddrSpace = AddrSpace.GLOBAL) -> PtrDType:
        """An image is not pointed at: it is what a kernel takes."""
        return self

    def __repr__(self) -> str:
        return f"dtypes.image{'h' if self._base.fmt == 'e' else 'f'}({self.shape!r})"

    def __reduce__(self) -> tuple[type[DType], tuple[object, ...]]:
        return ImageDType, (self._base, self.shape)


def _fill(
    new: DType,
    name: str,
    kind: Kind,
    bits: int,
    itemsize: int,
    priority: int,
    count: int,
    fmt: str | None,
    scalar: DType,
) -> None:
    put = object.__setattr__
    put(new, "name", name)
    put(new, "kind", kind)
    put(new, "bits", bits)
    put(new, "itemsize", itemsize)
    put(new, "priority", priority)
    put(new, "count", count)
    put(new, "fmt", fmt)
    put(new, "_scalar", scalar)
    put(new, "_vectors", {})


def _pointer(cls: type[PtrDType], name: str, base: DType, size: int, space: AddrSpace) -> PtrDType:
    new = object.__new__(cls)
    # A pointer is neither integer nor float: "void" keeps it out of arithmetic and of the promotion lattice.
    _fill(new, name, "void", POINTER_BYTES * 8, POINTER_BYTES, base.priority, 1, None, new)
    object.__setattr__(new, "_base", base)
    object.__setattr__(new, "size", size)
    object.__setattr__(new, "space", space)
    return new


FLOAT32 = DType("float32", "float", 32, 15, "f")
