"""Functions of tensors that are traced once for each kind of argument, and are one step of the graph from then on.

To trace and schedule a decomposition takes as long as to compute it, and gives the same for all matrices of one shape.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import wraps
from math import prod
from threading import local
from typing import NamedTuple, ParamSpec, TypeVar

from tg_lazy import ANOMALY, ContextVar, LazyBuffer
from tg_lazy.graph.isolate import Isolated, isolate
from tg_lazy.settings.collector import Uncollected
from tg_runtime import Body, Device, foreseeing

from ..autograd.differentiation import MODE, Switch
from ..memory.realization import computable
from ..tensor import Tensor
from .batched_loop import run_body
from .tracing import placeholders, trace
from .tree import fill_tensors, tensors_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

P = ParamSpec("P")
R = TypeVar("R")

_CAPACITY = 16
"""Traces that a thread keeps."""
_ELEMENTS = 1 << 22
"""Arguments with more elements are traced anew, which is little beside what is done with them, and nothing is kept."""
_ELEMENTS_KEPT = 1 << 24
"""Elements of the arguments of all traces that a thread keeps: with these lives the memory that steps compute in."""


class _Traced(NamedTuple):
    """What a function computes.

    Attributes:
      given: placeholders for its tensors.
      form: the tree that it returned.
      outs: the leaves of that.
      part: these, on placeholders of their own.
      body: the steps that compute them.
      constants: what it used beside its tensors, such as counters, which live as long.
      elements: of its tensors.
    """

    given: list[LazyBuffer]
    form: Any
    outs: list[LazyBuffer]
    part: Isolated
    body: Body
    constants: list[Tensor]
    elements: int


class _Kept(local):
    """For each thread the traces that were used last, the oldest first."""

    def __init__(self) -> None:
        self.traces: OrderedDict[tuple[Any, ...], _Traced] = OrderedDict()


_KEPT = _Kept()


def traced_once(function: Callable[P, R]) -> Callable[P, R]:
    """A function that is called once for tensors of some shapes, dtypes and device, and other arguments that are equal.

    Args:
      function: takes tensors and what can be hashed, by position, and returns a tree of tensors that it computes from
        these alone. Its results have no gradient. With an argument by name it is called each time.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.transform.traced_once import traced_once
      >>> @traced_once
      ... def scaled(x, factor):
      ...     print("called")
      ...     return x * factor
      >>> with Tensor.no_grad():
      ...     scaled(Tensor([1.0, 2.0]), 3), scaled(Tensor([3.0, 4.0]), 3)
      called
      (Tensor([3., 6.]), Tensor([ 9., 12.]))
    """

    @wraps(function)
    def once(*args: P.args, **kwargs: P.kwargs) -> R:
        tensors = tensors_in(args)
        if kwargs or not _keeps(tensors):
            return function(*args, **kwargs)
        key = _key(function, args, tensors)
        values = [tensor.lazydata for tensor in tensors]
        found = _KEPT.traces.pop(key, None)
        if found is None:
            with foreseeing(computable(values)), Uncollected():
                found = _trace(function, args, tensors)
            _make_room(found.elements)
        _KEPT.traces[key] = found
        results = run_body(function.__name__.strip("_"), found.body, found.part, found.given, found.outs, values)
        out: R = fill_tensors(found.form, [Tensor._value(lazy) for lazy in results])
        return out

    return once


def _make_room(elements: int) -> None:
    """Forgets the oldest traces, until there is room for one whose arguments have so many elements."""
    traces = _KEPT.traces
    total = elements + sum(trace.elements for trace in traces.values())
    while len(traces) >= _CAPACITY or (traces and total > _ELEMENTS_KEPT):
        _, gone = traces.popitem(last=False)
        total -= gone.elements


def _elements(tensors: Sequence[Tensor]) -> int:
    return sum(prod(tensor._ints()) for tensor in tensors)


def _keeps(tensors: Sequence[Tensor]) -> bool:
    """Whether a trace would be good for other tensors like these."""
    return (
        bool(tensors)
        and not MODE.recording
        and not ANOMALY.value  # names the lines that steps come from
        and all(tensor.lazydata.st.numeric for tensor in tensors)
        and len({tensor.device for tensor in tensors}) == 1
        and _elements(tensors) <= _ELEMENTS
    )


def _key(function: Callable[..., Any], args: Sequence[Any], tensors: Sequence[Tensor]) -> tuple[Any, ...]:
    kinds = tuple((arg.shape, arg.dtype) if isinstance(arg, Tensor) else (type(arg), arg) for arg in args)
    settings = tuple(variable.value for variable in ContextVar.registry.values())
    return function, kinds, Device[tensors[0].device], MODE.precision, settings


def _trace(function: Callable[..., Any], args: Sequence[Any], tensors: Sequence[Tensor]) -> _Traced:
    given = placeholders([(tensor._ints(), tensor) for tensor in tensors])
    inner = fill_tensors(list(args), given)
    with Switch(MODE, "recording", False):
        form = trace(function.__name__, function, inner, given)
    outs = [value.lazydata for value in tensors_in(form)]
    nodes = [tensor.lazydata for tensor in given]
    part = isolate(outs, nodes)
    constants = [Tensor._value(node) for node in part.captured]
    return _Traced(nodes, form, outs, part, Body(part), constants, _elements(tensors))
