"""Runs samples: on each device and in each kind of number beside numpy or PyTorch, and their gradients beside
differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.fuzz.methods import Array

from tg_lazy import Context
from tg_runtime import Device, DeviceError, parse_dev
from tinytg import Tensor

from . import references
from .samples import Sample, arrays, of_kind, samples

DEVICES = ("CPU", "NUMPY", "MOCK+CUDA:PTX", "DAWN+WEBGPU")
KINDS = {"float": ("float32", "bfloat16"), "integer": ("int32",), "unsigned": ("uint8",), "bool": ("bool",),
         "complex": ("complex64",)}  # fmt: skip
"""The kinds of numbers, and the dtypes that stand for them in the run."""
FROM = {"float": "f", "integer": "i", "unsigned": "i", "bool": "b", "complex": "c"}
PRECISION = {"float64": 1e-9, "complex128": 1e-9, "float32": 2e-4, "complex64": 2e-4, "float16": 2e-2,
             "bfloat16": 6e-2}  # fmt: skip
TIED = frozenset("Tensor.kthvalue Tensor.mode Tensor.sort Tensor.topk Tensor.median Tensor.nanmedian".split())
"""Which of several equal elements they choose is nobody's promise."""
SYMMETRIC = frozenset(
    f"{room}.{name}" for room in ("Tensor", "linalg") for name in "cholesky cholesky_ex eigh eigvalsh lobpcg".split()
)
"""They read one half of a matrix, which is to be symmetric."""
EXPLAINED = {
    ("Tensor.interpolate", "int32"): "rounded", ("Tensor.interpolate", "uint8"): "rounded",
    ("Tensor.interpolate", "bool"): "rounded", ("Tensor.hinge_embedding_loss", "bool"): "targets are 1 and -1",
    ("nn.functional.upsample_bilinear", "uint8"): "rounded",
}
"""What differs from what numpy computes in floats, and how."""
REFUSALS = (TypeError, ValueError, NotImplementedError, RuntimeError, IndexError)
ORDERS = 3
"""How often each operation is differentiated: what can be three times can be any number of times."""


@dataclass
class Row:
    """What is known of an operation.

    Attributes:
      takes: on each device, the dtypes in which every value was right.
      against: what the values were compared with.
      gradient: how often it was differentiated, ``"any"``, ``"none"``, or empty if nobody asked.
      problems: what is wrong.
    """

    takes: dict[str, list[str]] = field(default_factory=dict)
    against: str = ""
    gradient: str = ""
    problems: list[str] = field(default_factory=list)


def missing(device: str) -> str:
    """Why a device cannot be used here; empty if it can."""
    (entry,) = parse_dev(device)
    return Device.load(entry.device).unavailable(entry) or ""


def label(device: str) -> str:
    """A device as the page calls it."""
    return device.rpartition("+")[2]


def flat(value: Any) -> list[Any]:
    """The tensors, arrays and numbers of a result."""
    if isinstance(value, (tuple, list)):
        return [part for item in value for part in flat(item)]
    return [value]


def host(value: Any) -> Array:
    """A result as numpy's array."""
    if not isinstance(value, Tensor):
        return np.asarray(value)
    value = value.detach()
    if value.dtype.name.startswith(("bfloat", "fp8")):
        value = value.float()
    return np.asarray(value.numpy())


def as_kind(sample: Sample, dtype: str) -> Callable[[Array], Array]:
    """How the operands of a sample are made operands of another kind: those of the kind of the first one."""

    def change(array: Array) -> Array:
        kind = of_kind(array)
        if kind != sample.kind:
            return array
        if dtype == "bool":
            return array if kind == "b" else array > 0.5
        if dtype.startswith("complex"):
            return array if kind == "c" else array + 1j * np.roll(array, 1) / 2
        if dtype in ("int32", "uint8"):
            whole = np.rint(np.abs(array) if dtype == "uint8" else array)
            return whole.astype(np.int64)
        return array.astype(np.float64)

    return change


def fitting(found: Sequence[Sample], kind: str) -> list[tuple[Sample, bool]]:
    """The samples that show a kind of number, and whether they were made for it."""
    own = [s for s in found if s.kind == FROM[kind]]
    if own:
        return [(s, True) for s in own]
    others = [s for s in found if s.kind and s.kind != "c"]
    preferred = [s for s in others if s.kind == "f"] or others
    return [(s, False) for s in preferred]


def tensor(array: Array, dtype: str) -> Tensor:
    """An operand on the device in force: of the dtype, or of the plain one of its kind."""
    plain = {"f": "float32", "b": "bool", "c": "complex64"}.get(array.dtype.kind, "int32")
    made = Tensor(np.array(array, plain, order="C"))
    return made if dtype in ("", plain) else made.cast(dtype).realize()


def computed(sample: Sample, dtype: str, device: str) -> list[Any]:
    """The results on a device, as arrays with the names of their dtypes."""
    change = as_kind(sample, dtype)
    with Context(DEV=device):
        args, kwargs = sample.replaced(lambda a: tensor(change(a), dtype if of_kind(a) == sample.kind else ""))
        result = flat(sample.operation()(*args, **kwargs))[: sample.parts]
        return [(host(part), part.dtype.name if isinstance(part, Tensor) else "") for part in result]


def apart(got: Array, want: Array, dtype: str, magnitude: bool = False) -> str:
    """How two arrays differ by more than precision explains; empty if they do not."""
    if got.shape != want.shape:
        return f"shape {got.shape} instead of {want.shape}"
    if not got.size:
        return ""
    if magnitude:
        got, want = np.abs(got), np.abs(want)
    if got.dtype == bool:
        want = want != 0
    if dtype in ("uint8", "int8", "int16", "uint16", "uint32", "int32") and want.dtype.kind in "iu":
        want = want.astype(dtype)
    with np.errstate(all="ignore"):
        scale = np.abs(want[np.isfinite(want)]).max(initial=1.0) if want.dtype.kind in "fciu" else 1.0
        tolerance = PRECISION.get(dtype, 0.0 if want.dtype.kind in "iub" else 1e-6)
        same = np.isclose(got, want, rtol=tolerance, atol=tolerance * float(scale), equal_nan=True)
    if same.all():
        return ""
    place = np.argwhere(~same)[0]
    return f"{int((~same).sum())} of {same.size}: {got[tuple(place)]!r} instead of {want[tuple(place)]!r}"


def differing(results: list[Any], want: list[Array], dtype: str, sample: Sample) -> str:
    """The first difference of results; empty if there is none. Positions of equal elements are free."""
    if len(results) < len(want):
        return f"{len(results)} results instead of {len(want)}"
    for (got, kind), right in list(zip(results, want, strict=False))[: 1 if sample.name in TIED else None]:
        if wrong := apart(got, right, _coarser(kind, dtype), sample.magnitude):
            return wrong
    return ""


def random_apart(results: list[Any], want: list[Any] | None) -> str:
    """What is wrong with random results: other shapes or dtypes than elsewhere, or no numbers."""
    for place, (got, dtype) in enumerate(results):
        if got.dtype.kind in "fc" and not np.isfinite(got).all():
            return "not every number is finite"
        if want is not None and (got.shape, dtype) != (want[place][0].shape, want[place][1]):
            return f"{got.shape} of {dtype}"
    return ""


def measure(name: str, devices: Sequence[str]) -> Row:
    """Everything about one operation."""
    row, found = Row(takes={label(device): [] for device in devices}), samples(name)
    if not found:
        return row
    for kind, names in KINDS.items():
        for dtype in names:
            _one_dtype(row, found, kind, dtype, devices)
    if not any(s.kind for s in found):
        _one_dtype(row, found, "", "float32", devices)
    if "NUMPY" in devices and not found[0].drawn:
        row.gradient = order(found, row)
    return row


def _one_dtype(row: Row, found: list[Sample], kind: str, dtype: str, devices: Sequence[str]) -> None:
    """Runs the samples of one dtype on every device, and writes down what came out."""
    which = fitting(found, kind) if kind else [(s, True) for s in found]
    refused = 0
    outcomes: dict[str, bool] = {label(device): bool(which) for device in devices}
    for sample, own in which:
        known = references.of(sample, as_kind(sample, dtype), dtype, own)
        first = None if known or sample.drawn or "NUMPY" in devices else _elsewhere(sample, dtype)
        said: dict[str, str] = {}
        for device in devices:
            try:
                results = computed(sample, dtype, device)
            except OverflowError:  # a negative number beside unsigned ones
                which = [(s, o) for s, o in which if s is not sample]
                break
            except (*REFUSALS, DeviceError) as error:
                said[label(device)] = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:160]}"
                outcomes[label(device)] = False
                continue
            wrong = ""
            if sample.drawn:
                wrong = random_apart(results, first)
                row.against = "shapes, dtypes"
            elif known:
                told = [(differing(results, want, dtype, sample), who) for want, who in known]
                wrong = " / ".join(f"{who}: {w}" for w, who in told) if all(w for w, _ in told) else ""
                agree = [who for w, who in told if not w]
                row.against = row.against or (agree[0] if agree else "")
            elif first is not None:
                wrong = differing(results, [a for a, _ in first], dtype, sample)
            if wrong and (sample.name, dtype) not in EXPLAINED:
                outcomes[label(device)] = False
                how = "" if own else " (operands of another kind)"
                row.problems.append(f"{label(device)} {dtype}{how}: {wrong}")
            first = first or results
        if len(said) == len(devices):
            refused += 1
        elif said and "float64" not in str(said) and "float16" not in str(said):
            row.problems.append(f"{dtype}: refused by {said}")
    if which and refused == len(which):
        return
    if not row.against and any(outcomes.values()):
        row.against = "devices"
    for device, good in outcomes.items():
        if good:
            row.takes[device].append(dtype)


def _elsewhere(sample: Sample, dtype: str) -> list[Any] | None:
    """What the device NUMPY says, where it is not among those that are asked."""
    try:
        return computed(sample, dtype, "NUMPY")
    except REFUSALS:
        return None


def _coarser(result: str, operand: str) -> str:
    """Of two dtypes, that which explains larger errors."""
    if not result or result not in PRECISION:
        return result
    return max(result, operand, key=lambda name: PRECISION.get(name, 0.0))


def order(found: list[Sample], row: Row) -> str:
    """How often an operation can be differentiated, each time compared with differences along a direction."""
    smooth = [s for s in found if s.kind == "f"]
    outcomes = [_order(sample, row) for sample in smooth[:2]]
    known = [outcome for outcome in outcomes if outcome is not None]
    if not known:
        return "none"
    least = min(known)
    return "any" if least >= ORDERS else str(least)


def _order(sample: Sample, row: Row) -> int | None:
    random = np.random.default_rng(5)
    operands = [a for a in arrays((sample.args, sample.kwargs)) if a.dtype.kind == "f"]
    starts = [a + random.uniform(0.01, 0.04, a.shape) for a in operands]
    ways = [np.asarray(random.uniform(-1, 1, a.shape)) for a in operands]
    if sample.name in SYMMETRIC:
        starts, ways = ([a + np.swapaxes(a, -1, -2) for a in some] for some in (starts, ways))
    weights: list[Array] = []
    rounded = False

    def slopes(t: float, orders: int) -> list[float] | None:
        """The derivatives by ``t`` of a weighted sum of the results, those of order 0, 1, …"""
        nonlocal rounded
        with Context(DEV="NUMPY"):
            Tensor.manual_seed(0)  # factors of random projections keep their signs between the points
            parameter = Tensor(t, dtype="float64", requires_grad=True)
            moved = [Tensor(a) + parameter * Tensor(w) for a, w in zip(starts, ways, strict=True)]
            after = iter(moved)
            args, kwargs = sample.replaced(lambda a: next(after) if a.dtype.kind == "f" else Tensor(a))
            results = [r for r in flat(sample.operation()(*args, **kwargs))[: sample.parts] if isinstance(r, Tensor)]
            results = [part for r in results for part in ((r.real, r.imag) if r.is_complex() else (r,))]
            results = [r for r in results if r.is_floating_point()]
            results = [r for r in results if r.requires_grad]
            if not results:
                return None
            rounded = any(r.dtype.name not in ("float64", "complex128") for r in results)
            total: Tensor | None = None
            for place, result in enumerate(results):
                if place == len(weights):
                    weights.append(random.uniform(0.5, 1.5, tuple(int(n) for n in result.shape)))
                part = (result.double() * Tensor(weights[place])).sum()
                total = part if total is None else total + part
            assert total is not None
            values = [float(total.item())]
            for _ in range(orders):
                if not total.requires_grad:
                    values.append(0.0)
                    continue
                (total,) = total.gradient(parameter, materialize_grads=True)
                values.append(float(total.item()))
            return values

    try:
        with np.errstate(all="ignore"):
            if slopes(0.0, 0) is None:
                return None
    except REFUSALS:
        return 0
    done = 0
    for wanted in range(1, ORDERS + 1):
        try:
            with np.errstate(all="ignore"):
                here = slopes(0.0, wanted)
                step = 1e-4
                above, below = slopes(step, wanted - 1), slopes(-step, wanted - 1)
        except REFUSALS:
            return done
        assert here is not None and above is not None and below is not None
        estimate = (above[-1] - below[-1]) / (2 * step)
        scale = max(1.0, abs(estimate), abs(above[-1]))
        if not (math.isfinite(here[-1]) and (rounded or abs(here[-1] - estimate) <= 2e-4 * scale)):
            row.problems.append(f"derivative {wanted} is {here[-1]!r}, differences give {estimate!r}")
            return done
        done = wanted
    return done
