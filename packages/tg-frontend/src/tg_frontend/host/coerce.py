"""What stands for a dtype, and which numbers a dtype can hold: Python's, numpy's and PyTorch's spellings of both."""

from __future__ import annotations

from tg_dtype import ConstType, DType, dtypes, interop, least_upper_dtype, weaker_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from numpy.typing import NDArray

    from tg_shape import Expr

_DEEPEST = 64
_LETTERS = {"f": "float", "i": "int", "u": "uint", "c": "complex"}
_CLASSES = {
    f"{name}Tensor": kind
    for name, kind in (
        ("Float", "float32"), ("Double", "float64"), ("Half", "float16"), ("BFloat16", "bfloat16"), ("Byte", "uint8"),
        ("Char", "int8"), ("Short", "int16"), ("Int", "int32"), ("Long", "int64"), ("Bool", "bool"),
    )
}  # fmt: skip
"""Classes of tensors by which PyTorch's ``type()`` names dtypes."""
_PYTHON = {bool: dtypes.bool, int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
_NUMPY_CODES = frozenset("?bBhHiIlLqQnNpPefdFD")
"""Letters by which numpy knows dtypes of numbers that are here (https://numpy.org/doc/stable/reference/arrays.scalars.html);
how wide ``l`` is depends on the platform."""
_FORMATS = {"?": "bool", **dict.fromkeys("bhilqn", "int"), **dict.fromkeys("BHILQN", "uint"),
            **dict.fromkeys("efd", "float")}  # fmt: skip


def to_dtype(dtype: Any) -> DType:
    """A dtype, or what stands for one.

    Args:
      dtype: a dtype; a name (``"float32"``, ``"half"``, numpy's ``"f4"`` and ``"d"``, PyTorch's ``"torch.float32"`` and
        ``"torch.FloatTensor"``); a dtype or scalar type of numpy, PyTorch or
        JAX; or Python's ``bool``, ``int``, ``float`` and ``complex``, which are bool, int64, float64 and complex128, as
        numpy and PyTorch agree.

    Raises:
      TypeError: if it is nothing of that kind.
      ValueError: if no dtype has the name.
    """
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, str):
        if dtype.startswith("torch."):
            dtype = dtype.removeprefix("torch.")
            dtype = _CLASSES.get(dtype, dtype)
        short = dtype.lstrip("<=|")
        if short == "b1":
            return dtypes.bool
        if short[:1] in _LETTERS and short[1:].isdigit() and int(short[1:]) in (1, 2, 4, 8, 16):
            return dtypes.from_name(f"{_LETTERS[short[0]]}{8 * int(short[1:])}")
        if dtype not in _NUMPY_CODES:
            return dtypes.from_name(dtype)
        from numpy import dtype as numpy_dtype

        dtype = numpy_dtype(dtype)
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]
    home = str(getattr(dtype, "__module__", "")), str(type(dtype).__module__)
    if home[1] == "torch":
        return interop.from_torch_dtype(dtype)
    if any(name.partition(".")[0] in ("numpy", "ml_dtypes", "jax") for name in home):
        from numpy import dtype as numpy_dtype

        return interop.from_numpy_name(numpy_dtype(dtype).name)
    raise TypeError(f"a dtype or its name is wanted, got {dtype!r} of type {type(dtype).__name__}")


def is_dtype(value: Any) -> bool:
    """Whether a value is a dtype, of whatever library, or the name of one, and no size, device or tensor.

    Example:
      >>> is_dtype(int), is_dtype("f4"), is_dtype("CPU"), is_dtype(3), is_dtype((2, 3))
      (True, True, False, False, False)
    """
    if isinstance(value, str):
        return names_dtype(value)
    return isinstance(value, (type, DType)) or type(value).__name__.lower().endswith("dtype")


def names_dtype(value: Any) -> bool:
    """Whether a value stands for a dtype rather than for a device; a name of a dtype is no device's."""
    if isinstance(value, str):
        try:
            to_dtype(value)
        except ValueError:
            return False
        return True
    return value is not None and not isinstance(value, (int, bytes))


def dtype_of(values: ConstType | complex | Iterable[ConstType | complex]) -> DType:
    """The dtype of Python numbers: the default one of their kind; int64 where an integer needs more than that has.

    Raises:
      OverflowError: if an integer needs more than 64 bits.
    """
    numbers: Any = [values] if isinstance(values, (bool, int, float, complex)) else list(values)
    found = dtypes.from_py(numbers)
    if found.kind != "int":
        return found
    least, most = min(numbers), max(numbers)
    for wide in (found, dtypes.int64):
        low, high = dtypes.min(wide), dtypes.max(wide)
        if low <= least and most <= high:
            return wide
    wrong = most if most > high else least
    raise OverflowError(f"{wrong} is no int64 ({low} to {high}); give a dtype")


def check_fits(values: ConstType | complex | Iterable[ConstType | complex], dtype: DType, what: str) -> None:
    """Python numbers that are about to become elements of a dtype.

    Raises:
      OverflowError: if an integer dtype has no such number; floats are truncated toward zero first.
      ValueError: if a NaN is to become an integer.
      TypeError: if a complex number is.
    """
    if dtype.kind not in ("int", "uint"):
        return
    numbers: Any = (values,) if isinstance(values, (bool, int, float, complex)) else values
    low, high = dtypes.min(dtype), dtypes.max(dtype)
    if set(map(type, numbers)) <= {int, bool} and numbers and low <= min(numbers) and max(numbers) <= high:
        return
    for number in numbers:
        if isinstance(number, float) and number != number:
            raise ValueError(f"{what}: NaN is no {dtype.name}")
        if isinstance(number, complex):
            raise TypeError(f"{what}: {number} is no {dtype.name}")
        if not low - 1 < number < high + 1:
            raise OverflowError(f"{what}: {number} is no {dtype.name} ({low} to {high})")


def check_bounds(value: Expr, dtype: DType, what: str) -> None:
    """An integer whose value is known when kernels run, and that is about to be an element of a dtype.

    Raises:
      OverflowError: if an integer dtype has not all of its range.
    """
    if dtype.kind in ("int", "uint") and not dtypes.min(dtype) <= value.vmin <= value.vmax <= dtypes.max(dtype):
        raise OverflowError(
            f"{what}: {value} is from {value.vmin} to {value.vmax}, and {dtype.name} "
            f"from {dtypes.min(dtype)} to {dtypes.max(dtype)}; cast first"
        )


def is_arraylike(data: object) -> bool:
    """Whether numpy can take it for an array: by ``__array__`` or ``__array_interface__``."""
    return not isinstance(data, type) and (hasattr(data, "__array__") or hasattr(data, "__array_interface__"))


def as_array(data: Any) -> NDArray[Any]:
    """An object with ``__array__`` or ``__array_interface__``, such as a PyTorch tensor, as a numpy array.

    Raises:
      TypeError: if it has elements that numpy has not.
    """
    from numpy import asarray

    try:
        return asarray(data.detach().cpu() if type(data).__module__ == "torch" else data)
    except TypeError as error:
        raise TypeError(f"Tensor: numpy cannot hold this {type(data).__name__}; use Tensor.from_dlpack") from error


def buffer_dtype(data: memoryview) -> DType | None:
    """The dtype of typed memory; None of bytes.

    Raises:
      TypeError: if its elements are no numbers.
    """
    code = data.format.lstrip("@=<")
    if code in ("B", "b", "c") or not code:
        return None
    if code not in _FORMATS:
        raise TypeError(f"memory of format {data.format!r} holds no numbers; give a dtype to take the bytes as")
    kind = _FORMATS[code]
    return dtypes.bool if kind == "bool" else dtypes.from_name(f"{kind}{8 * data.itemsize}")


def plain(data: Any, depth: int = 0) -> tuple[Any, list[DType]]:
    """Nested lists of numbers made of lists of arrays, tensors and numbers, and the dtypes of the arrays.

    Raises:
      ValueError: if it is nested too deeply, or holds itself.
    """
    if depth > _DEEPEST:
        raise ValueError(f"data is nested more than {_DEEPEST} lists deep, or holds itself")
    if isinstance(data, (list, tuple, range)):
        parts = [plain(item, depth + 1) for item in data]
        return [part for part, _ in parts], [dtype for _, found in parts for dtype in found]
    if hasattr(type(data), "lazydata"):
        if data.requires_grad:
            raise TypeError("Tensor: data holds a tensor that requires a gradient; use Tensor.stack, through which its "
                            "gradient flows")  # fmt: skip
        return data.tolist(), [data.dtype]
    if not isinstance(data, (bool, int, float, complex)) and is_arraylike(data):
        array = as_array(data)
        return array.tolist(), [interop.from_numpy_name(array.dtype.name)]
    return data, []


def mixed_dtype(values: Iterable[ConstType], found: list[DType]) -> DType:
    """The dtype of numbers that stood in arrays of these dtypes; those in none raise it to their category at most.

    Example:
      >>> mixed_dtype([1, 2.5], [dtypes.int8]), mixed_dtype([1, 2], [dtypes.int8])
      (dtypes.float32, dtypes.int8)
    """
    if not found:
        return dtype_of(values)
    together = least_upper_dtype(*found)
    if not values:
        return together
    # a number among bools is of the dtype that it has by itself
    return weaker_dtype(together, dtype_of(values) if together.kind == "bool" else dtypes.from_py(values))
