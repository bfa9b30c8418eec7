"""What the tables of this folder share: arguments made on both sides, results and gradients compared, and rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tinytg import Tensor, dtypes

from .deliberate import REASONS, Reason, reason

TOLERANCES = {
    "float64": (1e-9, 1e-9), "float32": (2e-4, 2e-5), "float16": (1e-2, 5e-3), "bfloat16": (5e-2, 3e-2),
    "complex128": (1e-9, 1e-9), "complex64": (2e-4, 2e-5),
}  # fmt: skip
Called = Callable[..., Any]
Changed = tuple[int | None, Callable[[Any], Any] | None]
"""A place among leaves, and what of the gradient there is to be compared."""


@dataclass
class Row:
    """What was found of one operation."""

    name: str
    ours: str = ""
    tried: int = 0
    differs: int = 0
    refuses: int = 0
    wrong_inputs: int = 0
    accepts: int = 0
    meant: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def state(self) -> str:
        """One word, or two."""
        if not self.ours:
            return "meant" if self.meant else "missing"
        found = [word for word in ("differs", "refuses", "accepts") if getattr(self, word)]
        return " ".join(found) or ("meant" if self.meant else "same")

    def note(self, word: str, text: str, among: list[Reason] = REASONS) -> None:
        """Counts a sample as ``differs``, ``refuses`` or ``accepts``, or as meant."""
        note = f"{word} {text}"
        why = reason(self.name, note, among)
        self.notes.append(note if why is None else f"meant: {why} ({note[:100]})")
        counted = word if why is None else "meant"
        setattr(self, counted, getattr(self, counted) + 1)


def made(
    value: Any, torch: Any, leaves: list[tuple[Any, Any]] | None = None, other: Called | None = None
) -> Any:  # fmt: skip
    """An argument as one of ours; tensors of PyTorch that require gradients are written down beside ours.

    Args:
      value: the argument.
      torch: the module.
      leaves: where they are written down.
      other: what makes something of an argument that holds no tensor or dtype.
    """
    if isinstance(value, torch.Tensor):
        ours = tensor(value, torch)
        if leaves is not None and value.requires_grad and value.is_leaf:
            ours.requires_grad_()
            leaves.append((value, ours))
        return ours
    if isinstance(value, torch.dtype):
        return getattr(dtypes, str(value).removeprefix("torch."))
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        parts = [made(part, torch, leaves, other) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    if isinstance(value, dict):
        return {key: made(part, torch, leaves, other) for key, part in value.items()}
    return value if other is None else other(value)


def tensor(value: Any, torch: Any) -> Tensor:
    """A tensor of PyTorch as one of ours."""
    value = value.detach()
    if value.is_conj() or value.is_neg():
        value = value.resolve_conj().resolve_neg()
    if not value.is_contiguous() and value.numel() > 1 and 0 not in value.stride():
        # every second element along the last axis of larger memory, as PyTorch's views without order are
        apart = value.new_full((*value.shape[:-1], value.shape[-1] * 2), 99).contiguous()
        apart[..., ::2] = value
        return tensor(apart, torch)[..., ::2]
    if value.dtype in (torch.bfloat16,):
        return Tensor(value.contiguous().view(torch.int16).numpy()).bitcast("bfloat16")
    return Tensor(value.contiguous().numpy())


def flat(value: Any) -> list[Any]:
    """The tensors and numbers of a result, in order."""
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in flat(part)]
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in flat(part)]
    return [value]


def array(value: Any) -> Any:
    """A tensor of either side as numpy's, bfloat16 as float32."""
    if isinstance(value, Tensor):
        return value.detach().float().numpy() if value.dtype.name == "bfloat16" else value.detach().numpy()
    if hasattr(value, "detach"):
        value = value.detach().resolve_conj().resolve_neg()
        return value.float().numpy() if str(value.dtype) == "torch.bfloat16" else value.numpy()
    return np.asarray(value)


def kind(value: Any) -> str:
    """The name of a result's dtype."""
    return str(value.dtype.name) if isinstance(value, Tensor) else str(getattr(value, "dtype", type(value).__name__))


def unequal(want: Any, got: Any, tolerance: tuple[float, float], values: bool) -> str | None:
    """How two results differ; None if they do not."""
    left, right = flat(want), flat(got)
    if len(left) != len(right):
        return f"{len(left)} results, here {len(right)}"
    for a, b in zip(left, right, strict=True):
        if (a is None) != (b is None):
            return f"{a!r:.60} is here {b!r:.60}"
        if a is None or isinstance(a, str):
            continue
        x, y = array(a), array(b)
        if x.shape != y.shape:
            return f"shape {x.shape}, here {y.shape}"
        one, other = kind(a).removeprefix("torch."), kind(b)
        if hasattr(a, "detach") and one != other and (one, other) != ("int64", "int32"):
            return f"dtype {one}, here {other}"
        if values and not np.allclose(y, x, *tolerance, equal_nan=True):
            off = ~np.isclose(y, x, *tolerance, equal_nan=True)
            return f"{off.sum()} of {off.size} values, {x[off].flat[0]} is here {y[off].flat[0]}"
    return None


def _cotangents(outputs: list[Any], torch: Any) -> list[Any]:
    generator = torch.Generator().manual_seed(3)
    return [torch.rand(out.shape, generator=generator, dtype=out.dtype) + 0.5 for out in outputs]


def _weighted(result: Tensor, weights: Tensor) -> Tensor:
    """A sum whose gradient at a result is the weights, as PyTorch has gradients of complex numbers."""
    return (result * weights.conj()).real.sum() if weights.is_complex() else (result * weights).sum()


def gradients(
    want: Any, got: Any, leaves: list[tuple[Any, Any]], tolerance: tuple[float, float], torch: Any,
    changed: Changed = (None, None),
) -> str | None:  # fmt: skip
    """How the gradients differ that flow from two results; None if they do not."""
    special, change = changed
    pairs = [
        (a, b) for a, b in zip(flat(want), flat(got), strict=True)
        if isinstance(a, torch.Tensor) and a.requires_grad and (a.is_floating_point() or a.is_complex())
    ]  # fmt: skip
    if not pairs or not leaves:
        return None
    weights = _cotangents([a for a, _ in pairs], torch)
    theirs = torch.autograd.grad([a for a, _ in pairs], [x for x, _ in leaves], weights, allow_unused=True)
    if not any(x.numel() for x, _ in leaves):
        return None
    parts = [
        _weighted(b, tensor(w, torch)) for (_, b), w in zip(pairs, weights, strict=True) if b.requires_grad
    ]  # fmt: skip
    if not parts:
        none = all(g is None or not g.to_dense().any() for g in theirs)
        return None if none else "no gradient flows"
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    total.backward()
    for place, (g, (_, ours)) in enumerate(zip(theirs, leaves, strict=True)):
        if g is None and ours.grad is None:
            continue
        x = np.zeros(ours.shape) if g is None else array(torch.zeros_like(g.to_dense()) + g.to_dense())
        y = np.zeros(ours.shape) if ours.grad is None else array(ours.grad)
        if place == special and change is not None:
            x, y = change(x), change(y)
        if not np.allclose(y, x, tolerance[0] * 5, tolerance[1] * 5, equal_nan=True):
            off = ~np.isclose(y, x, tolerance[0] * 5, tolerance[1] * 5, equal_nan=True)
            return f"gradient {place}: {off.sum()} of {off.size}, {x[off].flat[0]} is here {y[off].flat[0]}"
    return None


def shown(value: Any) -> str:
    """An argument in few words."""
    if hasattr(value, "detach"):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, (list, tuple)) and any(hasattr(part, "detach") for part in value):
        return f"[{', '.join(map(shown, value))}]"
    return repr(value)[:60]


def table(rows: list[Row], verbose: bool, among: list[Reason] = REASONS) -> str:
    """The rows as text, and a line that counts them."""
    lines = []
    for row in sorted(rows, key=lambda row: (row.state(), row.name)):
        meant = sum(note.startswith("meant") and "accepts" not in note for note in row.notes) if row.ours else 0
        same = row.tried - row.differs - row.refuses - meant
        refused = row.wrong_inputs - row.accepts - (row.meant - meant if row.ours else 0)
        counts = f"{same}/{row.tried}, {refused}/{row.wrong_inputs}"
        lines.append(f"{row.state():16s} {row.name:48s} {row.ours:40s} {counts if row.ours else ''}".rstrip())
        lines += [f"    {note}" for note in (row.notes if verbose else row.notes[:2])]
    words = Counter(row.state() for row in rows)
    lines += [f"nothing was found that is meant so: {', '.join(r.names)}: {r.why}" for r in among if not r.seen]
    return "\n".join([*lines, ", ".join(f"{count} {word}" for word, count in sorted(words.items()))])
