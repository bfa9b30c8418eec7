"""Functions with gradients of a person's own, written as PyTorch's."""

from __future__ import annotations

from tg_lazy import LazyBuffer

from ..autograd.differentiation import MODE, Switch
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


class _Applied(Joint):
    """A function of a person's own, as the graph knows it."""

    __slots__ = ("context", "count", "given", "kind", "pairs")

    def __init__(
        self, kind: type[Function], context: FunctionContext, given: Sequence[tuple[int, bool]], count: int,
        results: Sequence[Tensor],
    ) -> None:  # fmt: skip
        flat = tensors_in(results)
        super().__init__([one.lazydata for one in flat], [one.dtype.kind == "float" for one in flat])
        self.kind, self.context, self.given, self.count = kind, context, given, count
        self.pairs = [one.is_complex() for one in results]

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
        full = [
            Tensor.zeros(*shape, dtype=kind) if weight is None else weight
            for weight, shape, kind in zip(weights, self.shapes, self.kinds, strict=True)
        ]  # fmt: skip
        parts = iter(full)
        full = [Tensor._composed(next(parts), next(parts)) if pair else next(parts) for pair in self.pairs]
        found = self.kind.backward(self.context, *full)
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
    ``forward`` takes none. ``forward`` takes the arguments of ``apply`` and returns a tensor or a tuple of tensors;
    nothing in it is recorded. ``backward`` takes a gradient for each result and returns one for each argument, or
    None. What it computes, of these and of ``saved_tensors``, is recorded where the gradient is to be differentiated
    in turn. Gradients of complex tensors are complex, dL/dRe + i dL/dIm.

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
          TypeError: if ``forward`` returns something else than tensors.

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
            isinstance(arg, Tensor) and arg.requires_grad is not False and arg.dtype.kind in ("float", "complex")
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
        for one in results:
            if not isinstance(one, Tensor):
                raise TypeError(f"{cls.__name__}.forward returned a {type(one).__name__}, not a tensor")
        if not given:
            return returned
        applied = _Applied(cls, context, given, len(args), results)
        parents = [part for place, _ in given for part in args[place]._floats()]
        found = applied.results(parents, [one.lazydata for one in tensors_in(results)])
        outs = fill_tensors(results, found)
        made = {id(one): out for one, out in zip(results, outs, strict=True)}
        context._saved = [made.get(id(one), one) for one in context._saved]
        context._nodes = [one.lazydata for one in tensors_in(context._saved)]
        return tuple(outs) if isinstance(returned, tuple) else outs[0]
