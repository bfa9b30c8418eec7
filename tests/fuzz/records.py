"""Random functions under TinyJit: every call must do what a call of the function itself does.

A program is a function (arithmetic, reductions, running sums, random numbers, gradients, steps of an optimiser, writes
to arguments, to tensors from outside and to views of them, what it returns) and what happens between its calls: writes
that are not computed yet, states that are loaded, tensors that are replaced, results that are written to, values that
are read lazily and looked at later. It is run with and without a record in two worlds that are made alike; what can be
seen must be equal to the bit. A record may refuse, with an error; it must not differ.

    hatch run fuzz records [--seconds 60] [--seed 0] [--device NUMPY]
"""

from __future__ import annotations

import gc
import os
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tg_frontend import Tensor, TinyJit, nn
from tg_lazy import Context
from tg_runtime import Device
from tg_shape import Variable

SIZE = 6
COUNT = Variable("count", 1, SIZE)
Step = tuple[Any, ...]
UNARY = ("flip", "cumsum", "neg", "relu", "roll", "sum", "max", "prod", "contiguous")
BINARY = ("add", "sub", "mul", "maximum")
REFUSALS = (
    "parts of the same memory", "the same memory", "the same tensor", "executed nothing", "other memory",
    "gave argument", "in one graph", "was not realised before the memory", "is not left by replays",
    "was wanted as a number", "the function knows",
)  # fmt: skip


@dataclass(frozen=True)
class Program:
    """A function and what happens around its calls.

    Attributes:
      body: what the function does.
      returns: what it returns: indices of its values, or where else a tensor comes from.
      around: before each call, what happens; an ``("call", …)`` calls it.
      symbolic: whether the sizes of the arguments are a variable's.
    """

    body: tuple[Step, ...]
    returns: tuple[Step, ...]
    around: tuple[Step, ...]
    symbolic: bool

    def __str__(self) -> str:
        lines = [f"  {step!r}," for step in self.body]
        calls = [f"  {step!r}," for step in self.around]
        returns = f"), returns={self.returns!r}, around=("
        return "\n".join([f"Program(symbolic={self.symbolic}, body=(", *lines, returns, *calls, "))"])


@dataclass(frozen=True)
class Finding:
    """A program whose record differs.

    Attributes:
      seed: what the program was drawn from.
      program: it, made smaller.
      problem: what differs.
    """

    seed: int
    program: Program
    problem: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.problem}\n{self.program}"


# what is drawn


def _target(draw: random.Random) -> Step:
    return draw.choice([("w", draw.randrange(3)), ("w", draw.randrange(3)), ("part",), ("input", draw.randrange(2)),
                        ("table",)])  # fmt: skip


def _statement(draw: random.Random, known: int) -> Step:
    a, b = (draw.randrange(known) for _ in range(2))
    kinds: list[Callable[[], Step]] = [
        lambda: ("load", *_target(draw)),
        lambda: ("load", *_target(draw)),
        lambda: ("binary", draw.choice(BINARY), a, b),
        lambda: ("binary", draw.choice(BINARY), a, b),
        lambda: ("unary", draw.choice(UNARY), a),
        lambda: ("unary", draw.choice(UNARY), a),
        lambda: ("constant", draw.randrange(-3, 4)),
        lambda: ("fresh", draw.randrange(-3, 4)),
        lambda: ("random",),
        lambda: ("write", _target(draw), a),
        lambda: ("write", _target(draw), a),
        lambda: ("add to", _target(draw), draw.randrange(1, 4)),
        lambda: ("set", _target(draw), a),
        lambda: ("realize", a),
        lambda: ("gradient", draw.randrange(3), a),
        lambda: ("step", a),
        lambda: ("keep", a, draw.random() < 0.8),
        lambda: ("state", draw.randrange(3), a) if draw.random() < 0.2 else ("load", *_target(draw)),
    ]
    return draw.choice(kinds)()


def _argument(draw: random.Random) -> Step:
    return draw.choice([
        ("new",), ("new",), ("new",), ("lazy",), ("constant", draw.randrange(4)), ("view", draw.randrange(3)),
        ("borrowed",), ("same",), ("w", draw.randrange(3)), ("result",), ("kept view",), ("shared",),
    ])  # fmt: skip


def _event(draw: random.Random) -> Step:
    target = draw.choice([("w", draw.randrange(3)), ("part",), ("table",), ("result",), ("argument",)])
    return draw.choice([
        ("add to", target, draw.randrange(1, 4)), ("write", target, draw.randrange(5)), ("set", target, 7),
        ("save",), ("load",), ("replace", draw.randrange(3)), ("rebind", draw.randrange(3), draw.random() < 0.5),
        ("rate", draw.randrange(1, 5)), ("momentum", draw.randrange(1, 5)), ("read lazily", target), ("look",),
        ("collect",), ("rebind table",), ("seed", draw.randrange(3)),
    ])  # fmt: skip


def drawn(seed: int) -> Program:
    """A program."""
    draw = random.Random(seed)
    body: list[Step] = [("load", "input", 0)]
    for _ in range(draw.randint(1, 9)):
        body.append(_statement(draw, len(body)))
    places: list[Callable[[], Step]] = [
        lambda: ("value", draw.randrange(len(body))), lambda: ("value", draw.randrange(len(body))),
        lambda: ("value", draw.randrange(len(body))), lambda: ("place", *_target(draw)),
        lambda: ("view of", *_target(draw)), lambda: ("number", 3), lambda: ("zeros",), lambda: ("empty",),
        lambda: ("nothing",),
    ]  # fmt: skip
    returns = [draw.choice(places)() for _ in range(draw.choice([1, 1, 2, 3]))]
    around: list[Step] = []
    for _ in range(draw.randint(4, 8)):
        around += [_event(draw) for _ in range(draw.choice([0, 1, 1, 2]))]
        around.append(("call", _argument(draw), _argument(draw), draw.randint(1, SIZE)))
    return Program(tuple(body), tuple(returns), tuple(around), draw.random() < 0.3)


# how it is run


class World:
    """What the function reads from outside."""

    def __init__(self, device: str) -> None:
        def data(low: int) -> Tensor:
            return Tensor([float(low + i) for i in range(SIZE)], device=device).realize()

        self.device = device
        self.w = [data(1), data(-2), data(0)]
        self.part = self.w[0][1:4]
        self.table = {"k": data(3)}
        self.parameter = data(2).requires_grad_()
        self.optimizer = nn.optim.SGD([self.parameter], lr=0.25, momentum=0.5)
        self.kept: Tensor | None = None

    def named(self) -> dict[str, Tensor]:
        """The tensors, by name."""
        return {"w0": self.w[0], "w1": self.w[1], "w2": self.w[2], "k": self.table["k"], "p": self.parameter}


def _small(x: Tensor) -> Tensor:
    return x.clamp(-64, 64)


class Run:
    """A program in a world of its own.

    Args:
      program: it.
      device: of all tensors.
    """

    def __init__(self, program: Program, device: str) -> None:
        self.program, self.device = program, device
        self.world = world = World(device)
        self.seen: list[Any] = []
        self.results: list[Tensor] = []
        self.arguments: list[Tensor] = []
        self.waiting: list[Tensor] = []
        self.wholes = [Tensor([float(10 * n + i) for i in range(8)], device=device).realize() for n in range(2)]
        self.saved: dict[str, Tensor] = {}
        self.made = 0
        self.owners: list[Any] = []
        symbolic, body, returns = program.symbolic, program.body, program.returns
        stateful = any(step[0] in ("state", "keep") for step in body)

        def function(*inputs: Tensor) -> Any:
            size = inputs[0].shape[0]
            values: list[Tensor] = []

            def place(kind: str, n: int = 0) -> Tensor:
                if kind == "part":
                    return world.part
                x = inputs[n] if kind == "input" else world.w[n] if kind == "w" else world.table["k"]
                return x if kind == "input" or size == SIZE else x[:size]

            def whole(x: Tensor) -> Tensor:
                return x.pad(((0, SIZE - 3),))[:size] if x.shape == (3,) and not (size == 3) else x

            for step in body:
                values.append(_executed(step, place, whole, values, world, size))
            out: list[Any] = []
            for step in returns:
                if step[0] == "value":  # what is state in Python is not the result itself, which is documented
                    out.append(values[step[1]].clone() if stateful else values[step[1]])
                elif step[0] == "place":
                    out.append(place(*step[1:]).clone() if stateful else place(*step[1:]))
                elif step[0] == "view of":
                    out.append(place(*step[1:])[:1].clone() if stateful else place(*step[1:])[:1])
                elif step[0] == "zeros":
                    out.append(Tensor.zeros(size, device=world.device))
                elif step[0] == "empty":
                    out.append(Tensor.empty(2, device=world.device))
                else:
                    out.append({"n": 3} if step[0] == "number" else None)
            return out[0] if len(out) == 1 else (out[0], {"more": out[1:]})

        self.symbolic = symbolic
        self.function = TinyJit(function)

    def run(self) -> None:
        """Runs it; what was seen is in :attr:`seen`."""
        Tensor.manual_seed(3)
        for step in self.program.around:
            if step[0] == "call":
                self.call(*step[1:])
            else:
                self.event(step)
        self.look()

    def look(self) -> None:
        """Notes everything that can be seen."""
        world = self.world
        shown = [*world.named().values(), world.part, *self.arguments, *self.wholes, *self.waiting, *self.results]
        if world.kept is not None:
            shown.append(world.kept)
        self.seen.append([_plain(tensor) for tensor in shown])

    def _number(self) -> list[float]:
        self.made += 1
        return [float((self.made * 5 + 3 * i) % 11 - 4) for i in range(SIZE)]

    def argument(self, kind: str, n: int = 0) -> Tensor:
        """A tensor to be passed, of all elements."""
        device = self.device
        if kind == "borrowed":
            array = np.array(self._number(), np.float32)
            array.flags.writeable = False
            self.owners.append(array)
            return Tensor.from_dlpack(array, device=device)
        if kind == "lazy":
            return Tensor(self._number(), device=device) + 1
        if kind == "constant":
            return Tensor.full((SIZE,), float(n), device=device)
        if kind == "view":
            return self.wholes[0][n : n + SIZE]
        if kind == "kept view":
            return self.wholes[1][1 : 1 + SIZE]
        if kind == "same" and self.arguments and self.arguments[-1].shape == (SIZE,):
            return self.arguments[-1]
        if kind == "w":
            return self.world.w[n]
        if kind == "shared":
            base = Tensor(self._number(), device=device).realize()
            one, two = base + 2, base + 2
            self.waiting.append(two)
            return one
        if kind == "result":
            found = [r for r in self.results if r.shape == (SIZE,) and r.dtype.name == "float32"]
            if found:
                return found[-1]
        return Tensor(self._number(), device=device).realize()

    def call(self, first: Step, second: Step, count: int) -> None:
        """Calls the function."""
        inputs = [self.argument(*first), self.argument(*second)]
        if self.symbolic:
            inputs = [x[: COUNT.bind(count)] for x in inputs]
        result = self.function(*inputs)
        self.arguments = [*self.arguments[-2:], *inputs]
        tensors: list[Tensor] = []
        _collect(result, tensors)
        self.results = [*self.results[-4:], *tensors]

    def event(self, step: Step) -> None:
        """What happens between two calls."""
        world, kind = self.world, step[0]
        if kind == "look":
            self.look()
        elif kind == "collect":
            gc.collect()
        elif kind == "seed":
            Tensor.manual_seed(step[1])
        elif kind == "save":
            self.saved = {name: tensor.clone() for name, tensor in world.named().items()}
        elif kind == "load":
            if self.saved:
                nn.state.load_state_dict(world.named(), self.saved)
        elif kind == "replace":
            other = Tensor(self._number(), device=self.device) + 0
            world.w[step[1]].replace(other.realize() if self.symbolic else other)
        elif kind == "rebind":
            if step[2]:
                self.owners.append(world.w[step[1]])
            world.w[step[1]] = Tensor(self._number(), device=self.device).realize()
        elif kind == "rebind table":
            world.table = {"k": Tensor(self._number(), device=self.device)}
        elif kind == "rate":
            world.optimizer.lr = step[1] / 8
        elif kind == "momentum":
            world.optimizer.momentum = step[1] / 8
        else:
            target = self._place(*step[1])
            if target is None:
                return
            if kind == "add to":
                target += float(step[2])
            elif kind == "write":
                target.assign(float(step[2]))
            elif kind == "set":
                target[0] = float(step[2])
            else:
                self.waiting.append(target * 3 + 1)

    def _place(self, kind: str, n: int = 0) -> Tensor | None:
        if kind == "w":
            return self.world.w[n]
        if kind == "part":
            return self.world.part
        if kind == "table":
            return self.world.table["k"]
        found = self.results if kind == "result" else self.arguments
        return found[-1] if found and found[-1].shape == (SIZE,) else None


def _executed(step: Step, place: Any, whole: Any, values: list[Tensor], world: World, size: Any) -> Tensor:
    kind = step[0]
    if kind == "load":
        return whole(place(*step[1:]))  # type: ignore[no-any-return]
    if kind == "binary":
        out: Tensor = getattr(values[step[2]], step[1])(values[step[3]])
        return _small(out)
    if kind == "unary":
        return _unary(step[1], values[step[2]], size)
    if kind == "constant":
        return Tensor.full((size,), float(step[1]), device=world.device)
    if kind == "fresh":
        return Tensor([float(step[1] + i) for i in range(SIZE)], device=world.device)[:size]
    if kind == "random":
        return (Tensor.rand(SIZE, device=world.device) * 8).floor()[:size]
    if kind == "gradient":
        w = world.w[step[1]].detach().requires_grad_()[:size]
        return _small((w * w * values[step[2]].detach()).sum().gradient(w)[0].detach())
    if kind == "step":
        world.optimizer.zero_grad()
        (world.parameter[:size] * values[step[1]].detach()).sum().backward()
        world.optimizer.step()
        world.optimizer.zero_grad()
        return world.parameter.detach()[:size].clamp(-64, 64)
    if kind == "keep":
        world.kept = values[step[1]] * 2
        if step[2]:
            world.kept.realize()
        return values[step[1]]
    if kind == "state":
        if isinstance(size, int):
            world.w[step[1]] = (values[step[2]] + 1).realize()
        return values[step[2]]
    if kind == "realize":
        return values[step[1]].realize()
    target = place(*step[1])
    if kind == "add to":
        target += float(step[2])
        return whole(target)  # type: ignore[no-any-return]
    value = values[step[2]].detach()
    if target.shape == (3,) and size != 3:
        value = value.pad(((0, SIZE - value.shape[0]),))[1:4]
    if kind == "write":
        target.assign(value)
    else:
        target[0:1] = value[0:1]
    return whole(target)  # type: ignore[no-any-return]


def _unary(name: str, x: Tensor, size: Any) -> Tensor:
    if name in ("sum", "max", "prod"):
        reduced: Tensor = getattr(x, name)()
        return _small(reduced).reshape(1).expand(size)
    if name == "flip":
        return x.flip(0)
    if name == "roll":
        return x.roll(1, 0)
    out: Tensor = getattr(x, name)()
    return _small(out)


def _collect(value: Any, found: list[Tensor]) -> None:
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, found)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, found)


def _plain(tensor: Tensor) -> Any:
    return tensor.shape if tensor.shape == (2,) else [tensor.dtype.name, tensor.tolist()]


def _outcome(program: Program, device: str, jit: int) -> tuple[list[Any], Exception | None]:
    with Context(JIT=jit, **({} if device == Device.DEFAULT else {"DEV": device})), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        run = Run(program, device)
        try:
            run.run()
        except Exception as error:
            return run.seen, error
        return run.seen, None


def problem_of(program: Program, device: str) -> tuple[str, bool]:
    """What is wrong with the record of a program; and whether it was recorded to its end."""
    want, error = _outcome(program, device, 0)
    if error is not None:
        return "", False  # it is wrong without a record
    got, error = _outcome(program, device, 2)
    if error is not None and not (
        isinstance(error, (ValueError, RuntimeError)) and any(part in str(error) for part in REFUSALS)
    ):
        return f"{type(error).__name__}: {error}", False
    for n, (a, b) in enumerate(zip(got, want, strict=False)):
        if a != b:
            place = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), -1)
            return f"look {n}, tensor {place}: {a[place]}, without a record {b[place]}", False
    if error is None and len(got) != len(want):
        return f"{len(got)} looks, without a record {len(want)}", False
    return "", error is None


def smaller(program: Program, fails: Callable[[Program], bool]) -> Program:
    """The program without all that can be left out while it fails."""
    changed = True
    while changed:
        changed = False
        for name in ("around", "returns", "body"):
            at = 0
            while at < len(getattr(program, name)):
                steps = getattr(program, name)
                fewer = steps[:at] + ((("constant", 0),) if name == "body" else ()) + steps[at + 1 :]
                if name == "returns" and not fewer:
                    break
                candidate = replace(program, **{name: fewer})
                if (name != "body" or steps[at] != ("constant", 0)) and fails(candidate):
                    program, changed = candidate, True
                    if name != "body":
                        continue
                at += 1
    return program


def check(seed: int, device: str = "NUMPY") -> tuple[Finding | None, bool]:
    """Runs the program of a seed; what is wrong, and whether it was recorded to its end."""
    program = drawn(seed)
    problem, whole = problem_of(program, device)
    if not problem:
        return None, whole
    program = smaller(program, lambda candidate: bool(problem_of(candidate, device)[0]))
    return Finding(seed, program, problem_of(program, device)[0]), False


def attempt(seed: int) -> Finding | None:
    """What is wrong with the function of a seed, on the device of DEV, else on NUMPY, which compiles nothing."""
    return check(seed, Device.DEFAULT if os.environ.get("DEV") else "NUMPY")[0]
