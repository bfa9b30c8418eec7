"""What shares memory with a result of a recorded function: random functions and writes, with a record and without.

A function makes values, views, bits, copies and constants of its argument and of tensors from outside, writes to some,
and returns some. Between calls the results, those of the call before, the argument and the tensors from outside are
written to. With a record everything must show what it shows without.
"""

from __future__ import annotations

import os
import random
import warnings
from dataclasses import dataclass
from typing import Any

from tg_frontend import JitError, Tensor, TinyJit
from tg_lazy import Context
from tg_runtime import Device

KINDS = (
    "add", "full", "view of w", "constant", "view of x", "bits", "zeros", "keep", "detach", "again", "double", "slice",
    "flip", "reshape", "copy element", "set element", "realize",
)  # fmt: skip
CALLS, WRITES = 6, 3


@dataclass(frozen=True)
class Program:
    """A function: its steps, which of its values it returns, and whether it is called with a part of a tensor."""

    steps: tuple[tuple[str, bool, int], ...]
    returned: tuple[int, ...]
    part: bool


@dataclass(frozen=True)
class Finding:
    """A program that gives something else with a record."""

    seed: int
    program: Program
    problem: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.problem}\n{self.program}"


def drawn(seed: int, kinds: tuple[str, ...] = KINDS) -> Program:
    """The program of a seed, of steps of these kinds."""
    draw = random.Random(seed)
    steps = tuple((draw.choice(kinds), draw.random() < 0.3, draw.randrange(100)) for _ in range(draw.randrange(2, 7)))
    returned = tuple(draw.randrange(100) for _ in range(draw.randrange(1, 5)))
    return Program(steps, returned, draw.random() < 0.3)


class World:
    """What a program works on."""

    factor = 1.0
    """Of whatever is made."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.w, self.constant = self.numbers(1, 4), Tensor.full((4,), 2.0 * self.factor)
        self.kept: Tensor | None = None

    def numbers(self, first: int, count: int) -> Tensor:
        """A tensor in memory."""
        return Tensor([(first + i) * self.factor for i in range(count)]).realize()

    def call(self, x: Tensor) -> list[Tensor]:
        """The function."""
        values = [x]
        for kind, other, n in self.program.steps:
            made = self._made(kind, other, values[n % len(values)], x)
            if made is not None:
                values.append(made)
        return [*(values[n % len(values)] for n in self.program.returned), x * 1.5]

    def _made(self, kind: str, other: bool, value: Tensor, x: Tensor) -> Tensor | None:
        real = value.dtype.name == "float32"
        if kind == "double":
            value *= 2
        elif kind == "copy element":
            value[0] = value[-1]
        elif kind == "set element":
            value[0] = 7
        elif kind == "keep":
            self.kept = value
        elif kind == "realize":
            value.realize()
        elif kind == "slice" and value.shape[0] == 1:
            return None
        else:
            made: dict[str, Any] = {
                "add": lambda: (value if real else value.bitcast("float32")) + 1,
                "full": lambda: Tensor.full((4,), 3.0),
                "view of w": lambda: self.w[1:],
                "constant": lambda: self.constant if other else self.constant[2:],
                "view of x": lambda: x[1:3],
                "bits": lambda: value.bitcast("int32" if real else "float32"),
                "zeros": lambda: value * 0 + 5,
                "detach": value.detach,
                "again": lambda: value,
                "slice": lambda: value[1:],
                "flip": lambda: value.flip(0),
                "reshape": lambda: value.reshape(-1, 1) if value.ndim == 1 else value.reshape(-1),
            }
            found: Tensor = made[kind]()
            return found
        return None


def seen(seed: int, program: Program, jit: int, device: str, kind: type[World] = World) -> list[Any]:
    """Everything that shows after each write."""
    with Context(JIT=jit, **({} if device == Device.DEFAULT else {"DEV": device})), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        world = kind(program)
        function, shown, old = TinyJit(world.call), list[Any](), list[Tensor]()
        for number in range(CALLS):
            whole = world.numbers(number, 6)
            x = whole[1:5] if program.part else world.numbers(number, 4)
            out = function(x)
            everything = [*out, whole, x, world.w, world.constant, *old]
            shown.append([tensor.tolist() for tensor in everything])
            for n in range(WRITES):
                _write(random.Random(f"{seed} {number} {n}"), out, old, x, world)
                shown.append([tensor.tolist() for tensor in everything])
            shown.append([[a is b for a in out] for b in out])
            old = out[:3]
        return shown


def _write(draw: random.Random, out: list[Tensor], old: list[Tensor], x: Tensor, world: World) -> None:
    target, kind = draw.choice(out), draw.randrange(5)
    if kind == 0:
        target += 10
    elif kind == 1:
        target[0] = 3
    elif kind == 2:
        world.w += 1
    elif kind == 3:
        x += 1
    elif old:
        earlier = draw.choice(old)
        earlier += 100


def attempt(seed: int, kinds: tuple[str, ...] = KINDS, kind: type[World] = World) -> Finding | None:
    """What is wrong with the function of a seed, on the device of DEV, else on NUMPY, which compiles nothing."""
    program, device = drawn(seed, kinds), Device.DEFAULT if os.environ.get("DEV") else "NUMPY"
    try:
        want = seen(seed, program, 0, device, kind)
    except (ValueError, TypeError, RuntimeError):
        return None  # it is wrong without a record
    try:
        got = seen(seed, program, 2, device, kind)
    except JitError:
        return None  # it is refused
    except Exception as error:
        return Finding(seed, program, f"{type(error).__name__}: {error}")
    for n, (a, b) in enumerate(zip(got, want, strict=True)):
        if repr(a) != repr(b):
            return Finding(seed, program, f"after {n} looks {a}, without a record {b}")
    return None
