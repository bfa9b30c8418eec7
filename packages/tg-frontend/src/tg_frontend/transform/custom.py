"""Functions with gradients of a person's own, written as PyTorch's."""

from __future__ import annotations

from functools import wraps
from typing import cast

from tg_lazy import LazyBuffer

from ..autograd.differentiation import MODE, Switch
from ..autograd.functions import Function as Primitive
from ..autograd.functions import Grads
from ..tensor import Tensor
from .joint import Joint
from .tree import fill_tensors, tensors_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


class FunctionContext:
    """What :meth:`Function.forward` leaves for :meth:`Function.backward`: tensors, and attributes of any name.

    Attributes:
      needs_input_grad: for each argument, whether its gradient is wanted.

    Example:
      >>> from tg_frontend import FunctionContext, Tensor
      >>> ctx = FunctionContext()
      >>> ctx.save_for_backward(Tensor([1.0]))
      >>> ctx.saved_tensors
      (Tensor([1.]),)
    """

    def __init__(self) -> None:
        self.needs_input_grad: tuple[bool, ...] = ()
        self._saved: list[Tensor] = []
        self._nodes: list[LazyBuffer] = []
        self._unmoved: tuple[Tensor, ...] = ()
        self._filled = True

    def save_for_backward(self, *tensors: Tensor) -> None:
        """Keeps arguments and results; that they are overwritten in place before the gradient is taken is noticed.

        Example:
          >>> from tg_frontend import FunctionContext, Tensor
          >>> FunctionContext().save_for_backward(Tensor([1.0]))
        """
        self._saved = list(tensors)

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """What was kept.

        Raises:
          RuntimeError: if one was written to in place since.

        Example:
          >>> from tg_frontend import FunctionContext
          >>> FunctionContext().saved_tensors
          ()
        """
        if any(node.base.ended for node in self._nodes):
            raise RuntimeError("saved_tensors: a tensor that was saved was written to in place since")
        return tuple(self._saved)


    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Says of results that they have no gradient, though they are of floats: for them ``backward`` gets zeros.

        Example:
          >>> from tg_frontend import Function, Tensor
          >>> class Split(Function):
          ...     @staticmethod
          ...     def forward(ctx, x):
          ...         whole = x.floor()
          ...         ctx.mark_non_differentiable(whole)
          ...         return whole, x - whole
          ...     @staticmethod
          ...     def backward(ctx, of_whole, of_rest):
          ...         return of_rest
          >>> [part.requires_grad for part in Split.apply(Tensor([1.5], requires_grad=True))]
          [False, True]
        """
        self._unmoved = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Says whether ``backward`` gets zeros for results that no gradient reaches, or None.

        Example:
          >>> from tg_frontend import FunctionContext
          >>> FunctionContext().set_materialize_grads(False)
        """
        self._filled = value


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator for ``backward`` of a :class:`Function` whose gradient is not to be differentiated in turn.

    Nothing that it computes is recorded; who differentiates what it returns gets an error.

    Example:
      >>> from tg_frontend import Function, Tensor
      >>> from tg_frontend.transform.custom import once_differentiable
      >>> class Square(Function):
      ...     @staticmethod
      ...     def forward(ctx, x):
      ...         ctx.save_for_backward(x)
      ...         return x * x
      ...     @staticmethod
      ...     @once_differentiable
      ...     def backward(ctx, grad):
      ...         return grad * 2 * ctx.saved_tensors[0]
      >>> x = Tensor([3.0], requires_grad=True)
      >>> Square.apply(x).gradient(x)[0].gradient(x)
      Traceback (most recent call last):
      ...
      RuntimeError: Square.backward is once_differentiable: gradients of what it returns are not there
    """

    @wraps(backward)
    def once(ctx: FunctionContext, *grads: Any) -> Any:
        with Switch(MODE, "recording", False):
            found = backward(ctx, *grads)
        if not MODE.recording:
            return found
        behind = tensors_in([one for one in (*grads, *ctx._saved) if isinstance(one, Tensor)])
        behind = [one for one in behind if one.dtype.kind == "float"]
        name = backward.__qualname__.rpartition("<locals>.")[2]
        listed = list(found) if isinstance(found, tuple) else [found]
        tensors = [one for one in listed if isinstance(one, Tensor)]
        last = iter(fill_tensors(tensors, [one._apply(_Last(name), *behind) for one in tensors_in(tensors)]))
        out = tuple([next(last) if isinstance(one, Tensor) else one for one in listed])
        return out if isinstance(found, tuple) else out[0]

    return once


class _Last(Primitive):
    """A gradient that is not to be differentiated.

    Args:
      label: what computed it.
    """

    __slots__ = ("label",)

    def __init__(self, label: str) -> None:
        self.label = label

    def forward(self, x: LazyBuffer, *behind: LazyBuffer) -> LazyBuffer:
        return x

    def backward(self, grad: LazyBuffer) -> Grads:
        raise RuntimeError(f"{self.label} is once_differentiable: gradients of what it returns are not there")


class _Applied(Joint):
    """A function of a person's own, as the graph knows it."""

    __slots__ = ("context", "count", "given", "kind", "pairs")

    asks = True

    def __init__(
        self, kind: type[Function], context: FunctionContext, given: Sequence[tuple[int, bool]], count: int,
        results: Sequence[Any],
    ) -> None:  # fmt: skip
        tensors = [one for one in results if isinstance(one, Tensor)]
        still = {id(part) for part in tensors_in(context._unmoved)}
        flat = tensors_in(tensors)
        floating = [one.dtype.kind == "float" and id(one) not in still for one in flat]
        super().__init__([one.lazydata for one in flat], floating)
        self.kind, self.context, self.given, self.count = kind, context, given, count
        self.pairs = [one.is_complex() if isinstance(one, Tensor) else None for one in results]

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.kind.__name__

    def backward(self, grad: LazyBuffer) -> Grads:
        weights = [None if part is None else Tensor._value(part) for part in self.parts(grad)]
        with Switch(MODE, "recording", False):
            return tuple(None if one is None else one.lazydata for one in self._asked(weights))

    def derive(self, grad: LazyBuffer, operands: Callable[[str, int], LazyBuffer]) -> Grads:
        values: Any = self.parts(grad)
        kind: Any = type(grad)
        found = self._asked([None if part is None else part.tensor for part in values])
        return tuple(None if one is None else kind(one) for one in found)

    def _asked(self, weights: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The gradients of the arguments that are tensors."""
        filled, parent = self.context._filled, cast("Tensor", self.parents[0])
        reached, self.reached = self.reached, set[int]()
        values: list[Tensor | None] = []
        for weight, place, shape, kind in zip(weights, self.places, self.shapes, self.kinds, strict=True):
            if filled and weight is None:
                weight = Tensor.zeros(*shape, dtype=kind, device=parent.device)
            values.append(weight if filled or place in reached else None)
        rest = iter(values)
        full: list[Tensor | None] = []
        for pair in self.pairs:
            there = [] if pair is None else [next(rest) for _ in range(1 + pair)]
            known = [one for one in there if one is not None]
            if not known:
                full.append(None)
            else:
                both = [known[0].zeros_like() if one is None else one for one in there]
                full.append(Tensor._composed(*both) if pair else both[0])
        found = self.kind.backward(self.context, *full)  # type: ignore[arg-type]  # None for what has no gradient
        listed = list(found) if isinstance(found, tuple) else [found]
        if len(listed) != self.count:
            raise RuntimeError(
                f"{self.name}.backward returned {len(listed)} gradients; forward was given {self.count} arguments"
            )
        parents: Any = iter(self.parents)
        out: list[Tensor | None] = []
        for place, pair in self.given:
            one, parent = listed[place], next(parents)
            if one is not None and not isinstance(one, Tensor):
                raise TypeError(f"{self.name}.backward returned a {type(one).__name__} for argument {place}")
            if one is not None and one.shape != parent.shape:
                raise RuntimeError(
                    f"{self.name}.backward returned shape {one.shape} for argument {place}, of shape {parent.shape}"
                )
            out.append(None if one is None else one.real.cast(parent.dtype))
            if pair:
                next(parents)
                out.append(one.imag.cast(parent.dtype) if one is not None and one.is_complex() else None)
        return out


class Function:
    """A function whose gradient a person writes: subclass it, define ``forward`` and ``backward``, call ``apply``.

    Both are static methods, and take a :class:`FunctionContext` first; where :meth:`setup_context` is defined,
    ``forward`` takes none. ``forward`` takes the arguments of ``apply`` and returns a tensor, or a tuple of tensors
    and other things; nothing in it is recorded. ``backward`` takes a gradient for each result (None for what is no
    tensor) and returns one for each argument, or None. What it computes, of these and of ``saved_tensors``, is recorded
    where the gradient is to be differentiated in turn. Gradients of complex tensors are complex, dL/dRe + i dL/dIm.

    Example:
      >>> from tg_frontend import Function, Tensor
      >>> class Clipped(Function):
      ...     @staticmethod
      ...     def forward(ctx, x, limit):
      ...         ctx.limit = limit
      ...         return x * 1
      ...     @staticmethod
      ...     def backward(ctx, grad):
      ...         return grad.clip(-ctx.limit, ctx.limit), None
      >>> x = Tensor([1.0, 2.0], requires_grad=True)
      >>> _ = (Clipped.apply(x, 0.5) * Tensor([0.1, 3.0])).sum().backward()
      >>> x.grad
      Tensor([0.1, 0.5])
    """

    @staticmethod
    def forward(ctx: FunctionContext, *args: Any) -> Any:
        """What the function computes.

        Example:
          >>> from tg_frontend import Function
          >>> callable(Function.forward)
          True
        """
        raise NotImplementedError("forward: define it as a static method of (ctx, *args)")

    @staticmethod
    def setup_context(ctx: FunctionContext, inputs: tuple[Any, ...], output: Any) -> None:
        """What :meth:`forward` leaves for :meth:`backward`, apart from it: ``forward`` then takes no context.

        Example:
          >>> from tg_frontend import Function, Tensor
          >>> class Square(Function):
          ...     @staticmethod
          ...     def forward(x):
          ...         return x * x
          ...     @staticmethod
          ...     def setup_context(ctx, inputs, output):
          ...         ctx.save_for_backward(*inputs)
          ...     @staticmethod
          ...     def backward(ctx, grad):
          ...         return grad * 2 * ctx.saved_tensors[0]
          >>> x = Tensor([1.0, 3.0], requires_grad=True)
          >>> _ = Square.apply(x).sum().backward()
          >>> x.grad
          Tensor([2., 6.])
        """

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        """The gradients of the arguments.

        Example:
          >>> from tg_frontend import Function
          >>> callable(Function.backward)
          True
        """
        raise NotImplementedError("backward: define it as a static method of (ctx, *grads)")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Calls ``forward``, and ``backward`` when a gradient is wanted.

        Raises:
          TypeError: if ``forward`` returns no tensor.

        Example:
          >>> from tg_frontend import Function, Tensor
          >>> class Twice(Function):
          ...     @staticmethod
          ...     def forward(ctx, x):
          ...         return x * 2
          ...     @staticmethod
          ...     def backward(ctx, grad):
          ...         return grad * 2
          >>> Twice.apply(Tensor([1.0, 2.0]))
          Tensor([2., 4.])
        """
        context = FunctionContext()
        context.needs_input_grad = tuple([
            isinstance(arg, Tensor) and arg._wish is not False and arg.dtype.kind in ("float", "complex")
            for arg in args
        ])  # fmt: skip
        given = [(place, arg.is_complex()) for place, arg in enumerate(args) if isinstance(arg, Tensor)]
        with Switch(MODE, "recording", False):
            if cls.setup_context is Function.setup_context:
                returned = cls.forward(context, *args)
            else:
                returned = cls.forward(*args)
                cls.setup_context(context, args, returned)
        results = list(returned) if isinstance(returned, tuple) else [returned]
        tensors = [one for one in results if isinstance(one, Tensor)]
        if not tensors:
            raise TypeError(f"{cls.__name__}.forward returned a {type(returned).__name__}, not a tensor")
        if not given:
            return returned
        applied = _Applied(cls, context, given, len(args), results)
        parents = [part for place, _ in given for part in args[place]._floats()]
        found = applied.results(parents, [one.lazydata for one in tensors_in(tensors)])
        made = {id(one): out for one, out in zip(tensors, fill_tensors(tensors, found), strict=True)}
        for one in context._unmoved:
            if id(one) in made:
                made[id(one)].requires_grad = False
        outs = [made.get(id(one), one) for one in results]
        context._saved = [made.get(id(one), one) for one in context._saved]
        context._nodes = [one.lazydata for one in tensors_in(context._saved)]
        return tuple(outs) if isinstance(returned, tuple) else outs[0]
