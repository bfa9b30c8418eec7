"""Random programs over every method of Tensor: lazily, eagerly, half and half, in TinyJit; and their gradients.

Run eagerly, each step is compared with numpy on the values that the step was given, so that errors do not add up. Run
in the other ways, the outputs are compared with the eager ones: whatever is fused, replayed or planned anew must not
change them. A method that jumps (floor, a comparison, sorting) is only given values that are exact in any order of
computing.
Gradients in float64 are compared with finite differences along a random direction.

    hatch run fuzz programs [--seconds 60] [--seed 0] [--device CPU]
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tinytg import Tensor, TinyJit

from .methods import MOST, ROWS, Array, Call, Pool, Ref, Value
from .methods.table import Row

DTYPES = {"f": ("float64", "float64", "float32", "float32", "float16", "bfloat16"), "b": ("bool",),
          "i": ("int32", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32")}  # fmt: skip
COMPLEX = ("complex128", "complex64")
EPSILON = {"complex128": 1e-12, "complex64": 4e-6, "float64": 1e-12, "float32": 2e-6, "float16": 3e-3,
           "bfloat16": 2e-2, "fp8e4m3": 0.2, "fp8e5m2": 0.4, "fp8e4m3fnuz": 0.2, "fp8e5m2fnuz": 0.4}  # fmt: skip
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65)
LARGE = (1, 2, 3, 97, 128, 251, 509, 1000, 1021, 2039)
WRITES = frozenset(
    "scatter scatter_add scatter_reduce index_add index_copy index_put index_reduce put masked_scatter select_scatter "
    "slice_scatter diagonal_scatter".split()
)
"""Methods that want their operands of one type."""


TOLD = frozenset("broadcast_tensors cast cdouble cfloat float_power meshgrid new_tensor type_as".split())
"""Methods of which a name or an argument says the dtype of the result."""


@dataclass(frozen=True)
class Input:
    """A tensor made of an array."""

    array: Array
    dtype: str


@dataclass(frozen=True)
class Step:
    """A call and which of its results is kept."""

    call: Call
    part: int | None


@dataclass
class Program:
    """Inputs and steps in one numbering; a step refers to what stands before it."""

    steps: list[Input | Step] = field(default_factory=list)

    def text(self, outputs: Sequence[int]) -> str:
        """As Python."""
        lines = []
        for i, step in enumerate(self.steps):
            if isinstance(step, Input):
                values = step.array.tolist() if step.array.size <= 40 else f"<{step.array.shape} values>"
                lines.append(f"t{i} = Tensor({values}, dtype={step.dtype!r})")
                continue
            args = [_text(a) for a in step.call.args]
            kwargs = [f"{k}={_text(v)}" for k, v in step.call.kwargs.items()]
            head = args.pop(0) if isinstance(step.call.args[0], Ref) else "Tensor"
            part = "" if step.part is None else f"[{step.part}]"
            lines.append(f"t{i} = {head}.{step.call.name}({', '.join(args + kwargs)}){part}")
        return "\n".join([*lines, f"# outputs: {', '.join(f't{i}' for i in outputs)}"])

    def without_unused(self, outputs: Sequence[int]) -> tuple[Program, list[int]]:
        """Only what the outputs need."""
        needed = set(outputs)
        for i in reversed(range(len(self.steps))):
            step = self.steps[i]
            if i in needed and isinstance(step, Step):
                needed.update(_refs((step.call.args, step.call.kwargs)))
        number = {old: new for new, old in enumerate(sorted(needed))}
        kept = [_renumbered(self.steps[old], number) for old in sorted(needed)]
        return Program(kept), [number[i] for i in outputs]


def _text(value: Any) -> str:
    if isinstance(value, Ref):
        return f"t{value.number}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_text, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def _refs(value: Any) -> list[int]:
    if isinstance(value, Ref):
        return [value.number]
    if isinstance(value, dict):
        return _refs(list(value.values()))
    return [n for v in value for n in _refs(v)] if isinstance(value, (tuple, list)) else []


def _mapped(value: Any, of: Callable[[int], Any]) -> Any:
    if isinstance(value, Ref):
        return of(value.number)
    if isinstance(value, dict):
        return {k: _mapped(v, of) for k, v in value.items()}
    return type(value)(_mapped(v, of) for v in value) if isinstance(value, (tuple, list)) else value


def _renumbered(step: Input | Step, number: dict[int, int]) -> Input | Step:
    if isinstance(step, Input):
        return step
    call = step.call
    args, kwargs = (_mapped(v, lambda n: Ref(number[n])) for v in (call.args, call.kwargs))
    return Step(Call(call.name, args, kwargs, call.reference), step.part)


@dataclass(frozen=True)
class Finding:
    """A program that goes wrong.

    Attributes:
      seed: draws it again.
      problem: what is wrong.
      program: the shortest found, as Python.
    """

    seed: int
    problem: str
    program: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.problem}\n{self.program}\n"


def applied(step: Step, tensors: Sequence[Tensor]) -> Tensor:
    """What a step computes."""
    args, kwargs = (_mapped(v, lambda n: tensors[n]) for v in (step.call.args, step.call.kwargs))
    first = args[0]
    if isinstance(first, Tensor) and not isinstance(getattr(type(first), step.call.name), staticmethod):
        found = getattr(first, step.call.name)
        result = found if isinstance(found, Tensor) else found(*args[1:], **kwargs)  # a property, or a method
    else:
        result = getattr(Tensor, step.call.name)(*args, **kwargs)
    kept: Tensor = result if step.part is None else result[step.part]
    return kept


def expected(step: Step, values: Sequence[Array]) -> Array:
    """What numpy says."""
    args, kwargs = (_mapped(v, lambda n: values[n]) for v in (step.call.args, step.call.kwargs))
    with np.errstate(all="ignore"):
        result = step.call.reference(*args, **kwargs)
    return np.asarray(result if step.part is None else result[step.part])


def host(tensor: Tensor) -> Array:
    """The values in float64, complex128, int64 or bool."""
    if tensor.is_complex():
        return np.asarray(tensor.numpy(), np.complex128)
    if tensor.is_floating_point():
        return np.asarray(tensor.double().numpy() if tensor.dtype.itemsize > 2 else tensor.float().numpy(), np.float64)
    found = tensor.numpy()
    return found if found.dtype == bool else found.astype(np.int64)


def apart(found: Array, right: Array, dtype: str, factor: float = 1.0, made_of: float = 0.0) -> str:
    """How two results differ beyond what the type's precision explains; empty if they do not.

    Numbers as large as ``made_of`` may have cancelled each other: what is left of them is rounding.
    """
    if found.shape != right.shape:
        return f"has shape {found.shape} instead of {right.shape}"
    if found.dtype.kind != "c" and right.dtype.kind == "c":
        return f"is of {dtype}, not complex"
    if not found.size:
        return ""
    if dtype not in EPSILON:
        bits = 8 * np.dtype(dtype).itemsize
        wrapped = right if dtype == "bool" else right.astype(np.int64).astype(dtype).astype(np.int64)
        wrong = found != wrapped
        worst = f"{bits} bits"
    else:
        most = {"float16": 65504.0, "float32": 3.4e38}.get(dtype, math.inf)
        scale = np.abs(right[np.isfinite(right)]).max(initial=0.0)
        close = np.abs(found - right) <= factor * EPSILON[dtype] * (np.abs(right) + scale + max(1e-6, 0.01 * made_of))
        same = (found == right) | (np.isnan(found) & np.isnan(right)) | (np.abs(right) > most)
        wrong = ~(close | same)
        worst = f"tolerance {factor * EPSILON[dtype]:.0e}"
    if not wrong.any():
        return ""
    at = tuple(int(n) for n in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {found.size} wrong ({worst}): at {at} {found[at]!r} instead of {right[at]!r}"


def drawn(
    pick: random.Random, length: int, sizes: Sequence[int] = SIZES, smooth: bool = False,
    rows: dict[str, Row] = ROWS, kind_of_pool: type[Pool] = Pool,
) -> Program:  # fmt: skip
    """A random program.

    Args:
      pick: draws it.
      length: how many steps, at the most.
      sizes: of axes.
      smooth: of float64 and complex128, and of methods that have a gradient everywhere.
      rows: the methods.
      kind_of_pool: makes inputs.
    """
    pool, program = kind_of_pool(pick), Program()

    def adopt() -> None:
        while len(program.steps) < len(pool.values):
            array = pool.values[len(program.steps)].array
            kind = pool.values[len(program.steps)].kind
            fitting = [d for d in DTYPES[kind] if kind != "i" or _fits(array, d)]
            if array.dtype.kind == "c":
                fitting = list(COMPLEX)
            program.steps.append(Input(array, fitting[0] if smooth and kind == "f" else pick.choice(fitting)))

    def of_one_type(call: Call) -> None:
        """What is written has the type of what it is written into."""
        operands = [arg.number for arg in call.args if isinstance(arg, Ref)]
        first, source = operands[0], operands[-1]
        step = program.steps[first]
        if isinstance(step, Input):
            made = program.steps[source]
            assert isinstance(made, Input)
            program.steps[source] = Input(made.array, step.dtype)

    for _ in range(pick.randint(1, 3)):
        ndim = pick.choice([0, 1, 1, 2, 2, 2, 3, 3, 4])
        shape = [pick.choice(sizes) for _ in range(ndim)]
        while math.prod(shape) > MOST // 4:
            shape[shape.index(max(shape))] = 2
        if smooth or pick.random() < 0.7:
            pool.floats(*shape)
        else:
            pool.ints(0, 12, *shape)
    adopt()
    names = [name for name, r in rows.items() if r.smooth] if smooth else list(rows)
    tries = 0
    while sum(isinstance(s, Step) for s in program.steps) < length and tries < 40 * length:
        tries += 1
        before, name = len(pool.values), pick.choice(names)
        i = len(pool.values) - 1 - min(pick.randrange(len(pool.values)), pick.randrange(len(pool.values)))
        row, first = rows[name], pool.values[i]
        if row.wants_exact and not first.exact:
            continue
        with np.errstate(all="ignore"):
            call = row.draw(pool, i)
        if call is None:
            del pool.values[before:]
            continue
        if name == "bitcast":
            width = {"int8": "uint8", "uint8": "int8", "int16": "uint16", "uint16": "int16", "int32": "uint32",
                     "uint32": "int32", "int64": "uint64"}  # fmt: skip
            source = program.steps[i]
            if not isinstance(source, Input) or first.array.min(initial=0) < 0:
                continue
            call = Call(name, (call.args[0], width[source.dtype]), {}, call.reference)
        values = [v.array for v in pool.values]
        try:
            args, kwargs = (_mapped(v, values.__getitem__) for v in (call.args, call.kwargs))
            with np.errstate(all="ignore"):
                result = call.reference(*args, **kwargs)
        except (ValueError, IndexError, TypeError):
            raise RuntimeError(f"the reference of {name} does not take {call.args} {call.kwargs}") from None
        parts = result if isinstance(result, (tuple, list)) else [result]
        arrays = [np.asarray(p) for p in parts]
        bounded = all(a.size <= MOST and a.ndim <= 6 and _bounded(a) for a in arrays)
        refs = _refs((call.args, call.kwargs))
        fixed = row.exact and all(pool.values[n].exact for n in refs)
        if not bounded or (row.wants_exact and not all(pool.values[n].exact for n in refs)):
            del pool.values[before:]
            continue
        writes = name in WRITES
        if writes and not (
            isinstance(program.steps[call.args[0].number], Input)
            and (first.array.dtype.kind == "c" or all(pool.values[n].array.dtype.kind != "c" for n in refs))
        ):
            del pool.values[before:]
            continue
        adopt()
        if writes:
            of_one_type(call)
        if row.wide:
            wide = "float64" if smooth else pick.choice(("float32", "float64"))
            floats = [n for n in refs if pool.values[n].kind == "f"]
            if any(pool.values[n].array.dtype.kind == "c" for n in floats):
                wide = {"float64": "complex128", "float32": "complex64"}[wide]
            for n in floats:
                program.steps[n] = Input(pool.values[n].array.astype(complex if wide in COMPLEX else float), wide)
        for k, array in enumerate(arrays):
            program.steps.append(Step(call, k if isinstance(result, (tuple, list)) else None))
            kept = array.astype(np.float64) if array.dtype.kind == "f" else array
            kept = kept.astype(np.complex128) if kept.dtype.kind == "c" else kept
            pool.values.append(Value(kept, fixed and _short(kept)))
        assert len(pool.values) == len(program.steps), name
    return program


def _fits(array: Array, dtype: str) -> bool:
    info = np.iinfo(dtype)
    return bool(array.size == 0 or (array.min() >= info.min and array.max() <= info.max))


def _bounded(array: Array) -> bool:
    if array.dtype.kind == "b" or not array.size:
        return True
    numbers = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return bool(np.isfinite(numbers).all() and np.abs(numbers).max() < 100)


def _short(array: Array) -> bool:
    """Whether fractions are of few enough digits that every type and order of computing keeps them."""
    if array.dtype.kind == "c":
        return _short(array.real) and _short(array.imag)
    return array.dtype.kind != "f" or bool(np.all(np.abs(array) < 16) and np.all(array * 8 == np.rint(array * 8)))


def tensors_of(program: Program) -> list[Tensor]:
    """The inputs, realised, in their places; None stands for steps."""
    made = []
    for step in program.steps:
        made.append(Tensor(step.array).cast(step.dtype).contiguous().realize() if isinstance(step, Input) else None)
    return made  # type: ignore[return-value]


def evaluated(
    program: Program, inputs: Sequence[Tensor], after: Callable[[Tensor], Any] = lambda t: None
) -> list[Tensor]:
    """Every value, given the inputs; ``after`` sees each as it is made."""
    tensors = list(inputs)
    for i, step in enumerate(program.steps):
        if isinstance(step, Step):
            tensors[i] = applied(step, tensors)
            after(tensors[i])
    return tensors


def sinks(program: Program) -> list[int]:
    """The steps that no other uses."""
    used = {n for s in program.steps if isinstance(s, Step) for n in _refs((s.call.args, s.call.kwargs))}
    return [i for i, s in enumerate(program.steps) if isinstance(s, Step) and i not in used]


def eagerly(program: Program) -> tuple[list[Array], list[str], str, int]:
    """Values and types of all steps, and the first that differs from numpy, with its number."""
    tensors, values, types = tensors_of(program), list[Array](), list[str]()
    for i, step in enumerate(program.steps):
        if isinstance(step, Step):
            try:
                tensors[i] = applied(step, tensors).realize()
                found = host(tensors[i])
            except Exception as error:
                return values, types, f"t{i} eagerly: {type(error).__name__}: {error}", i
            kind = tensors[i].dtype.name
            given = [EPSILON.get(types[n], 0.0) for n in _refs((step.call.args, step.call.kwargs))]
            factor = 32.0 * max([1.0, *(e / EPSILON[kind] for e in given)]) if kind in EPSILON else 1.0
            wrong = apart(found, _cast(expected(step, values), kind), kind, factor, largest(program, values)[i])
            wrong = wrong or _width(step, kind, types, values)
            if wrong:
                return values, types, f"t{i} eagerly: {wrong}", i
        values.append(host(tensors[i]))
        types.append(tensors[i].dtype.name)
    return values, types, "", -1


def _width(step: Step, found: str, types: Sequence[str], values: Sequence[Array]) -> str:
    """Whether a complex result is as wide as its operands; without axes they count only where none has any."""
    operands = [(types[n], values[n].ndim) for n in _refs((step.call.args, step.call.kwargs))]
    if found not in COMPLEX or not operands or step.call.name in TOLD or "dtype" in step.call.kwargs:
        return ""
    deciding = [dtype for dtype, ndim in operands if ndim] or [dtype for dtype, _ in operands]
    wide, weak = ({dtype in ("complex128", "float64") for dtype in some}
                  for some in (deciding, [dtype for dtype, ndim in operands if not ndim]))  # fmt: skip
    right = "complex128" if True in wide else "complex64"
    return "" if found == right or True in weak else f"is of {found}, not {right}"


def largest(program: Program, values: Sequence[Array]) -> list[float]:
    """Of every step, the largest number of those that it is computed from."""
    found: list[float] = []
    for step, value in itertools.zip_longest(program.steps, values):
        refs = _refs((step.call.args, step.call.kwargs)) if isinstance(step, Step) else []
        numbers = np.abs(np.asarray(0.0 if value is None else value)).astype(np.float64)
        own = numbers[np.isfinite(numbers)].max(initial=0.0)
        found.append(max([float(own), *(found[n] for n in refs)]))
    return found


def _cast(array: Array, dtype: str) -> Array:
    if dtype == "bool":
        return array.astype(bool)
    if dtype in COMPLEX or array.dtype.kind == "c":
        return array.astype(np.complex128)
    return array.astype(np.float64 if dtype in EPSILON else np.int64)


def otherwise(program: Program, mode: str, pick: random.Random, values: list[Array], types: list[str],
              outputs: list[int]) -> str:  # fmt: skip
    """Runs it in another way. Returns what is wrong."""
    coarsest = max((EPSILON.get(t, 0.0) for t in types), default=0.0)
    inputs = tensors_of(program)
    try:
        if mode == "lazy":
            tensors = evaluated(program, inputs)
            tensors[outputs[0]].realize(*(tensors[i] for i in outputs))
            found = [host(tensors[i]) for i in outputs]
        elif mode == "one by one":
            tensors = evaluated(program, inputs)
            found = [host(tensors[i]) for i in pick.sample(outputs, len(outputs))]
            tensors = evaluated(program, inputs)
            found = [host(tensors[i]) for i in outputs]
        elif mode == "half realised":
            tensors = evaluated(program, inputs, lambda t: t.realize() if pick.random() < 0.4 else None)
            found = [host(tensors[i]) for i in outputs]
        else:
            places = [i for i, s in enumerate(program.steps) if isinstance(s, Input)]

            def body(*given: Tensor) -> list[Tensor]:
                every = list(inputs)
                for place, tensor in zip(places, given, strict=True):
                    every[place] = tensor
                tensors = evaluated(program, every)
                return [tensors[i] for i in outputs]

            jitted = TinyJit(body)
            found = []
            for turn in range(4):
                fresh = tensors_of(program)
                if turn == 2:  # other values in between, which must not stay
                    for place in places:
                        fresh[place] = fresh[place].zeros_like().contiguous().realize()
                results = jitted(*(fresh[i] for i in places))
                found = [host(t) for t in results]
    except Exception as error:
        refused = any(words in str(error) for words in REFUSED)
        return "" if refused else f"{mode}: {type(error).__name__}: {error}"
    made_of = largest(program, values)
    for i, got in zip(outputs, found, strict=True):
        dtype = types[i]
        factor = 64.0 * max(1.0, coarsest / EPSILON[dtype]) if dtype in EPSILON else 1.0
        wrong = apart(got, values[i], dtype, factor, made_of[i])
        if wrong:
            return f"t{i} {mode}: {wrong}"
    return ""


def gradients(program: Program, pick: random.Random, orders: int = 1) -> str:
    """Compares gradients with finite differences. Returns what is wrong.

    Args:
      program: of smooth methods.
      pick: draws directions.
      orders: 2 differentiates the slope along one direction in turn, along another.
    """
    outputs, places = sinks(program), [i for i, s in enumerate(program.steps) if isinstance(s, Input)]
    places = [i for i in places if program.steps[i].array.dtype.kind in "fc"]  # type: ignore[union-attr]
    if not outputs or not places:
        return ""
    rng = np.random.default_rng(pick.randrange(1 << 30))
    first, second = ({i: _direction(rng, program.steps[i].array) for i in places}  # type: ignore[union-attr]
                     for _ in range(2))  # fmt: skip
    weights: dict[int, Array] = {}

    def loss(inputs: Sequence[Tensor]) -> Tensor:
        tensors, total = evaluated(program, inputs), Tensor(0.0, dtype="float64")
        for i in outputs:
            found = tensors[i].view_as_real() if tensors[i].is_complex() else tensors[i]
            weights.setdefault(i, rng.standard_normal([int(d) for d in found.shape]))
            total = total + (found.double() * Tensor(weights[i])).sum()
        return total

    def moved(along: dict[int, Array], by: float) -> list[Tensor]:
        inputs = tensors_of(program)
        for i in places:
            inputs[i] = Tensor(program.steps[i].array + by * along[i], requires_grad=True)  # type: ignore[union-attr]
        return inputs

    def value(inputs: Sequence[Tensor]) -> float:
        return float(loss(inputs).item())

    def slope(of: Tensor, inputs: Sequence[Tensor], along: dict[int, Array]) -> Tensor:
        """That of a loss along a direction, which can be differentiated."""
        total = Tensor(0.0, dtype="float64")
        grads = of.gradient(*(inputs[i] for i in places), materialize_grads=True)
        for i, grad in zip(places, grads, strict=True):
            parts = [(grad, along[i])]
            if grad.is_complex():
                parts = [(grad.real, along[i].real), (grad.imag, along[i].imag)]
            for part, step in parts:
                total = total + (part * Tensor(np.ascontiguousarray(step))).sum()
        return total

    def first_slope(inputs: Sequence[Tensor]) -> float:
        return float(slope(loss(inputs), inputs, first).item())

    try:
        leaves = moved(first, 0.0)
        whole = loss(leaves)
        whole.backward()
        found = 0.0
        for i in places:
            if (grad := leaves[i].grad) is not None:
                found += float((grad.numpy().conj() * first[i]).sum().real)
        wrong = _differs(value, found, whole.item(), lambda h: moved(first, h))
        if wrong or orders == 1:
            return wrong and f"gradient: {wrong}"
        leaves = moved(first, 0.0)
        whole = slope(loss(leaves), leaves, first)
        bend = float(slope(whole, leaves, second).item()) if whole.requires_grad else 0.0
        wrong = _differs(first_slope, bend, whole.item(), lambda h: moved(second, h))
        return wrong and f"second derivative: {wrong}"
    except Exception as error:
        return f"gradient: {type(error).__name__}: {error}"


def _differs(
    value: Callable[[Sequence[Tensor]], float], slope: float, here: Any, moved: Callable[[float], Sequence[Tensor]]
) -> str:
    """How a slope differs from that of finite differences; empty if it does not, or if these do not agree."""
    scale = abs(here) + abs(slope) + 1.0
    estimates = [(value(moved(h)) - value(moved(-h))) / (2 * h) for h in (1e-4, 1e-5)]
    if not math.isfinite(slope) or (
        min(abs(e - slope) for e in estimates) > 1e-5 * scale and abs(estimates[0] - estimates[1]) < 1e-6 * scale
    ):
        return f"{slope} along a direction where finite differences give {estimates}"
    return ""


def _direction(rng: np.random.Generator, like: Array) -> Array:
    """A direction in which an input moves: complex, if that is."""
    found: Array = np.asarray(rng.standard_normal(like.shape))
    return found + 1j * rng.standard_normal(like.shape) if like.dtype.kind == "c" else found


REFUSED = ("executed nothing", "was read inside of a function")
"""What TinyJit says of functions that it does not record, as documented."""
MODES = ("lazy", "one by one", "half realised", "TinyJit")


def problem(program: Program, seed: int, smooth: bool, orders: int = 1) -> str:
    """What is wrong with a program, of whose gradients so many orders are looked at; empty if nothing is."""
    values, types, wrong, _ = eagerly(program)
    if wrong:
        return wrong
    outputs = sinks(program)
    if not outputs:
        return ""
    for mode in MODES:
        wrong = otherwise(program, mode, random.Random(seed), values, types, outputs)
        if wrong:
            return wrong
    return gradients(program, random.Random(seed), orders) if smooth else ""


def shrunk(
    program: Program, seed: int, smooth: bool, kind: str, seconds: float = 20.0, orders: int = 1
) -> Program:
    """A shorter program with a problem of the same kind: steps become inputs of their values, outputs go."""
    end, changed = time.monotonic() + seconds, True

    def same(candidate: Program) -> bool:
        try:
            return problem_kind(problem(candidate, seed, smooth, orders)) == kind
        except Exception:
            return False

    while changed and time.monotonic() < end:
        changed = False
        for i in reversed(range(len(program.steps))):
            if time.monotonic() > end:
                break
            step, candidates = program.steps[i], list[Program]()
            candidates.append(program.without_unused([i])[0])
            if isinstance(step, Step):
                values, types, _, bad = eagerly(Program(program.steps[: i + 1]))
                if bad < 0:
                    replaced = [*program.steps[:i], Input(values[i], types[i]), *program.steps[i + 1 :]]
                    whole = Program(replaced)
                    candidates.append(whole.without_unused(sinks(whole) or [0])[0])
            for candidate in candidates:
                if _weight(candidate) < _weight(program) and same(candidate):
                    program, changed = candidate, True
                    break
            if changed:
                break
    return program


def _weight(program: Program) -> tuple[int, int]:
    return sum(isinstance(s, Step) for s in program.steps), len(program.steps)


def problem_kind(text: str) -> str:
    """A problem without its numbers: the way of running and the sort of error."""
    way, _, error = text.partition(":")
    return "".join(c for c in way + error.partition(":")[0] if not c.isdigit())[:24]


def program_of(seed: int) -> tuple[Program, bool]:
    """The program of a seed, and whether its gradients are looked at."""
    pick = random.Random(seed)
    smooth = pick.random() < 0.3
    sizes = LARGE if pick.random() < 0.15 and not smooth else SIZES[:9] if smooth else SIZES
    return drawn(pick, pick.choice([1, 2, 4, 8]), sizes, smooth), smooth


def attempt(seed: int) -> Finding | None:
    """One program."""
    program, smooth = program_of(seed)
    wrong = problem(program, seed, smooth)
    if not wrong:
        return None
    small = shrunk(program, seed, smooth, problem_kind(wrong))
    return Finding(seed, problem(small, seed, smooth) or wrong, small.text(sinks(small)))
