"""The namespace ``dtypes``: every type by name, predicates and limits."""

from __future__ import annotations

from .cast import as_const
from .dtype import FLOAT32, AddrSpace, DType, ImageDType
from .limits import finfo, is_bool, is_complex, is_float, is_int, is_unsigned, maximum, minimum


def from_py(value: object) -> DType:
    """The type of a Python number, or of (nested) lists and tuples of numbers; an empty list is ``default_float``.

    A complex number has two parts of ``default_float``; of narrower ones than float32 there is no complex type.

    Raises:
      TypeError: if something else than bool, int, float, complex, list or tuple is met.

    Example:
      >>> from tg_dtype import dtypes
      >>> dtypes.from_py([[1, 2], [3, True]])
      dtypes.int32
    """
    best = -1
    stack: list[object] = [value]
    while stack and best < 3:
        item = stack.pop()
        if isinstance(item, bool):
            best = max(best, 0)
        elif isinstance(item, int):
            best = max(best, 1)
        elif isinstance(item, float):
            best = max(best, 2)
        elif isinstance(item, complex):
            best = 3
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
        else:
            raise TypeError(f"from_py: {type(item).__name__} is not a bool, int, float, complex, list or tuple")
    if best == 3:
        return dtypes.complex128 if dtypes.default_float is dtypes.float64 else dtypes.complex64
    return (dtypes.bool, dtypes.default_int, dtypes.default_float)[best] if best >= 0 else dtypes.default_float


def from_name(name: str) -> DType:
    """The type that a name or alias means, vectors, pointers and images included.

    Raises:
      ValueError: if no type has that name.

    Example:
      >>> from tg_dtype import dtypes
      >>> dtypes.from_name("half"), dtypes.from_name("float32x4*@local")
      (dtypes.float16, dtypes.float32.vec(4).ptr(-1, AddrSpace.LOCAL))
    """
    found = _NAMES.get(name)
    if found is not None:
        return found
    try:
        if "*" in name:
            base, _, rest = name.rpartition("*")
            size, _, space = rest.partition("@")
            return from_name(base).ptr(
                int(size) if size else -1, AddrSpace[space.upper()] if space else AddrSpace.GLOBAL
            )
        if name.startswith(("imageh(", "imagef(")) and name.endswith(")"):
            shape = tuple(int(side) for side in name[7:-1].split(","))
            return imageh(shape) if name[5] == "h" else imagef(shape)
        lane, times, count = name.rpartition("x")
        if times and lane in _NAMES:
            return _NAMES[lane].vec(int(count))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"no dtype is named {name!r}: {error}") from None
    raise ValueError(f"no dtype is named {name!r}; there are {', '.join(_NAMES)}")


def imageh(shape: tuple[int, ...]) -> ImageDType:
    """A texture of float16 channels, shape (height, width, 4)."""
    return ImageDType(dtypes.float16, shape)


def imagef(shape: tuple[int, ...]) -> ImageDType:
    """A texture of float32 channels, shape (height, width, 4)."""
    return ImageDType(dtypes.float32, shape)


class dtypes:
    """Every type by its name, and what can be asked of one.

    ``default_float`` and ``default_int`` are what Python floats and ints become; they may be assigned.

    ``all`` are those that kernels compute with. ``complexes`` are not among them: a tensor of complex numbers is two
    tensors of floats, its parts, and nothing below the frontend knows of it.
    """

    void = DType("void", "void", 0, -1)
    bool = DType("bool", "bool", 1, 0, "?")
    int8 = DType("int8", "int", 8, 1, "b")
    uint8 = DType("uint8", "uint", 8, 2, "B")
    int16 = DType("int16", "int", 16, 3, "h")
    uint16 = DType("uint16", "uint", 16, 4, "H")
    int32 = DType("int32", "int", 32, 5, "i")
    uint32 = DType("uint32", "uint", 32, 6, "I")
    int64 = DType("int64", "int", 64, 7, "q")
    uint64 = DType("uint64", "uint", 64, 8, "Q")
    fp8e4m3 = DType("fp8e4m3", "float", 8, 9)
    fp8e5m2 = DType("fp8e5m2", "float", 8, 10)
    fp8e4m3fnuz = DType("fp8e4m3fnuz", "float", 8, 11)
    fp8e5m2fnuz = DType("fp8e5m2fnuz", "float", 8, 12)
    float16 = DType("float16", "float", 16, 13, "e")
    bfloat16 = DType("bfloat16", "float", 16, 14)
    float32 = FLOAT32
    float64 = DType("float64", "float", 64, 16, "d")
    complex64 = DType("complex64", "complex", 64, 17)
    complex128 = DType("complex128", "complex", 128, 18)

    cfloat, cdouble = complex64, complex128
    float8_e4m3fn, float8_e5m2 = fp8e4m3, fp8e5m2
    float8_e4m3fnuz, float8_e5m2fnuz = fp8e4m3fnuz, fp8e5m2fnuz
    half, float, double = float16, float32, float64
    char, short, int, long = int8, int16, int32, int64
    uchar, ushort, uint, ulong = uint8, uint16, uint32, uint64

    default_float: DType = float32
    default_int: DType = int32

    sints = (int8, int16, int32, int64)
    uints = (uint8, uint16, uint32, uint64)
    ints = (int8, uint8, int16, uint16, int32, uint32, int64, uint64)
    fp8s = (fp8e4m3, fp8e5m2, fp8e4m3fnuz, fp8e5m2fnuz)
    floats = (*fp8s, float16, bfloat16, float32, float64)
    complexes = (complex64, complex128)
    all = (bool, *ints, *floats)

    is_int = staticmethod(is_int)
    is_float = staticmethod(is_float)
    is_unsigned = staticmethod(is_unsigned)
    is_bool = staticmethod(is_bool)
    is_complex = staticmethod(is_complex)
    min = staticmethod(minimum)
    max = staticmethod(maximum)
    finfo = staticmethod(finfo)
    as_const = staticmethod(as_const)
    from_py = staticmethod(from_py)
    from_name = staticmethod(from_name)
    imageh = staticmethod(imageh)
    imagef = staticmethod(imagef)


_NAMES: dict[str, DType] = {d.name: d for d in (dtypes.void, *dtypes.all, *dtypes.complexes)}
_NAMES |= {"half": dtypes.half, "float": dtypes.float, "double": dtypes.double}
_NAMES |= {d.name.replace("fp8", "float8_"): d for d in (dtypes.fp8e5m2, dtypes.fp8e4m3fnuz, dtypes.fp8e5m2fnuz)}
_NAMES |= {"float8_e4m3fn": dtypes.fp8e4m3}
_NAMES |= {"cfloat": dtypes.cfloat, "cdouble": dtypes.cdouble}
_NAMES |= {"char": dtypes.char, "short": dtypes.short, "int": dtypes.int, "long": dtypes.long}
_NAMES |= {"uchar": dtypes.uchar, "ushort": dtypes.ushort, "uint": dtypes.uint, "ulong": dtypes.ulong}
