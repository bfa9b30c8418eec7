"""Layers beside PyTorch's: constructors, states, attributes, results and gradients, as a table.

The samples are those of PyTorch's own tests (``module_db`` and the older ``get_new_module_tests`` of
``torch.testing``). Each builds a layer on both sides with the same arguments, and copies the weights by the names of
``state_dict``. What is compared then: names and shapes of the state, public attributes, the text of the layer, results,
gradients of inputs and parameters, and what is left in the buffers. ``python -m tools.torch_parity --modules --write``
writes one sample of each class to ``tests/data/torch_modules.json``.
"""

from __future__ import annotations

import copy
import inspect
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tinytg import Tensor, nn

from .comparing import TOLERANCES, Row, array, flat, gradients, made, shown, tensor, unequal
from .deliberate import MODULES, reason

KINDS = ("float32", "float64", "complex64", "complex128")
_PRECISION = {"complex64": "float32", "complex128": "float64"}
DRAWN = ("Dropout", "RReLU", "FractionalMaxPool")
"""Layers that draw numbers in training: shapes and dtypes are compared."""
RECORD = Path(__file__).parents[2] / "tests" / "data" / "torch_modules.json"
_SMALL = 300  # elements of a tensor that is written down
PLAIN = (bool, int, float, str, tuple, type(None))
_REFUSED = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, AssertionError)


@dataclass
class Case:
    """A layer, and what it is called with.

    Attributes:
      kind: the class, of PyTorch's.
      args: of the constructor.
      kwargs: likewise.
      inputs: of the call.
      named: likewise.
      dtype: what the layer is cast to.
      training: whether it is in training.
    """

    kind: type
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)
    dtype: str = "float32"
    training: bool = True

    def __str__(self) -> str:
        def listed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
            return ", ".join([*map(shown, args), *(f"{name}={shown(value)}" for name, value in kwargs.items())])

        mode = "train" if self.training else "eval"
        text = f"{self.dtype} {mode} ({listed(self.args, self.kwargs)})({listed(self.inputs, self.named)})"
        return text.replace("\n", " ")[:180]


Record = dict[int, tuple[Any, tuple[Any, ...], dict[str, Any]]]
"""By the id of a layer of PyTorch's: the layer, and what its constructor was called with."""


@contextmanager
def recorded(torch: Any) -> Iterator[Record]:
    """Writes down the arguments of every layer that PyTorch makes meanwhile."""
    found: Record = {}

    def new(kind: type, *args: Any, **kwargs: Any) -> Any:
        layer: Any = object.__new__(kind)
        found[id(layer)] = layer, args, kwargs
        return layer

    torch.nn.Module.__new__ = new
    try:
        yield found
    finally:
        torch.nn.Module.__new__ = lambda kind, *_, **__: object.__new__(kind)


def counterpart(torch: Any, record: Record) -> Callable[[Any], Any]:
    """What stands here for a layer, a function or a packed sequence of PyTorch's."""

    def other(value: Any) -> Any:
        if isinstance(value, torch.nn.Module) and id(value) in record:
            _, args, kwargs = record[id(value)]
            ours = getattr(nn, type(value).__name__)(
                *made(args, torch, None, other), **made(kwargs, torch, None, other)
            )
            return loaded(ours, value, torch)
        if isinstance(value, torch.nn.utils.rnn.PackedSequence):
            return nn.utils.rnn.PackedSequence(*made(tuple(value), torch, None, other))
        if isinstance(value, torch.device):
            return str(value).upper()
        name = getattr(value, "__name__", None)
        for theirs, mine in ((torch.nn.functional, nn.functional), (torch.nn, nn), (torch.Tensor, Tensor)):
            if name and getattr(theirs, name, None) is value:
                return getattr(mine, name)
        if name and getattr(torch, name, None) is value:
            return getattr(Tensor, name)
        return value

    return other


def loaded(ours: Any, theirs: Any, torch: Any) -> Any:
    """A layer with the weights of PyTorch's."""
    ours.load_state_dict({name: tensor(value, torch) for name, value in theirs.state_dict().items()})
    return ours


def state(layer: Any) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tensors of a layer, in order."""
    return {name: tuple(value.shape) for name, value in layer.state_dict().items()}


def attributes(theirs: Any, ours: Any) -> str | None:
    """The first public attribute that differs: of those of PyTorch's layer that are numbers, words or parameters."""
    plain = {name: value for name, value in vars(theirs).items() if isinstance(value, PLAIN)}
    for name, value in {**plain, **theirs._parameters, **theirs._buffers}.items():
        if name.startswith("_"):
            continue
        if not hasattr(ours, name):
            return f"attribute {name} is missing"
        mine = getattr(ours, name)
        if isinstance(value, PLAIN) and value is not None:
            alike = mine == value and isinstance(mine, bool) == isinstance(value, bool)
        else:
            alike = (mine is None) == (value is None)
        if not alike:
            return f"attribute {name} is {value!r}, here {mine!r}"
    return None


def compared(case: Case, row: Row, torch: Any, record: Record) -> None:
    """Builds a layer on both sides, and runs both forward and backward."""
    other, lazy = counterpart(torch, record), issubclass(case.kind, torch.nn.modules.lazy.LazyModuleMixin)
    try:
        theirs = case.kind(*case.args, **case.kwargs).to(getattr(torch, case.dtype)).train(case.training)
        shape_only = case.training and case.kind.__name__.startswith(DRAWN)
        if lazy:
            theirs(*case.inputs, **case.named)
        before = copy.deepcopy(theirs)
        want = theirs(*case.inputs, **case.named)
    except _REFUSED:
        return  # an environment without a library that the layer wants
    row.tried += 1
    try:
        leaves: list[tuple[Any, Any]] = []
        inputs, named = (made(value, torch, leaves, other) for value in (case.inputs, case.named))
        args, kwargs = (made(value, torch, None, other) for value in (case.args, case.kwargs))
        ours = getattr(nn, case.kind.__name__)(*args, **kwargs).to(case.dtype).train(case.training)
        if lazy:
            ours(*inputs, **named)
        ours.requires_grad_()
        wrong = None if state(before) == state(ours) else f"state {state(before)}, here {state(ours)}"
        if wrong is None:
            loaded(ours, before, torch)
            got = ours(*inputs, **named)
            tolerance = TOLERANCES[_PRECISION.get(case.dtype, case.dtype)]
            wrong = unequal(want, got, tolerance, not shape_only)
            if wrong is None and not shape_only:
                mine = dict(ours.named_parameters())
                leaves += [(value, mine[name]) for name, value in theirs.named_parameters()]
                wrong = gradients(want, got, leaves, tolerance, torch)
            if wrong is None:
                wrong = left(theirs, ours, tolerance)
        if wrong is None:
            wrong = attributes(theirs, ours)
        if wrong is None and repr(theirs) != repr(ours):
            wrong = f"text {theirs!r}, here {ours!r}"
    except Exception as error:
        row.note("refuses", f"{case}: {type(error).__name__}: {str(error)[:200]}", MODULES)
        return
    if wrong is not None:
        row.note("differs", f"{case}: {wrong}", MODULES)


def left(theirs: Any, ours: Any, tolerance: tuple[float, float]) -> str | None:
    """How the states differ after a call."""
    mine = ours.state_dict()
    for name, value in theirs.state_dict().items():
        wrong = unequal(value, mine[name], tolerance, True)
        if wrong is not None:
            return f"{name} after the call: {wrong}"
    return None


def refused(case: Case, row: Row, torch: Any, record: Record) -> None:
    """What PyTorch's layer refuses, in the constructor or the call, is to be refused."""
    try:
        theirs = case.kind(*case.args, **case.kwargs)
        if case.inputs or case.named:
            theirs(*case.inputs, **case.named)
        return
    except _REFUSED as error:
        said = str(error).partition("\n")[0][:100]
    row.wrong_inputs += 1
    other = counterpart(torch, record)
    try:
        args, kwargs = (made(value, torch, None, other) for value in (case.args, case.kwargs))
        ours = getattr(nn, case.kind.__name__)(*args, **kwargs).train(case.training)
        if case.inputs or case.named:
            got = ours(*made(case.inputs, torch, None, other), **made(case.named, torch, None, other))
            for leaf in flat(got):
                leaf.realize()
    except _REFUSED:
        return
    row.note("accepts", f"{case}: {said}", MODULES)


def newer(torch: Any, most: int) -> Iterator[tuple[Case, bool]]:
    """The samples of ``module_db``, with whether PyTorch takes them."""
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        if getattr(torch.nn, info.module_cls.__name__, None) is not info.module_cls:
            continue
        for dtype in KINDS:
            kind = getattr(torch, dtype)
            if kind not in info.supported_dtypes("cpu"):
                continue
            asked = {"device": "cpu", "dtype": kind, "requires_grad": True}
            for training in (True, False) if info.train_and_eval_differ else (True,):
                found = info.module_inputs_func(info, training=training, **asked)
                count = most if dtype == "float32" else max(1, most // 3)
                step = max(1, len(found) / count)
                for one in [found[int(i * step)] for i in range(min(count, len(found)))]:
                    yield _case(info.module_cls, one, dtype, training), True
            if info.module_error_inputs_func is not None and dtype == "float32":
                for wrong in info.module_error_inputs_func(info, training=True, **asked):
                    yield _case(info.module_cls, wrong.module_error_input, dtype, True), False


def _case(kind: Any, sample: Any, dtype: str, training: bool) -> Case:
    made_with, called = sample.constructor_input, sample.forward_input
    case = Case(kind, made_with.args, made_with.kwargs, dtype=dtype, training=training)
    if called is not None:
        case.inputs, case.named = called.args, called.kwargs
    return case


def older(torch: Any, record: Record) -> Iterator[tuple[Case, bool]]:
    """The samples of the older tests, of layers."""
    from torch.testing._internal import common_nn

    for sample in (*common_nn.module_tests, *common_nn.get_new_module_tests()):
        options = dict(sample)
        name = options.pop("module_name", None)
        make = options.pop("constructor", None) or getattr(torch.nn, name)
        if inspect.isclass(make) and getattr(torch.nn, make.__name__, None) is not make:
            continue  # a function
        usual, double = torch.get_default_dtype(), options.get("default_dtype") is torch.double
        torch.set_default_dtype(torch.float64 if double else usual)
        try:
            test = common_nn.TestBase(make, **options)
            args = (
                options["constructor_args_fn"]()
                if "constructor_args_fn" in options
                else options.get("constructor_args", ())
            )
            theirs, given = make(*args), test._get_input()
        finally:
            torch.set_default_dtype(usual)
        if getattr(torch.nn, type(theirs).__name__, None) is not type(theirs):
            continue
        _, args, kwargs = record[id(theirs)]
        inputs = given if isinstance(given, (tuple, list)) else (given,)
        for one in inputs:
            if isinstance(one, torch.Tensor) and (one.is_floating_point() or one.is_complex()):
                one.requires_grad_()
        dtype = "float64" if double else "float32"
        if any(isinstance(one, torch.Tensor) and one.is_complex() for one in inputs):
            dtype = "complex128" if double else "complex64"
        yield Case(type(theirs), args, kwargs, tuple(inputs), dtype=dtype), True


def written(value: Any, torch: Any) -> Any:
    """An argument or a result as JSON.

    Raises:
      TypeError: if it is something that JSON cannot say.
    """
    if isinstance(value, torch.Tensor):
        kind = str(value.dtype).removeprefix("torch.")
        if value.numel() > _SMALL or kind not in ("float32", "int64", "bool"):
            raise TypeError(kind)
        values = value.detach().flatten().numpy()
        texts = [float(str(one)) for one in values] if kind == "float32" else values.tolist()  # the fewest digits
        return {"kind": kind, "shape": list(value.shape), "values": texts}
    if isinstance(value, (list, tuple)):
        return {"list" if isinstance(value, list) else "tuple": [written(part, torch) for part in value]}
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(type(value).__name__)


def read(value: Any) -> Any:
    """What was written down."""
    if not isinstance(value, dict):
        return value
    if "shape" in value:
        return Tensor(np.array(value["values"], value["kind"]).reshape(value["shape"]))
    parts = [read(part) for part in (value["list"] if "list" in value else value["tuple"])]
    return parts if "list" in value else tuple(parts)


def _single(value: Any, torch: Any) -> Any:
    """An argument of a call, tensors of floats in float32."""
    return value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def write(torch: Any) -> None:
    """Writes down what PyTorch's layers give, in evaluation: of each class the first sample that can be written."""
    found: dict[str, Any] = {}
    with recorded(torch) as record:
        torch.manual_seed(0)
        for case, taken in [*newer(torch, 4), *older(torch, record)]:
            name = case.kind.__name__
            if name in found or not taken or case.dtype not in ("float32", "float64"):
                continue
            theirs = case.kind(*case.args, **case.kwargs).float().eval()
            inputs, named = [_single(one, torch) for one in case.inputs], case.named.items()
            called = {key: _single(one, torch) for key, one in named}
            try:
                out = theirs(*inputs, **called)
                found[name] = {
                    "args": [written(one, torch) for one in case.args],
                    "kwargs": {key: written(one, torch) for key, one in case.kwargs.items()},
                    "inputs": [written(one, torch) for one in inputs],
                    "named": {key: written(one, torch) for key, one in called.items()},
                    "state": {key: written(one, torch) for key, one in theirs.state_dict().items()},
                    "out": [written(one, torch) for one in flat(out)], "text": repr(theirs),
                }  # fmt: skip
            except (TypeError, *_REFUSED):
                continue
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in sorted(found.items()))
    RECORD.write_text(f"{{\n{lines}\n}}\n")


def again(name: str, case: dict[str, Any]) -> str | None:
    """How a layer differs from what was written down of PyTorch's; None if it does not."""
    ours = getattr(nn, name)(*map(read, case["args"]), **{key: read(one) for key, one in case["kwargs"].items()}).eval()
    inputs, named = list(map(read, case["inputs"])), {key: read(one) for key, one in case["named"].items()}
    if name.startswith("Lazy"):
        ours(*inputs, **named)
    wanted = {key: tuple(one["shape"]) for key, one in case["state"].items()}
    if state(ours) != wanted:
        return f"state {wanted}, here {state(ours)}"
    ours.load_state_dict({key: read(one) for key, one in case["state"].items()})
    left, right = ([array(one) for one in out] for out in (map(read, case["out"]), flat(ours(*inputs, **named))))
    wrong = unequal(left, right, TOLERANCES["float32"], True)
    if wrong is not None:
        return wrong
    return None if repr(ours) == case["text"] else f"text {case['text']}, here {ours!r}"


def rows(only: Callable[[str], bool], most: int, share: tuple[int, int], torch: Any) -> list[Row]:
    """What was found of each layer, by name."""
    found: dict[str, Row] = {}
    with recorded(torch) as record:
        torch.manual_seed(0)
        cases = [*newer(torch, most), *older(torch, record)]
        names = sorted({case.kind.__name__ for case, _ in cases if only(case.kind.__name__)})[share[0] :: share[1]]
        for case, taken in cases:
            name = case.kind.__name__
            if name not in names:
                continue
            row = found.setdefault(name, Row(name, f"nn.{name}" if hasattr(nn, name) else ""))
            if not row.ours:
                why = None if row.notes else reason(name, "missing", MODULES)
                row.meant, row.notes = (
                    int(row.meant or why is not None),
                    [*row.notes, *([f"meant: {why}"] if why else [])],
                )
                continue
            begin = time.perf_counter()
            (compared if taken else refused)(case, row, torch, record)
            row.seconds += time.perf_counter() - begin
    return list(found.values())
