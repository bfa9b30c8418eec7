"""Tensors as text: rows, the precision of the dtype, large ones summarised; as numpy prints arrays.

The values of a small tensor are computed to be shown. Of one of more elements than ``threshold`` only the edges are
shown, and only if it is in memory already.
"""

from __future__ import annotations

import math

from tg_dtype import DType, dtypes, to_bits, truncate
from tg_runtime import Device, capturing
from tg_shape import Bind, prod

from ..host import transfer
from ..memory import disk
from .reading import host_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..autograd.functions import RowSparse

# numpy's rule for a power of ten: ten to the digits that a dtype keeps, eight at most; those of float16 for
# narrower dtypes, which numpy has not. It compares in the dtype of the numbers (FloatingFormat, numpy 2.4).
_LARGEST_PLAIN = {8: 1e8, 4: 1e6, 2: 1e3, 1: 1e3}
_SMALLEST_PLAIN, _WIDEST_RANGE = 1e-4, 1e3


class _Options:
    """How tensors are printed; see :func:`set_printoptions`."""

    precision = 8
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode: bool | None = None


OPTIONS = _Options()
_PROFILES: dict[str, dict[str, float]] = {
    "default": {},
    "short": {"precision": 2, "edgeitems": 2},
    "full": {"threshold": math.inf},
}
"""What differs from what is at first; the names are PyTorch's (``torch.set_printoptions``)."""


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors are printed; what is None stays as it is.

    Args:
      precision: digits behind the point at most (8 at first; fewer are shown where they tell the number from all others
        of its dtype).
      threshold: tensors of more elements are summarised (1000 at first).
      edgeitems: elements shown at each end of an axis of those (3 at first).
      linewidth: characters in a line (80 at first).
      profile: ``"default"`` is what all of it was at first; ``"short"`` has a precision of 2, and 2 elements at each
        end; ``"full"`` never summarises. What is given beside it goes first.
      sci_mode: True always shows powers of ten, False never; they are shown where numbers differ much at first.

    Raises:
      ValueError: if a number is negative, or there is no such profile.

    Example:
      >>> from tg_frontend import Tensor, set_printoptions
      >>> set_printoptions(precision=3)
      >>> Tensor([1 / 3, 2.5]).sqrt()
      Tensor([0.577, 1.581])
      >>> set_printoptions(precision=8)
    """
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    if profile is not None and profile not in _PROFILES:
        raise ValueError(f"set_printoptions: profile {profile!r}; there are {', '.join(_PROFILES)}")
    for name, number in given.items():
        if number is not None and number < 0:
            raise ValueError(f"set_printoptions: {name} {number} is negative")
    if profile is not None:
        vars(OPTIONS).clear()  # what all of it was at first
        vars(OPTIONS).update(_PROFILES[profile])
    for name, number in given.items():
        if number is not None:
            setattr(OPTIONS, name, number)
    if sci_mode is not None:
        OPTIONS.sci_mode = sci_mode


def text_of(tensor: Any) -> str:
    """The text of a tensor: its values, and what of dtype, device and requires_grad is not the default."""
    rows = tensor._row_sparse()
    if rows is not None:
        return _text_of_rows(tensor, rows)
    found = values_of(tensor)
    notes = []
    if isinstance(found, str):
        shape = ", ".join(_size(dim) for dim in tensor.shape)
        notes = [f"shape=({shape}{',' if tensor.ndim == 1 else ''})", f"dtype={tensor.dtype.name}",
                 f"device={tensor.device!r}"]  # fmt: skip
        body = f"<{found}>"
    else:
        values, shape_shown, cut = found
        body = _nested(values, shape_shown, cut, tensor.dtype, len("Tensor("))
        if 0 in shape_shown and len(shape_shown) > 1:
            notes.append(f"shape={tuple(shape_shown)}")
        if tensor.dtype not in (dtypes.default_float, dtypes.default_int, dtypes.bool) or 0 in shape_shown:
            notes.append(f"dtype={tensor.dtype.name}")
        if tensor.device != Device.canonicalize(None):
            notes.append(f"device={tensor.device!r}")
    if tensor._wish:
        notes.append("requires_grad=True")
    inside = ", ".join(notes)
    last = body.rpartition("\n")[2]
    if notes and not isinstance(found, str) and len(last) + len(inside) + 10 > OPTIONS.linewidth:
        return f"Tensor({body},\n       {inside})"
    return f"Tensor({body}{', ' if notes else ''}{inside})"


def _text_of_rows(tensor: Any, rows: RowSparse) -> str:
    """The text of a row-sparse tensor: which rows are there, and what they hold."""
    lines = []
    for name, lazy in (("indices", rows.index), ("values", rows.values)):
        part, start = type(tensor)._value(lazy), f"Tensor({name}="
        found = values_of(part)
        if isinstance(found, str):
            lines.append(f"{name}=<{found}: shape {tuple(part.shape)}>")
        else:
            lines.append(f"{name}={_nested(*found, part.dtype, len(start))}")
    notes = [f"shape=({', '.join(_size(dim) for dim in tensor.shape)}{',' if tensor.ndim == 1 else ''})"]
    if tensor.dtype is not dtypes.default_float:
        notes.append(f"dtype={tensor.dtype.name}")
    if tensor.device != Device.canonicalize(None):
        notes.append(f"device={tensor.device!r}")
    return f"Tensor({lines[0]},\n       {lines[1]}, {', '.join(notes)})"


def html_of(tensor: Any) -> str:
    """The HTML that a notebook shows: a table of a vector or matrix, the text of others."""
    if tensor._row_sparse() is not None:
        return f"<pre>{escape(text_of(tensor))}</pre>"
    found = values_of(tensor)
    about = f"shape {tuple(tensor.shape)}, {tensor.dtype.name}, {tensor.device}"
    if isinstance(found, str) or len(found[1]) not in (1, 2) or 0 in found[1]:
        return f"<pre>{escape(text_of(tensor))}</pre>"
    values, shape, cut = found
    cells = cells_of(values, tensor.dtype)
    columns = shape[-1]
    rows = [cells[i : i + columns] for i in range(0, len(cells), columns)]
    cut_rows, cut_columns = (cut[0], cut[1]) if len(shape) == 2 else (False, cut[0])
    if cut_columns:
        rows = [[*row[: columns // 2], "…", *row[columns // 2 :]] for row in rows]
    if cut_rows:
        rows.insert(len(rows) // 2, ["…"] * len(rows[0]))
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell.strip())}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(about)}</caption>{lines}</table>"


def escape(text: str) -> str:
    """Text as HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _size(dim: Any) -> str:
    return repr(dim) if isinstance(dim, (int, Bind)) else str(dim)


def values_of(tensor: Any) -> tuple[list[Any], list[int], list[bool]] | str:
    """The numbers to show in order, the shape in which they stand, and which axes are cut; or why there are none."""
    try:
        shape = tensor._ints()
    except ValueError:
        return "a size is bound to no value"
    if capturing():
        return "being recorded"
    small = prod(shape) <= OPTIONS.threshold
    lazy = tensor.lazydata
    if not small and not lazy.base.is_realized and lazy.base.srcs:
        return "not computed"
    if transfer.runs_nothing(tensor.device):
        return "in a file" if not small else _downloaded(tensor.detach().to(disk.HOST), list(shape))
    kept = tensor.detach()
    edge = OPTIONS.edgeitems
    cut = [not small and dim > 2 * edge for dim in shape]
    for axis, short in enumerate(cut):
        if short:
            ends = [(0, edge), (shape[axis] - edge, shape[axis])]
            first, last = (kept.shrink([b if i == axis else None for i in range(len(shape))]) for b in ends)
            kept = first.cat(last, dim=axis)
    shown = [2 * edge if short else dim for dim, short in zip(shape, cut, strict=True)]
    out = _downloaded(kept, shown)
    return out if isinstance(out, str) else (out[0], shown, cut)


def _downloaded(tensor: Any, shape: list[int]) -> tuple[list[Any], list[int], list[bool]] | str:
    try:
        flat = transfer.unpack(host_bytes(tensor), tensor.dtype) if prod(shape) else []
    except Exception as error:  # whoever looks at a tensor, in a debugger say, is told and not stopped
        return f"cannot be computed: {type(error).__name__}: {error}"
    return flat, shape, [False] * len(shape)


def _nested(values: list[Any], shape: list[int], cut: list[bool], dtype: DType, indent: int) -> str:
    return rows_of([] if 0 in shape else cells_of(values, dtype), shape, cut, indent)


def _rows(cells: list[str], shape: list[int], cut: list[bool], indent: int, width: int) -> str:
    """Nested rows in brackets, the first of which stands behind ``indent`` characters; lines of at most ``width``."""
    inner = prod(shape[1:])
    assert isinstance(inner, int)
    pad = " " * (indent + 1)
    if len(shape) > 1:
        rows = [cells[i * inner : (i + 1) * inner] for i in range(shape[0])]
        parts = [_rows(row, shape[1:], cut[1:], indent + 1, width - 1) for row in rows]
        if cut[0]:
            parts.insert(len(parts) // 2, "...")
        return "[" + ("," + "\n" * (len(shape) - 1) + pad).join(parts) + "]"
    words = list(cells)
    if cut[0]:
        words.insert(len(words) // 2, "...")
    lines, line = [], ""
    for word in words:
        if line and len(pad) + len(line) + 2 + len(word) > width - 1:
            lines.append(f"{line},")
            line = ""
        line += f", {word}" if line else word
    return "[" + f"\n{pad}".join([*lines, line]) + "]"


def rows_of(cells: list[str], shape: list[int], cut: list[bool], indent: int) -> str:
    """Cells as nested rows behind ``indent`` characters."""
    if not shape:
        return cells[0].strip()
    return "[]" if 0 in shape else _rows(cells, shape, cut, indent, OPTIONS.linewidth - 1)


def cells_of(values: list[Any], dtype: DType) -> list[str]:
    """The numbers as texts of one length, the points of fractions under one another."""
    texts = _fractions(values, dtype) if dtype.kind == "float" else [str(value) for value in values]
    width = 5 if dtype.kind == "bool" else max(len(text) for text in texts)
    return [text.rjust(width) for text in texts]


def _fractions(values: list[float], dtype: DType) -> list[str]:
    finite = [abs(value) for value in values if math.isfinite(value) and value]
    power = OPTIONS.sci_mode
    if power is None:
        power = bool(finite) and (
            max(finite) >= _LARGEST_PLAIN[dtype.itemsize]
            or min(finite) < truncate(_SMALLEST_PLAIN, dtype)
            or truncate(max(finite) / min(finite), dtype) > _WIDEST_RANGE
        )
    shortest = {value: _shortest(value, dtype) for value in set(finite)}
    if power:
        digits = max((_digits(text) for text in shortest.values()), default=0)
        texts = [_special(v) or f"{v:#.{digits}e}" for v in values]
        long = max((len(text.partition("e")[2]) - 1 for text in texts if "e" in text), default=2)
        return [f"{text[: text.index('e') + 2]}{text[text.index('e') + 2 :].zfill(long)}" if "e" in text else text
                for text in texts]  # fmt: skip
    texts = [_special(v) or _plain(v, shortest.get(abs(v), "0")) for v in values]
    behind = max((len(text.partition(".")[2]) for text in texts), default=0)
    return [text + " " * (behind - len(text.partition(".")[2])) if "." in text else text for text in texts]


def _digits(shortest: str) -> int:
    """How many digits behind the point of a mantissa are shown."""
    mantissa = shortest.partition("e")[0].partition(".")[2]
    if len(mantissa) <= OPTIONS.precision:
        return len(mantissa)
    rounded = f"{float(shortest):.{OPTIONS.precision}e}".partition("e")[0]
    return len(rounded.partition(".")[2].rstrip("0"))


def number_of(tensor: Any) -> str:
    """The only element of a tensor as a number without brackets."""
    found = values_of(tensor)
    return f"<{found}>" if isinstance(found, str) else cells_of(found[0], tensor.dtype)[0].strip()


def _special(value: float) -> str:
    return "" if math.isfinite(value) else str(value)


def _plain(value: float, shortest: str) -> str:
    """Without a power of ten: the digits that are needed, ``precision`` of them behind the point at most."""
    digits, _, exponent = shortest.partition("e")
    behind = max(0, len(digits.replace(".", "")) - 1 - int(exponent or 0))
    text = f"{value:.{min(behind, OPTIONS.precision)}f}"
    return (text.rstrip("0") if "." in text else f"{text}.") if value else f"{'-' if text[0] == '-' else ''}0."


def _shortest(value: float, dtype: DType) -> str:
    """The fewest digits, as ``d.ddde±dd``, that are read back as ``value`` in its dtype."""
    if dtype.itemsize == 8:
        digits = repr(value)
        return f"{value:.{max(0, len(digits.partition('e')[0].replace('.', '').strip('0')) - 1)}e}"
    bits = to_bits(value, dtype)
    for count in range(9):
        text = f"{value:.{count}e}"
        if to_bits(float(text), dtype) == bits:
            return text
    return f"{value:.8e}"
