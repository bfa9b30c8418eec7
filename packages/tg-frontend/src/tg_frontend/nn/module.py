"""A base class for models that are written as PyTorch's are: ``forward``, ``parameters()``, ``state_dict()``."""

from __future__ import annotations

from tg_dtype import DType, dtypes

from ..array.writing import adopt
from ..keywords import checked
from ..tensor import Tensor
from .describing import describe
from .initial import parameter
from .state import get_parameters, get_state_dict, load_state_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, ClassVar, Self


def Parameter(data: Any, requires_grad: bool = True) -> Tensor:
    """A tensor that a model learns.

    Args:
      data: a tensor, of which a copy is made, or anything that a tensor is made of.
      requires_grad: whether it is to have a gradient.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Parameter(Tensor.zeros(2)).requires_grad
      True
    """
    made = data.detach().clone() if isinstance(data, Tensor) else Tensor(data)
    made.requires_grad = requires_grad
    return parameter(made) if requires_grad else made


class Module:
    """What a model may inherit from, and need not: calls go to ``forward``, and its tensors are found by name.

    Tensors and layers are attributes; nothing is registered, and ``super().__init__()`` may be called or not.

    Attributes:
      training: whether this model is in training, whatever stands around; None for what ``Tensor.train`` says.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> class Model(nn.Module):
      ...     def __init__(self):
      ...         super().__init__()
      ...         self.inner = nn.Linear(3, 5)
      ...     def forward(self, x):
      ...         return self.inner(x).relu()
      >>> model = Model()
      >>> model(Tensor.ones(2, 3)).shape, sorted(model.state_dict())
      ((2, 5), ['inner.bias', 'inner.weight'])
      >>> model
      Model(
        (inner): Linear(in_features=3, out_features=5, bias=True)
      )
    """

    training: bool | None = None
    _tree: ClassVar[bool] = True  # it is shown with its parts

    def __init__(self) -> None:
        """There is nothing to set."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the model computes: to be written by who inherits.

        Raises:
          NotImplementedError: if it was not.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Module().forward()
          Traceback (most recent call last):
          ...
          NotImplementedError: Module has no forward(): write what it computes
        """
        raise NotImplementedError(f"{type(self).__name__} has no forward(): write what it computes")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What ``forward`` gives, in training or not as :meth:`train` and :meth:`eval` say."""
        if self.training is None or self.training is Tensor.training:
            return self.forward(*args, **kwargs)
        with Tensor.train(self.training):
            return self.forward(*args, **kwargs)

    def __repr__(self) -> str:
        return describe(self)

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """This model and every layer in it by name, each once: what can be called and holds or computes tensors.

        Example:
          >>> from tg_frontend import nn
          >>> [name for name, _ in nn.Module().named_modules()]
          ['']
        """
        yield prefix, self
        seen = {id(self)}
        stack = [(prefix, self, name, part) for name, part in reversed(vars(self).items())]
        while stack:
            path, _, name, part = stack.pop()
            path = f"{path}.{name}" if path else str(name)
            if isinstance(part, (list, tuple)):
                inner: list[tuple[Any, Any]] = list(enumerate(part))
            elif isinstance(part, dict):
                inner = list(part.items())
            elif isinstance(part, (Tensor, type)) or not hasattr(part, "__dict__") or hasattr(part, "__code__"):
                continue
            else:
                inner = list(vars(part).items())
            if id(part) in seen:
                continue
            seen.add(id(part))
            if callable(part):
                yield path, part
            stack.extend((path, self, key, value) for key, value in reversed(inner))

    def modules(self) -> Iterator[Any]:
        """This model and every layer in it, each once.

        Example:
          >>> from tg_frontend import nn
          >>> len(list(nn.Module().modules()))
          1
        """
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The layers that are attributes of this model, by name.

        Example:
          >>> from tg_frontend import nn
          >>> list(nn.Module().named_children())
          []
        """
        return ((name, part) for name, part in self.named_modules() if name and "." not in name)

    def children(self) -> Iterator[Any]:
        """The layers that are attributes of this model.

        Example:
          >>> from tg_frontend import nn
          >>> list(nn.Module().children())
          []
        """
        return (part for _, part in self.named_children())

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """The floating tensors that may have gradients, by name, each once.

        Example:
          >>> from tg_frontend import nn
          >>> list(nn.Module().named_parameters())
          []
        """
        done: set[int] = set()
        for name, tensor in get_state_dict(self).items():
            if id(tensor) not in done and tensor.requires_grad is not False and tensor.dtype.kind == "float":
                done.add(id(tensor))
                yield name, tensor

    def parameters(self) -> Iterator[Tensor]:
        """The floating tensors that may have gradients, each once.

        Example:
          >>> from tg_frontend import nn
          >>> list(nn.Module().parameters())
          []
        """
        return (tensor for _, tensor in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The other tensors, by name: running statistics, counts, and what needs no gradient.

        Example:
          >>> from tg_frontend import nn
          >>> list(nn.Module().named_buffers())
          []
        """
        learnt = {id(tensor) for tensor in self.parameters()}
        return ((name, tensor) for name, tensor in get_state_dict(self).items() if id(tensor) not in learnt)

    def buffers(self) -> Iterator[Tensor]:
        """The tensors that are no parameters.

        Example:
          >>> from tg_frontend import nn
          >>> list(nn.Module().buffers())
          []
        """
        return (tensor for _, tensor in self.named_buffers())

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Sets an attribute to a tensor that needs no gradient.

        Args:
          persistent: False is refused: every tensor of a model is in its state.

        Raises:
          ValueError: if ``persistent`` is False.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> model = nn.Module()
          >>> model.register_buffer("mean", Tensor.zeros(2))
          >>> [name for name, _ in model.named_buffers()]
          ['mean']
        """
        if not persistent:
            raise ValueError("register_buffer: every tensor of a model is in its state; keep this one in a closure")
        if tensor is not None:
            tensor.requires_grad = False
        setattr(self, name, tensor)

    def register_parameter(self, name: str, tensor: Tensor | None) -> None:
        """Sets an attribute to a tensor that the model learns.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> model = nn.Module()
          >>> model.register_parameter("scale", Tensor.ones(2))
          >>> [name for name, _ in model.named_parameters()]
          ['scale']
        """
        setattr(self, name, tensor if tensor is None else parameter(tensor))

    def state_dict(self) -> dict[str, Tensor]:
        """The tensors by name; see :func:`tg_frontend.nn.state.get_state_dict`.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Module().state_dict()
          {}
        """
        return get_state_dict(self)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> None:
        """Puts tensors into the model by name; see :func:`tg_frontend.nn.state.load_state_dict`.

        Raises:
          KeyError: if a name is missing on one side, with ``strict``.
          ValueError: if shapes differ.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Module().load_state_dict({})
        """
        load_state_dict(self, state_dict, strict=strict, assign=assign)

    def train(self, mode: bool = True) -> Self:
        """Sets for this model and those in it whether they are in training. Returns the model.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Module().train().training
          True
        """
        for module in self.modules():
            if isinstance(module, Module):
                module.training = mode
        return self

    def eval(self) -> Self:
        """As ``train(False)``.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Module().eval().training
          False
        """
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets for all parameters whether they are to have gradients. Returns the model.

        Example:
          >>> from tg_frontend import nn
          >>> _ = nn.Module().requires_grad_(False)
        """
        for tensor in get_parameters(self):
            if tensor.dtype.kind == "float" and (
                    tensor.requires_grad is not False or getattr(tensor, "_parameter", False)):
                tensor.requires_grad = requires_grad
        return self

    def zero_grad(self) -> None:
        """Drops the gradients of all tensors.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Module().zero_grad()
        """
        for tensor in get_parameters(self):
            tensor.grad = None

    def apply(self, fn: Callable[[Any], object]) -> Self:
        """Calls a function on every layer, the innermost first, and on the model last. Returns the model.

        Example:
          >>> from tg_frontend import nn
          >>> _ = nn.Module().apply(print)
          Module()
        """
        for module in reversed(list(self.modules())):
            fn(module)
        return self

    def to(self, *wanted: Any, device: str | None = None, dtype: Any = None) -> Self:
        """Moves all tensors to a device, and casts the floating ones to a dtype. Returns the model.

        Args:
          wanted: a device and a floating dtype, or one of both.

        Raises:
          TypeError: if the dtype is no floating one.

        Example:
          >>> from tg_frontend import nn
          >>> _ = nn.Module().to("float16")
        """
        for one in wanted:
            if isinstance(one, str) and not hasattr(dtypes, one):
                device = one
            else:
                dtype = one
        kind = None if dtype is None else Tensor.zeros(0).cast(dtype).dtype
        if kind is not None and kind.kind != "float":
            raise TypeError(f"to: a floating dtype is wanted, got {kind.name}")
        for tensor in get_parameters(self):
            new = tensor.detach()
            new = new if kind is None or tensor.dtype.kind != "float" else new.cast(kind)
            new = new if device is None else new.to(device)
            if new.dtype is not tensor.dtype or new.device != tensor.device:
                adopt(tensor, new)
        return self

    def _cast(self, kind: DType) -> Self:
        return self.to(dtype=kind)

    def half(self) -> Self:
        """As ``to("float16")``.

        Example:
          >>> from tg_frontend import nn
          >>> _ = nn.Module().half()
        """
        return self._cast(dtypes.float16)

    def bfloat16(self) -> Self:
        """As ``to("bfloat16")``.

        Example:
          >>> from tg_frontend import nn
          >>> _ = nn.Module().bfloat16()
        """
        return self._cast(dtypes.bfloat16)

    def float(self) -> Self:
        """As ``to("float32")``.

        Example:
          >>> from tg_frontend import nn
          >>> _ = nn.Module().float()
        """
        return self._cast(dtypes.float32)

    def double(self) -> Self:
        """As ``to("float64")``.

        Example:
          >>> from tg_frontend import nn
          >>> _ = nn.Module().double()
        """
        return self._cast(dtypes.float64)


setattr(Module, "__init__", checked(Module.__init__, "Module"))  # noqa: B010
