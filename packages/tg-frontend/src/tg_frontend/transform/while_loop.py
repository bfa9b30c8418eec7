"""A function applied as long as a condition holds."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import LazyBuffer

from ..autograd.differentiation import MODE
from ..autograd.functions import Grads
from ..tensor import Tensor
from .batched_loop import run_while
from .joint import Joint
from .tracing import closed_over, next_carry, numeric, placeholders, same_device, there_now, trace
from .tree import in_parts, leaves, of_parts, rebuild, tensor_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def while_loop(cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """``while cond(state): state = body(state)``, with a body that is called once and compiled once.

    How many steps there are is found out when the result is asked for. There is no gradient: ``scan`` has one.

    Args:
      cond: takes the state and returns a tensor of one bool.
      body: takes the state and returns the next one, of the same shapes and dtypes.
      init: the first state: a tensor, or tuples, lists and dicts of such.

    Returns:
      The first state for which ``cond`` does not hold.

    Raises:
      TypeError: if ``cond`` gives no bool, the state changes its form or a dtype, or is something else than tensors.
      ValueError: if ``cond`` gives more than one element, the state changes a shape, or a size is symbolic.
      RuntimeError: if a function asks for a value, draws random numbers, or writes in place to a tensor that was there
        before; in ``backward``, always.

    Example:
      >>> from tg_frontend import Tensor, while_loop
      >>> while_loop(lambda x: x < 100, lambda x: x * 2, Tensor(3)).item()
      192
    """
    what = "while_loop"
    init = in_parts(init)
    start = [(name, tensor_of(value, name, what)) for name, value in leaves(init, "init")]
    if not start:
        raise ValueError("while_loop: the state has no tensors")
    same_device(what, start)
    numeric(what, start)
    tensors = [tensor for _, tensor in start]
    given = placeholders([(tensor._ints(), tensor) for tensor in tensors])
    there = there_now()
    for tensor in given:
        there.pop(id(tensor), None)
    flags: list[Tensor] = []

    def step(state: Any) -> Any:
        new = next_carry(what, init, in_parts(body(state)), given)
        flags.append(_flag(cond(of_parts(rebuild(init, new)))))
        return new

    first = _flag(cond(of_parts(rebuild(init, tensors))))
    new = trace(what, step, (of_parts(rebuild(init, given)),), given)
    try:
        lazies = run_while(
            what, [tensor.lazydata for tensor in given], [tensor.lazydata for tensor in new], flags[0].lazydata,
            [tensor.lazydata for tensor in tensors], first.lazydata,
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(f"while_loop: in what the functions compute {error}") from None
    floating = [tensor.dtype.kind == "float" for tensor in tensors]
    parents = [tensor for tensor, is_float in zip(tensors, floating, strict=True) if is_float]
    parents += closed_over(new, given, there)
    if not MODE.recording or all(tensor._wish is False for tensor in parents):
        return of_parts(rebuild(init, [Tensor._value(lazy) for lazy in lazies]))
    return of_parts(rebuild(init, WhileLoop(lazies, floating).results(parents, lazies)))


def _flag(value: Any) -> Tensor:
    if isinstance(value, bool):
        return Tensor(value)
    if not isinstance(value, Tensor) or value.dtype is not dtypes.bool:
        got = f"a tensor of {value.dtype.name}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
        raise TypeError(f"while_loop: the condition is a tensor of one bool, got {got}")
    if value.numel() != 1:
        raise ValueError(f"while_loop: the condition is a tensor of one bool, got one of shape {value.shape}")
    return value.reshape(())


class WhileLoop(Joint):
    """A loop of which nobody knows how many steps it takes."""

    __slots__ = ()

    def backward(self, grad: LazyBuffer) -> Grads:
        raise RuntimeError(
            "while_loop: there is no gradient, as nobody knows how many steps there are before they are done: "
            "use scan with a length, or detach() what goes in"
        )
