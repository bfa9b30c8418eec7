"""Calls with one thing wrong: every operation, layer and optimiser must refuse it in words, or do what is meant.

A good call (those of the page of tensors, and of the tests of layers) is spoilt in one place: an operand, an argument,
or one that was not given. What comes is a result, or an error that a person can read: of a type that says whose fault
it is, naming what was called; and the operands are what they were.

    hatch run mistakes [--only NAME]      every call, each spoilt in every way
    hatch run fuzz mistakes               calls drawn from a seed
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import math
import random
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numpy as np
from tools.tensor_page import samples

from tests.fuzz.methods import Array
from tinytg import Tensor, nn

GOOD_ERRORS = (TypeError, ValueError, IndexError, RuntimeError, OverflowError, MemoryError)
"""Types that say what a person did wrong. Those of which they are bases are looked at by name."""
SAY_ENOUGH = ("UnknownDevice",)
"""Errors that need not name what was called: they name what was not found, and what there is."""
BAD_ERRORS = (RecursionError, NotImplementedError, UnicodeError)
SAMPLES = 2
"""Good calls of one operation that are spoilt."""
SECONDS = 10
"""More processor time a small call never takes."""


@dataclass(frozen=True)
class Mistake:
    """A call that is wrong in one place.

    Attributes:
      name: of the operation, as on the page.
      what: what was done to a good call.
      args: and ``kwargs``: what is called, numpy's arrays standing for tensors.
      elsewhere: which operand, by its place among them, is on another device; -1 for none.
    """

    name: str
    what: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    elsewhere: int = -1


@dataclass(frozen=True)
class Finding:
    """What is wrong with the answer to a mistake."""

    seed: int
    mistake: Mistake
    problem: str

    def __str__(self) -> str:
        return f"{self.mistake.name}: {self.mistake.what}: {self.problem}"


def spoilt_operands(array: Array) -> Iterator[tuple[str, Any]]:
    """Other things in the place of an operand."""
    yield "None", None
    yield "a str", "zzz"
    yield "a dict", {"a": 1}
    yield "an object", object()
    yield "a number", 0.5
    yield "an axis more", array[..., None].repeat(2, -1)
    if array.ndim:
        if len(array):
            yield "an axis less", np.asarray(array[0])
        yield "a size more", np.concatenate([array, array[..., :1]], -1)
        yield "no elements", array[..., :0]
        yield "no rows", array[:0]
        yield "nothing at all", np.zeros((0,) * array.ndim, array.dtype)
    yield "complex", array.astype(np.complex64)
    yield "bool", array.astype(bool)
    yield "int", array.real.astype(np.int32)
    yield "float", array.real.astype(np.float32)
    yield "uint8", np.abs(array.real).astype(np.uint8)


OTHERS: tuple[tuple[str, Any], ...] = (
    ("None", None), ("a str", "zzz"), ("a dict", {"a": 1}), ("an object", object()), ("0", 0), ("-1", -1), ("-99", -99),
    ("19", 19), ("2.5", 2.5), ("NaN", math.nan), ("infinity", math.inf), ("True", True), ("an empty tuple", ()),
    ("(0, 0)", (0, 0)), ("(1, 19)", (1, 19)), ("(0.5,)", (0.5,)), ("a complex number", 1j), ("a list of str", ["a"]),
    ("a tensor of floats", np.array([0.5, 1.5])), ("bytes", b"\1\2"), ("a type", list),
)  # fmt: skip
"""What an argument that is no operand is replaced by."""


def parameters(function: Callable[..., Any]) -> list[str]:
    """Names that may be given by keyword."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in ("self",)]


def mistakes(sample: samples.Sample, operation: Callable[..., Any]) -> Iterator[Mistake]:
    """The call, wrong in each place and in every way."""
    name, args, kwargs = sample.name, sample.args, sample.kwargs
    operands = samples.arrays((args, kwargs))
    places: list[int | str] = [*range(len(args)), *kwargs]
    for place in places:
        value = args[place] if isinstance(place, int) else kwargs[place]
        ways = spoilt_operands(value) if isinstance(value, np.ndarray) else OTHERS
        for what, other in ways:
            yield Mistake(name, f"argument {place} is {what}", *_with(args, kwargs, place, other))
        if isinstance(value, (list, tuple)) and value:
            ways = spoilt_operands(value[-1]) if isinstance(value[-1], np.ndarray) else OTHERS
            for what, other in ways:
                changed = type(value)((*value[:-1], other))
                yield Mistake(name, f"the last of argument {place} is {what}", *_with(args, kwargs, place, changed))
            yield Mistake(name, f"argument {place} has one more", *_with(args, kwargs, place, (*value, value[-1])))
            yield Mistake(name, f"argument {place} has one less", *_with(args, kwargs, place, value[:-1]))
    for number in range(len(operands) if len(operands) > 1 else 0):
        yield Mistake(name, f"operand {number} is on another device", args, kwargs, number)
    names = parameters(operation)
    for given in names[len(args) :]:
        if given not in kwargs:
            for what, other in OTHERS:
                yield Mistake(name, f"{given} is {what}", args, {**kwargs, given: other})
    yield Mistake(name, "a keyword that there is not", args, {**kwargs, "zzz": 1})
    yield Mistake(name, "an argument too many", (*args, *[object()] * 9), kwargs)
    if args:
        yield Mistake(name, "an argument too few", args[:-1], kwargs)


def _with(
    args: tuple[Any, ...], kwargs: dict[str, Any], place: int | str, value: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(place, int):
        return (*args[:place], value, *args[place + 1 :]), kwargs
    return args, {**kwargs, place: value}


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Ends what takes too long, with a TimeoutError: so many seconds of processor, or ten times as many that pass.

    It is raised again each second: the one that is raised while an object is being freed is lost.
    """

    def over(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, 10 * seconds))
    before = [signal.signal(number, over) for number, _, _ in timers]
    try:
        for _, timer, limit in timers:
            signal.setitimer(timer, limit, 1)
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def answer(mistake: Mistake, operation: Callable[..., Any], bare: bool = False) -> tuple[str, str]:
    """What comes of it: ``refused``, ``accepted`` or ``wrong``, and the message."""
    made: list[tuple[Any, Array]] = []

    def tensor(array: Array) -> Any:
        kind = {"float64": "float32", "int64": "int32", "complex128": "complex64"}.get(array.dtype.name)
        device = "CPU" if len(made) == mistake.elsewhere else "NUMPY"
        out = Tensor(array.astype(kind) if kind else array, device=device)
        made.append((out, out.numpy().copy()))
        return out

    args, kwargs = samples.mapped((mistake.args, mistake.kwargs), tensor)
    last = mistake.name.rpartition(".")[2]
    late = False
    try:
        with limited(SECONDS), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = operation(*args, **kwargs)
            late = True
            read(out)
    except GOOD_ERRORS as error:
        text = str(error)
        if isinstance(error, BAD_ERRORS):
            return "wrong", f"{type(error).__name__}: {text}\n{where(error)}"
        if isinstance(error, MemoryError):
            return "refused", f"{type(error).__name__}: {text}"
        if late:
            return "wrong", f"not refused before it is computed: {type(error).__name__}: {text}\n{where(error)}"
        if last.lower() not in text.lower() and type(error).__name__ not in SAY_ENOUGH:
            return "wrong", f"does not name {last}: {type(error).__name__}: {text}\n{where(error)}"
        for value, before in made:
            if not np.array_equal(value.numpy(), before, equal_nan=value.dtype.kind in ("float", "complex")):
                return "wrong", f"an operand is changed after {type(error).__name__}: {text}"
        return "refused", f"{type(error).__name__}: {text}"
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}\n{where(error)}"
    return "accepted", shown(out)


def where(error: BaseException) -> str:
    """The last lines that led to an error."""
    return "".join(traceback.format_tb(error.__traceback__)[-2:])


def read(value: Any) -> None:
    """Computes every tensor of a result."""
    if isinstance(value, Tensor):
        value.numpy()
    elif isinstance(value, (tuple, list)):
        for part in value:
            read(part)


def shown(value: Any) -> str:
    """A result, shortly."""
    if isinstance(value, Tensor):
        return f"{value.dtype.name}{list(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(shown(v) for v in value[:4])})"
    return repr(value)[:40]


@cache
def rows() -> dict[str, tuple[Callable[[], Any], list[Any]]]:
    """Layers, each with operands, by the names that their own tests give them."""
    path = Path(__file__).parents[2] / "packages/tg-frontend/tests/test_layers_second_order.py"
    spec = importlib.util.spec_from_file_location("layers_of_the_frontend", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, tuple[Callable[[], Any], list[Any]]] = module.ROWS
    return found


def layers() -> list[str]:
    """Layers whose calls and constructors are spoilt."""
    return [f"nn.{name}" for name in rows()]


def optimizers() -> list[str]:
    """Optimisers."""
    return [f"nn.optim.{name}" for name in nn.optim.__all__ if _is_optimizer(name)]


def _is_optimizer(name: str) -> bool:
    kind = getattr(nn.optim, name)
    return inspect.isclass(kind) and issubclass(kind, nn.optim.Optimizer) and kind is not nn.optim.Optimizer


def made(make: Callable[[], Any]) -> tuple[type[Any], tuple[Any, ...], dict[str, Any]]:
    """The class of what a function makes, and the arguments with which it does."""
    kind = type(make())
    original, seen = kind.__init__, []

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        seen.append((self, args, kwargs))
        original(self, *args, **kwargs)

    kind.__init__ = init
    try:
        layer = make()
    finally:
        kind.__init__ = original
    args, kwargs = next((args, kwargs) for one, args, kwargs in seen if one is layer)
    return kind, args, kwargs


def calls(name: str) -> list[tuple[samples.Sample, Callable[..., Any]]]:
    """Good calls of an operation, a layer or an optimiser, and what is called."""
    room, _, last = name.rpartition(".")
    if room == "nn.optim":
        kind = getattr(nn.optim, last)
        return [(samples.Sample(name, ([samples_of_weights()],), {}), _stepping(kind))]
    if room == "nn":
        make, operands = rows()[last]
        kind, args, kwargs = made(make)
        named = f"nn.{kind.__name__}"
        return [
            (samples.Sample(named, tuple(operands)), lambda *given, **more: make()(*given, **more)),
            (samples.Sample(named, args, kwargs), kind),
        ]
    return [(sample, sample.operation()) for sample in samples.samples(name)[:SAMPLES]]


def samples_of_weights() -> Array:
    """A weight that an optimiser learns."""
    return np.array([[0.5, -1.0], [2.0, 0.25]])


def _stepping(kind: type[Any]) -> Callable[..., Any]:
    @wraps(kind)
    def step(params: Any, **kwargs: Any) -> Any:
        optimizer = kind(params, **kwargs)
        given = list(params)
        for one in given:
            one.grad = Tensor.ones_like(one)
        optimizer.step(*([lambda: given[0].square().sum()] if kind is nn.optim.LBFGS else []))
        return given

    return step


def names() -> list[str]:
    """Everything that is called."""
    return [*samples.operations(), *layers(), *optimizers()]


def everything(only: str = "") -> Iterator[tuple[samples.Sample, Callable[..., Any]]]:
    """Every good call."""
    for name in names():
        if only in name:
            yield from calls(name)


def attempt(seed: int) -> Finding | None:
    """One call, drawn, spoilt in ways that are drawn."""
    pick = random.Random(seed)
    sample, operation = pick.choice(calls(pick.choice(names())))
    ways = list(mistakes(sample, operation))
    for mistake in pick.sample(ways, min(len(ways), 12)):
        verdict, said = answer(mistake, operation)
        if verdict == "wrong":
            return Finding(seed, mistake, said)
    return None


def main() -> None:
    """Prints every finding; with ``--accepted``, what was taken, too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="operations with this in their name")
    parser.add_argument("--accepted", action="store_true", help="print what is accepted, too")
    given = parser.parse_args()
    count: dict[str, int] = {}
    for sample, operation in everything(given.only):
        for mistake in mistakes(sample, operation):
            verdict, said = answer(mistake, operation)
            count[verdict] = count.get(verdict, 0) + 1
            if verdict == "wrong" or (verdict == "accepted" and given.accepted):
                print(f"{verdict}: {Finding(0, mistake, said)}", flush=True)
    print(count)
    sys.exit(bool(count.get("wrong")))


if __name__ == "__main__":
    main()
