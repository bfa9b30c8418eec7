"""Complex elements on the host: arrays, lists, numbers, text, pickles, other libraries."""

from __future__ import annotations

from tg_dtype import dtypes, interop
from tg_runtime import Device

from ..array import printing
from ..array.lending import check_lendable
from ..array.reading import host_bytes, nested
from ..host import transfer
from ..memory.realization import schedule_all
from .componentwise import view_as_real
from .parts import composed, plain_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def realize(z: Any, *others: Any) -> Any:
    first, *rest = [part for one in (z, *others) for part in one._floats()]
    first.realize(*rest)
    return z


def schedule_with_vars(z: Any, *others: Any) -> Any:
    return schedule_all([part.lazydata for one in (z, *others) for part in one._floats()])


def schedule(z: Any, *others: Any) -> Any:
    return schedule_with_vars(z, *others)[0]


def _computed(z: Any) -> None:
    """Both parts at once, where they are not in memory."""
    waiting = [part.lazydata for part in z._parts if not part.lazydata.base.is_realized]
    if len(waiting) == 2 and not transfer.runs_nothing(z.device):
        z._ints()
        realize(z.detach())


def numpy(z: Any) -> Any:
    from numpy import empty

    _computed(z)
    out = empty(z._ints(), interop.to_numpy_name(z.dtype))
    out.real, out.imag = (part.numpy() for part in z._parts)
    return out


def array(z: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    check_lendable(z, "__array__")
    if copy is False:
        raise ValueError(f"__array__: a tensor of {z.dtype.name} as an array is a copy")
    out = numpy(z)
    return out if dtype is None else out.astype(dtype)


def data(z: Any) -> memoryview:
    return memoryview(numpy(z))


def _paired(re: Any, im: Any) -> Any:
    if isinstance(re, list):
        return [_paired(a, b) for a, b in zip(re, im, strict=True)]
    return complex(re, im)


def tolist(z: Any) -> Any:
    _computed(z)
    re, im = (nested(part) for part in z._parts)
    return _paired(re, im)


def item(z: Any) -> complex:
    if z.numel() != 1:
        raise ValueError(f"item: a tensor of shape {z.shape} has not exactly one element")
    _computed(z)
    re, im = (part.item() for part in z._parts)
    return complex(re, im)


def is_nonzero(z: Any) -> bool:
    return bool(item(z))


def of_real_part(name: str) -> Callable[..., Any]:
    """What both parts answer alike: they lie in memory in the same way."""

    def method(z: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(z._parts[0], name)(*args, **kwargs)

    method.__name__ = name
    return method


def reduce(z: Any) -> tuple[Any, ...]:
    return _restored, (plain_class(z), *z._parts)


def _restored(kind: Any, re: Any, im: Any) -> Any:
    return composed(re, im)


def data_bytes(z: Any) -> bytes:
    """The elements as they lie in files: each its real part, then its imaginary one."""
    return bytes(host_bytes(view_as_real(z.detach())))


def text_of(z: Any) -> str:
    notes = []
    found = [printing.values_of(part) for part in z._parts]
    first, second = found
    if isinstance(first, str) or isinstance(second, str):
        shape = ", ".join(str(n) for n in z.shape)
        notes = [f"shape=({shape}{',' if z.ndim == 1 else ''})", f"dtype={z.dtype.name}", f"device={z.device!r}"]
        return f"Tensor(<{first if isinstance(first, str) else second}>, {', '.join(notes)})"
    (re, sizes, cut), (im, _, _) = first, second
    cells = _cells(re, im, z._parts[0].dtype)
    body = printing.rows_of(cells, sizes, cut, len("Tensor("))
    if 0 in sizes and len(sizes) > 1:
        notes.append(f"shape={tuple(sizes)}")
    if z.dtype is not dtypes.from_py(1j) or 0 in sizes:
        notes.append(f"dtype={z.dtype.name}")
    if z.device != Device.canonicalize(None):
        notes.append(f"device={z.device!r}")
    if z._wish:
        notes.append("requires_grad=True")
    inside = ", ".join(notes)
    last = body.rpartition("\n")[2]
    if notes and len(last) + len(inside) + 10 > printing.OPTIONS.linewidth:
        return f"Tensor({body},\n       {inside})"
    return f"Tensor({body}{', ' if notes else ''}{inside})"


def _cells(re: list[Any], im: list[Any], dtype: Any) -> list[str]:
    if not re:
        return []
    reals, imags = printing.cells_of(re, dtype), printing.cells_of(im, dtype)
    imags = [text.strip() for text in imags]
    signed = [text if text[0] == "-" else f"+{text}" for text in imags]
    width = max(len(text) for text in signed)
    return [f"{a}{b}j".ljust(len(a) + width + 1) for a, b in zip(reals, signed, strict=True)]


def html_of(z: Any) -> str:
    return f"<pre>{printing.escape(text_of(z))}</pre>"


def buffer(z: Any, flags: int) -> memoryview:
    check_lendable(z, "__buffer__", BufferError)
    return data(z)


def dlpack(z: Any, *, copy: bool | None = None, **kwargs: Any) -> Any:
    from ..interchange.exchange import __dlpack__ as export

    check_lendable(z, "__dlpack__", BufferError)
    if copy is False:
        raise BufferError(f"__dlpack__: a tensor of {z.dtype.name} is two tensors of floats, and copy=False")
    return export(view_as_real(z.detach()).contiguous(), pairs=z.dtype, **kwargs)


def dlpack_device(z: Any) -> Any:
    return z._parts[0].__dlpack_device__()
