"""What is done to each part alone: movement, indexing, sums and whatever else is linear in the elements."""

from __future__ import annotations

from tg_dtype import dtypes, least_upper_dtype

from ..array.array import Array
from ..array.operands import NUMBERS
from ..host.coerce import to_dtype
from .parts import Parts, composed, is_complex, joint, kept, meeting, plain_class, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

ALIKE = frozenset(
    """
    reshape expand permute transpose flip shrink shrink_to squeeze unsqueeze flatten unflatten split chunk unbind
    repeat repeat_interleave roll rearrange unfold diagonal diag diag_embed diagflat tril triu movedim ravel t narrow
    select expand_as view_as reshape_as broadcast_to tile flipud fliplr rot90 atleast_1d atleast_2d atleast_3d
    tensor_split hsplit vsplit dsplit pixel_shuffle pixel_unshuffle channel_shuffle diagonal_copy expand_copy
    narrow_copy permute_copy squeeze_copy t_copy transpose_copy unfold_copy unsqueeze_copy view_copy unbind_copy
    split_with_sizes_copy gather index_select take take_along_dim masked_select
    sum_to_size contiguous clone detach contiguous_backward
    to_dense zeros_like empty_like to_ nan_to_num as_strided combinations
    """.split()
)
"""Methods that are those of both parts with the same arguments; none of these arguments are elements."""

WRITING = frozenset(
    """
    masked_fill masked_scatter select_scatter slice_scatter diagonal_scatter scatter scatter_add index_add index_copy
    index_fill index_put put as_strided_scatter
    """.split()
)
"""Methods that write elements into a copy."""
ELEMENTS = frozenset({"src", "source", "value", "values"})
"""The arguments of those that hold elements."""

_SHAPED = frozenset(("expand_as", "view_as", "reshape_as"))
"""Methods of which an argument tells a shape, and may be complex."""

JOINING = frozenset(
    "cat stack hstack vstack dstack column_stack block_diag broadcast_tensors meshgrid cartesian_prod".split()
)
"""Methods of several tensors, which meet in one dtype unless each gives a tensor of its own."""
_APART = frozenset(("broadcast_tensors", "meshgrid"))
"""Those of which each tensor gives one, of its dtype."""


def joined(parts: tuple[Any, Any]) -> Any:
    """The result of each part, which may be a tensor, a list or a tuple of such, as complex."""
    one, two = parts
    if isinstance(one, (list, tuple)):
        return type(one)([joined(pair) for pair in zip(one, two, strict=True)])
    return composed(one, two)


def alike(name: str) -> Callable[..., Any]:
    """A method that does the same to both parts."""

    def method(z: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_complex(z):
            raise TypeError(f"{name}: an argument is complex that tells how, not what is moved")
        if name not in _SHAPED and any(map(is_complex, (*args, *kwargs.values()))):
            raise TypeError(f"{name}: an argument is complex that tells how, not what is moved")
        given = [arg._parts[0] if is_complex(arg) else arg for arg in args]
        named = {key: arg._parts[0] if is_complex(arg) else arg for key, arg in kwargs.items()}
        re, im = (getattr(part, name)(*given, **named) for part in z._parts)
        return joined((re, im))

    method.__name__ = name
    return method


def _part(value: Any, place: int, kind: Any) -> Any:
    """One part of elements that are written."""
    if isinstance(value, NUMBERS):
        number = complex(value) if isinstance(value, (bool, int, float, complex)) else value
        return (number.real, number.imag)[place] if isinstance(number, complex) else (number, 0)[place]
    if is_complex(value):
        return value._parts[place].cast(kind)
    if isinstance(value, Array):
        plain: Any = value.cast(kind)
        return plain if place == 0 else plain.zeros_like()
    if hasattr(value, "imag") and hasattr(value, "real"):  # an array
        return (value.real, value.imag)[place]
    raise TypeError(f"complex numbers are written, got a {type(value).__name__}")


def writing(name: str) -> Callable[..., Any]:
    """A method that puts elements into a copy of a tensor."""

    def method(z: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_complex(z):
            raise TypeError(f"{name}: complex numbers into a tensor of {z.dtype.name}; cast it")
        if kwargs.get("reduce") not in (None, "sum", "add", "mean"):
            raise TypeError(f"{name}: reduce={kwargs['reduce']!r} is not defined for complex numbers")
        signature = getattr(plain_class(z), name).__wrapped__.__code__
        names = signature.co_varnames[1 : signature.co_argcount]
        kind = z._parts[0].dtype
        out = []
        for place in (0, 1):
            listed = [
                _part(arg, place, kind) if key in ELEMENTS else arg for key, arg in zip(names, args, strict=False)
            ]
            listed += args[len(names) :]
            named = {key: _part(arg, place, kind) if key in ELEMENTS else arg for key, arg in kwargs.items()}
            out.append(getattr(z._parts[place], name)(*listed, **named))
        return composed(*out)

    method.__name__ = name
    return method


def joining(name: str) -> Callable[..., Any]:
    """A method of several tensors."""

    def method(*tensors: Any, **kwargs: Any) -> Any:
        rest: tuple[Any, ...] = ()
        listed = tensors and isinstance(tensors[0], (list, tuple))
        if listed:
            tensors, rest = tuple(tensors[0]), tensors[1:]
        elif tensors and isinstance(tensors[0], type):  # called of the class
            tensors = tensors[1:]
            if tensors and isinstance(tensors[0], (list, tuple)):
                tensors, rest, listed = tuple(tensors[0]), tensors[1:], True
        for one in tensors:
            if not isinstance(one, Array):
                raise TypeError(f"{name}: tensors are wanted, got a {type(one).__name__}")
        given = kwargs.pop("dtype", None)
        wanted = None if given is None else to_dtype(given)
        if wanted is not None and wanted.kind != "complex":
            floats = [cast(one, wanted) for one in tensors]
            call = getattr(plain_class(tensors[0]), name)
            return call(floats, *rest, **kwargs) if listed else call(*floats, *rest, **kwargs)
        if wanted is None and not any(map(is_complex, tensors)):
            raise TypeError(f"{name}: an argument is complex that tells how, not what is put together")
        if wanted is not None:
            parts = [whole(one, name, wanted) for one in tensors]
        elif name in _APART:
            parts = [whole(one, name) if is_complex(one) else Parts(one, one) for one in tensors]
        else:
            kind = meeting(tensors, tensors[0], name) if name == "block_diag" else joint(tensors, name)
            parts = [whole(one, name, kind) for one in tensors]
        out = []
        for place in (0, 1):
            column = [part[place] for part in parts]
            call = getattr(plain_class(tensors[0]), name)
            out.append(call(column, *rest, **kwargs) if listed else call(*column, *rest, **kwargs))
        one, two = out
        if name in _APART:
            return tuple([composed(*pair) if is_complex(given) else pair[0]
                          for given, *pair in zip(tensors, one, two, strict=True)])  # fmt: skip
        return joined((one, two))

    method.__name__ = name
    return method


def where(t: Any, x: Any, y: Any) -> Any:
    if is_complex(t):
        raise TypeError(f"where: the condition is a tensor of bools, got {t.dtype.name}: condition.where(x, y)")
    kind = meeting((x, y), t, "where")
    part = dtypes.float64 if kind is dtypes.complex128 else dtypes.float32
    out = []
    for place in (0, 1):
        a, b = (_part(value, place, part) for value in (x, y))
        if not isinstance(a, Array) and not isinstance(b, Array):
            a = t.full_like(float(a), dtype=part)
        out.append(t.where(a, b))
    return composed(*out)


def pad(z: Any, padding: Any, mode: str = "constant", value: Any = 0) -> Any:
    number = complex(value)
    re, im = whole(z, "pad")
    return composed(re.pad(padding, mode, number.real), im.pad(padding, mode, number.imag))


def pad_to(z: Any, *shape: Any, value: Any = 0) -> Any:
    number = complex(value)
    re, im = whole(z, "pad_to")
    return composed(re.pad_to(*shape, value=number.real), im.pad_to(*shape, value=number.imag))


def getitem(z: Any, index: Any) -> Any:
    return composed(*(part[index] for part in z._parts))


def iterate(z: Any) -> Any:
    if not z.shape:
        raise TypeError("iter: a tensor of shape () has no elements to go through")
    return (getitem(z, n) for n in range(len(z)))


def diff(z: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    given = tuple(x for x in (z, prepend, append) if x is not None)
    if not any(map(is_complex, given)):
        raise TypeError("diff: an argument is complex that tells how, not what is subtracted")
    kind = joint(given, "diff")
    before, after = (None if x is None else whole(x, "diff", kind) for x in (prepend, append))
    out = [
        part.diff(n, dim, None if before is None else before[place], None if after is None else after[place])
        for place, part in enumerate(whole(z, "diff", kind))
    ]
    return composed(*out)


def adjoint(x: Any) -> Any:
    return x.mH


def conj(z: Any) -> Any:
    return composed(kept(z._parts[0]), -z._parts[1])


def itself(z: Any) -> Any:
    return z


def view_as_real(z: Any) -> Any:
    re, im = z._parts
    return re.stack(im, dim=-1)


def cast(t: Any, dtype: Any) -> Any:
    kind = to_dtype(dtype)
    if is_complex(t):
        if kind is t.dtype:
            return t
        if kind.kind == "bool":
            return (t._parts[0] != 0).logical_or(t._parts[1] != 0)
        if kind.kind != "complex":
            from warnings import warn

            warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=4)
            return kept(t._parts[0].cast(kind))
    elif kind.kind != "complex":
        return t.cast(kind)
    re, im = whole(t, "cast", least_upper_dtype(kind, kind))
    return composed(kept(re), kept(im))


def to(t: Any, device: Any = None, dtype: Any = None, non_blocking: Any = False, copy: Any = False) -> Any:
    from ..host import coerce

    if dtype is True or dtype is False:  # PyTorch's (dtype, non_blocking, copy)
        dtype, copy = None, copy or non_blocking is True
    if copy:
        out = to(t, device, dtype)
        return out._of_floats([part.to(part.device, copy=True) for part in out._floats()]) if out is t else out
    if isinstance(device, Array):
        device, dtype = device.device, device.dtype
    elif coerce.names_dtype(device):
        if dtype is not None:
            raise TypeError(f"to: two dtypes, {device!r} and {dtype!r}; a device comes first")
        device, dtype = None, device
    out = t if dtype is None else cast(t, dtype)
    if device is None and dtype is not None:
        return out
    moved = [part.to(device) for part in out._floats()]
    return out if all(a is b for a, b in zip(moved, out._floats(), strict=True)) else out._of_floats(moved)


def type_(t: Any, dtype: Any = None) -> Any:
    return t.dtype.name if dtype is None else cast(t, dtype)


def type_as(t: Any, other: Any) -> Any:
    return cast(t, other.dtype)


def cast_to(name: str) -> Callable[..., Any]:
    """A cast that is named like its dtype."""

    def method(t: Any) -> Any:
        return cast(t, name)

    return method


def bitcast(z: Any, dtype: Any) -> Any:
    raise TypeError("bitcast: complex numbers are two tensors of floats here; use view_as_real")


def view(z: Any, *shape: Any) -> Any:
    from tg_dtype import DType

    if len(shape) == 1 and isinstance(shape[0], (str, DType)):
        return bitcast(z, shape[0])
    return composed(*(part.reshape(*shape) for part in z._parts))
