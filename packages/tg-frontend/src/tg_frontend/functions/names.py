"""What a name at the top of the package means, found when somebody asks for it.

Names of PyTorch and numpy lead, in this order, to what is written in this folder; a dtype or a number; a method of
Tensor, called with the tensor first; a function of another room. For the rest there are words: see :mod:`.absent`.
Where the two libraries disagree, a name means what PyTorch's does.
"""

from __future__ import annotations

import inspect
import math
from functools import cache, update_wrapper

from tg_dtype import DType, dtypes

from .. import array_api, functions, linalg
from ..array.operands import as_tensor, beside, weak_dtype
from ..host import transfer
from ..host.coerce import is_arraylike
from ..keywords import checked
from ..nn import functional
from ..ops.absent import INSTEAD as OF_TENSORS
from ..signal import windows
from ..tensor import Tensor
from .absent import INSTEAD
from .grids import INDEXED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_DTYPES = {
    **dict.fromkeys(
        """bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 complex64 complex128
        half float double cfloat cdouble short int long float8_e4m3fn float8_e5m2 float8_e4m3fnuz
        float8_e5m2fnuz""".split()
    ),
    "bool_": "bool", "single": "float32", "csingle": "complex64", "intc": "int32", "int_": "int64", "intp": "int64",
    "longlong": "int64", "uintc": "uint32", "uintp": "uint64", "ulonglong": "uint64", "ubyte": "uint8",
    "ushort": "uint16", "uint": "uint64", "ulong": "uint64",
}  # fmt: skip
"""Dtypes of PyTorch and numpy by name; where the name of ours is another one, that."""
_NUMBERS = {"e": math.e, "pi": math.pi, "inf": math.inf, "nan": math.nan, "euler_gamma": 0.57721566490153286061,
            "newaxis": None, "True_": True, "False_": False, "little_endian": True}  # fmt: skip
_OTHERS = {
    "around": "round", "rint": "round", "power": "pow", "radians": "deg2rad", "degrees": "rad2deg",
    "invert": "bitwise_not", "bitwise_invert": "bitwise_not", "left_shift": "lshift", "right_shift": "rshift",
    "copy": "clone", "array_equal": "equal", "array_split": "tensor_split", "conjugate": "conj",
}  # fmt: skip
"""Names of numpy's functions, and of the methods that they are."""
_SAME = {"array": "tensor", "asanyarray": "as_tensor"}
"""Other names of functions of this folder."""
_PROPERTIES = ("real", "imag", "shape", "ndim")
"""Attributes of tensors for which both, or numpy, have functions."""
_OF_NETWORKS = frozenset(
    """adaptive_avg_pool1d alpha_dropout avg_pool1d bilinear celu channel_shuffle conv1d conv2d conv3d conv_tbc
    conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity ctc_loss feature_alpha_dropout group_norm
    hardshrink layer_norm max_pool1d max_pool2d max_pool3d pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu
    rms_norm rrelu rrelu_ threshold""".split()
)  # fmt: skip
"""Names of PyTorch that take the arguments of its function of this name in ``nn.functional``."""
_OF_MATRICES = ("lobpcg", "lu_unpack", "pca_lowrank", "svd_lowrank", "vecdot")
_OF_WINDOWS = {"bartlett": "bartlett", "blackman": "blackman", "hamming": "hamming", "hanning": "hann"}
"""Names of numpy's windows, and of functions of ``signal.windows``."""
_OF_THE_STANDARD = frozenset(
    """astype broadcast_arrays cumulative_prod cumulative_sum expand_dims isdtype matrix_transpose permute_dims
    unique_all unique_counts unique_inverse unique_values unstack""".split()
)  # fmt: skip
"""Names of numpy that the array API standard has with the same arguments."""
_OF_LISTS = frozenset(
    """block_diag broadcast_tensors cartesian_prod cat column_stack concat concatenate
    dstack einsum hstack meshgrid row_stack stack vstack""".split()
)
"""Methods that are given several tensors, as a list or one after another."""
_OF_NONE: dict[str, Any] = {"block_diag": [[]]}
"""What those of them give that may be called without any."""
_STACKED = frozenset("cat concat concatenate column_stack dstack hstack row_stack stack vstack".split())
"""Those of them that join the elements of one list."""
_ONE_BY_ONE = ("broadcast_tensors", "cartesian_prod")
"""Those of them whose methods take no list."""
_EACH = ("atleast_1d", "atleast_2d", "atleast_3d")
"""Methods that functions call for each of several tensors."""
_TENSORS = ("A", "B", "Self", "Tensor")
"""How arguments are annotated that are tensors."""
_PLAIN = (bool, int, float, complex)
_KINDS = ("bool", "uint", "int", "float", "complex")
"""In the order in which a dtype has more to say."""
_OPERANDS = ("other", "x", "w", "input", "condition")
"""What arguments are called that may be tensors or numbers."""
_TURNED = {
    "lt": "gt", "less": "greater", "le": "ge", "less_equal": "greater_equal", "gt": "lt", "greater": "less",
    "ge": "le", "greater_equal": "less_equal", "eq": "eq", "ne": "ne", "not_equal": "not_equal",
    "maximum": "maximum", "minimum": "minimum", "fmax": "fmax", "fmin": "fmin",
}  # fmt: skip
"""Methods that take numbers beyond the dtype, and what they are with their operands exchanged."""
_WITH_AXES = {
    "cumsum": "dim", "cumprod": "dim", "cummax": "dim", "cummin": "dim", "logcumsumexp": "dim", "flip": "dims",
    "transpose": "dim0 and dim1", "swapaxes": "dim0 and dim1", "swapdims": "dim0 and dim1",
}  # fmt: skip
"""Methods whose axes may be left out, which means something else in numpy: functions want them given."""


def _dtype(name: str) -> DType:
    found: DType = getattr(dtypes, _DTYPES[name] or name)
    return found


def _of_property(name: str) -> Callable[..., Any]:
    def function(input: Any) -> Any:
        return getattr(input if isinstance(input, Tensor) else Tensor(input), name)

    function.__name__ = name
    function.__doc__ = f"The attribute ``{name}`` of a tensor."
    return checked(function, "tinytg", False)  # type: ignore[no-any-return]


def _beside(number: Any, others: tuple[Any, ...], name: str) -> Tensor:
    """A number, or an array, as a tensor beside others: of their dtype and device where they have more to say."""
    tensors = [one for one in others if isinstance(one, Tensor)]
    other = max(tensors, key=lambda one: (one.ndim > 0, _KINDS.index(one.dtype.kind)), default=None)
    if other is None:
        return Tensor(number)
    if not isinstance(number, _PLAIN):
        return as_tensor(other, number, name) if transfer.is_array(number) else beside(Tensor, number, (other, *others))
    return Tensor(number, device=other.device, dtype=weak_dtype(other.dtype, number))


def _of_each(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of one tensor as a function of several, or of a list of them: a tuple of results."""

    def function(*tensors: Any) -> Any:
        one = len(tensors) == 1 and (_is_data(tensors[0]) or not isinstance(tensors[0], (list, tuple)))
        parts = tensors if len(tensors) != 1 or one else tensors[0]
        found = tuple([method(part if isinstance(part, Tensor) else Tensor(part)) for part in parts])
        return found[0] if one else found

    return update_wrapper(function, method)


def _several(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a method of several tensors is called with: lists and arrays among them as tensors.

    A list of nothing but numbers is one tensor, or, of what stacks a list, a list of tensors of no axes. What stacks a
    list stacks the rows of a single array.
    """
    if not args:
        return args
    first, made = args[0], _members(args[1:], args)
    rest = tuple(one if _is_number(one) else part for one, part in zip(args[1:], made, strict=True))
    if isinstance(first, (list, tuple)) and first and all(map(_is_number, first)):
        each = name in _STACKED and not (rest and isinstance(rest[0], Tensor))
        first = [Tensor(part) for part in first] if each else beside(Tensor, list(first), rest)
    elif _is_array(first) and not isinstance(first, (list, tuple)):
        first = beside(Tensor, first, rest)
    else:
        first = _members(first)
    if name in _STACKED and isinstance(first, Tensor) and first.ndim and all(map(_is_number, rest)):
        first = first.unbind(0)  # one array is its rows, as in numpy
    return (*first, *rest) if name in _ONE_BY_ONE and isinstance(first, (list, tuple)) else (first, *rest)


def _is_number(value: Any) -> bool:
    """Whether a value is a number, of Python or of numpy."""
    return isinstance(value, _PLAIN) or (transfer.is_array(value) and getattr(value, "shape", None) == ())


def _is_data(value: Any) -> bool:
    """Whether a list is one of numbers, or of such lists."""
    if isinstance(value, range):
        return True
    return isinstance(value, (list, tuple)) and all(_is_number(part) or _is_data(part) for part in value)


def _members(value: Any, others: tuple[Any, ...] = ()) -> Any:
    """A list of tensors, of which some may be lists of numbers."""
    if not isinstance(value, (list, tuple)):
        return value
    met = (*others, *value)
    return type(value)([beside(Tensor, part, met) if _is_array(part) else part for part in value])


def _is_list_of_tensors(value: Any) -> bool:
    """Whether a value is a list of tensors, among which there may be numbers and arrays."""
    if not isinstance(value, (list, tuple)):
        return False
    return any(isinstance(one, Tensor) or transfer.is_array(one) for one in value) and all(
        isinstance(one, Tensor) or _is_number(one) or _is_array(one) for one in value
    )


def _is_array(value: Any) -> bool:
    """Whether a value is a list of numbers, or an array of another library."""
    return _is_data(value) or (is_arraylike(value) and not isinstance(value, Tensor))


def _places(function: Callable[..., Any]) -> tuple[int, ...]:
    """Which arguments of a function are tensors: the first ones, as far as that goes."""
    found = []
    for place, one in enumerate(inspect.signature(function).parameters.values()):
        if one.kind not in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            break
        if _is_tensor(one) or (one.name in _OPERANDS and one.annotation == "Any"):
            found.append(place)
    return tuple(found)


def _is_tensor(one: inspect.Parameter) -> bool:
    """Whether an argument is annotated as a tensor, or as one that may be left out."""
    return str(one.annotation).removesuffix(" | None") in _TENSORS


def _converter(function: Callable[..., Any], numbers: bool) -> Callable[[Any, Any], tuple[Any, Any]] | None:
    """What gives arguments with tensors for lists of numbers, where tensors are wanted: beside those that there are.

    Args:
      function: takes the arguments.
      numbers: whether a number is made a tensor, too, where nothing but one is wanted.
    """
    parameters = list(inspect.signature(function).parameters.values())
    names = [one.name for one in parameters]
    tensors = {names[place] for place in _places(function)}
    alone = {one.name for one in parameters if numbers and one.annotation in _TENSORS}
    if not tensors:
        return None

    def convert(args: Any, kwargs: Any) -> tuple[Any, Any]:
        others = (*args, *kwargs.values())

        def tensor(name: str, value: Any) -> Any:
            if name in tensors and _is_list_of_tensors(value):
                met = (*others, *value)
                parts = [one if isinstance(one, Tensor) else beside(Tensor, one, met) for one in value]
                return Tensor.stack(*parts) if len({one.shape for one in parts}) == 1 else parts
            if _is_number(value) and name in (alone if isinstance(value, _PLAIN) else tensors):
                return _beside(value, others, function.__name__)
            made = name in tensors and not isinstance(value, _PLAIN) and _is_array(value)
            return beside(Tensor, value, others) if made else value

        count = min(len(args), len(names))
        given = (*map(tensor, names[:count], args[:count]), *args[count:])
        return given, {name: tensor(name, value) for name, value in kwargs.items()}

    return convert


def _with_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function for which lists of numbers may stand for tensors, and numbers where nothing but a tensor may."""
    convert = _converter(function, True)
    if convert is None:
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = convert(args, kwargs)
        return function(*args, **kwargs)

    return update_wrapper(call, function)


def _of_method(name: str, known: str) -> Callable[..., Any]:
    """A method as a function, for which numbers and arrays may stand first."""
    method = getattr(Tensor, known)
    if known in _EACH:
        return _of_each(method)
    if inspect.ismethod(method) or isinstance(inspect.getattr_static(Tensor, known), staticmethod):
        return method  # type: ignore[no-any-return]
    axes = _WITH_AXES.get(known)
    fewest = 3 if axes and "and" in axes else 2
    convert = None if known in _OF_LISTS else _converter(method, False)

    def function(*args: Any, **kwargs: Any) -> Any:
        if axes and len(args) + len(kwargs) < fewest:
            raise TypeError(f"{name}: {axes} {'are' if fewest == 3 or axes == 'dims' else 'is'} to be given")
        turned = known in _TURNED and len(args) == 2 and not kwargs
        if turned and _is_number(args[0]) and isinstance(args[1], Tensor):
            return getattr(args[1], _TURNED[known])(args[0])
        if args and not isinstance(args[0], Tensor):
            if isinstance(args[0], _PLAIN) or is_arraylike(args[0]):
                args = (_beside(args[0], (*args[1:], *kwargs.values()), name), *args[1:])
        if known in _OF_LISTS:
            none = _OF_NONE.get(known) if not args else None
            args = _several(known, args) if none is None else (Tensor(none),)
        if convert is not None:
            args, kwargs = convert(args, kwargs)
        return method(*args, **kwargs)

    return update_wrapper(function, method)


def _is_method(name: str) -> bool:
    return not name.startswith("_") and name not in INSTEAD and callable(getattr(Tensor, name, None))


def refused(name: str) -> NoReturn:
    """Says what is used instead of a name that is not there, where that is known."""
    said = f"module 'tinytg' has no attribute {name!r}"
    why = INSTEAD.get(name) or OF_TENSORS.get(name)
    raise AttributeError(f"{said}: {why}" if why else said, name=name)


@cache
def named(name: str) -> Any:
    """What a name means.

    Raises:
      AttributeError: if it means nothing; the message tells what is used instead, where that is known.

    Example:
      >>> from tg_frontend.functions.names import named
      >>> named("float16"), named("power")(2.0, 3.0)
      (dtypes.float16, Tensor(8.))
    """
    own = _SAME.get(name, name)
    if own in functions.__all__:
        found = getattr(functions, own)
        return _with_lists(found) if inspect.isroutine(found) else found
    if name in _DTYPES:
        return _dtype(name)
    if name in _NUMBERS:
        return _NUMBERS[name]
    if name in _PROPERTIES:
        return _of_property(name)
    for names, home in ((_OF_NETWORKS, functional), (_OF_MATRICES, linalg), (_OF_THE_STANDARD, array_api)):
        if name in names and hasattr(home, name):
            found = getattr(home, name)
            return _with_lists(found) if home is array_api else found
    if name in _OF_WINDOWS:
        return getattr(windows, _OF_WINDOWS[name])
    if name in INDEXED:
        return INDEXED[name]
    if name == "dtype":
        return DType
    known = _OTHERS.get(name, name)
    if _is_method(known) and name not in INSTEAD:
        return _of_method(name, known)
    refused(name)


def names() -> list[str]:
    """All names that :func:`named` finds."""
    methods = [name for name in dir(Tensor) if _is_method(name)]
    rooms = (_OF_NETWORKS, _OF_MATRICES, _OF_THE_STANDARD, _OF_WINDOWS, INDEXED)
    found = {*functions.__all__, *_SAME, *_DTYPES, *_NUMBERS, *_PROPERTIES, *_OTHERS, *methods, "dtype"}
    return sorted(found.union(*rooms))
