"""A base class for models that are written as PyTorch's are: ``forward``, ``parameters()``, ``state_dict()``."""

from __future__ import annotations

from tg_dtype import DType, dtypes

from ..autograd.hooks import Handle
from ..keywords import checked
from ..tensor import Tensor
from .describing import HOOKS, describe
from .initial import parameter
from .moving import move
from .state import get_parameters, get_state_dict, load_state_dict, parts_of, tensors_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, ClassVar, Self


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
    _as_written: ClassVar[bool] = True  # errors in what a person wrote into forward() name what they called there
    _derived: tuple[str, ...] = ()  # attributes that are computed from others, and are in no state
    _transient_names: tuple[str, ...] = ()  # attributes with tensors that are in no state
    _before: dict[int, Callable[..., Any]] | None = None
    _after: dict[int, Callable[..., Any]] | None = None

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
        if self._before is not None or self._after is not None:
            return self._hooked(*args, **kwargs)
        if self.training is None or self.training is Tensor.training:
            return self.forward(*args, **kwargs)
        with Tensor.train(self.training):
            return self.forward(*args, **kwargs)

    def _hooked(self, *args: Any, **kwargs: Any) -> Any:
        for before in list((self._before or {}).values()):
            changed = before(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        with Tensor.train(Tensor.training if self.training is None else self.training):
            out = self.forward(*args, **kwargs)
        for after in list((self._after or {}).values()):
            changed = after(self, args, out)
            out = out if changed is None else changed
        return out

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Calls a function of the model and its arguments (a tuple) before each ``forward``.

        Args:
          hook: gives None, or the arguments in place of those.

        Returns:
          A handle whose ``remove()`` ends that.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> layer = nn.ReLU()
          >>> with layer.register_forward_pre_hook(lambda layer, args: -args[0]):
          ...     layer(Tensor([-1.0, 2.0]))
          Tensor([1., 0.])
        """
        if self._before is None:
            self._before = {}
        return Handle(self._before, hook)

    def register_forward_hook(self, hook: Callable[..., Any]) -> Handle:
        """Calls a function of the model, its arguments (a tuple) and its result after each ``forward``.

        Args:
          hook: gives None, or the result in place of that.

        Returns:
          A handle whose ``remove()`` ends that.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> layer = nn.ReLU()
          >>> with layer.register_forward_hook(lambda layer, args, out: out + 1):
          ...     layer(Tensor([-1.0, 2.0]))
          Tensor([1., 3.])
        """
        if self._after is None:
            self._after = {}
        return Handle(self._after, hook)

    def __repr__(self) -> str:
        return describe(self)

    def extra_repr(self) -> str:
        """What is shown of the model beside its parts: to be written by who inherits.

        Example:
          >>> from tg_frontend import nn
          >>> class Scale(nn.Module):
          ...     def extra_repr(self):
          ...         return "by=2"
          >>> Scale()
          Scale(by=2)
        """
        return ""

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """This model and every layer in it by name, each once: what can be called and holds or computes tensors.

        Example:
          >>> from tg_frontend import nn
          >>> [name for name, _ in nn.Module().named_modules()]
          ['']
        """
        seen: set[int] = set()
        stack: list[tuple[str, Any]] = [(prefix, self)]
        while stack:
            path, part = stack.pop()
            listed = isinstance(part, (list, tuple, dict))
            plain = isinstance(part, (Tensor, type)) or not hasattr(part, "__dict__") or hasattr(part, "__code__")
            if id(part) in seen or (plain and not listed):
                continue
            seen.add(id(part))
            if callable(part) or part is self or isinstance(part, Module):
                yield path, part
            inner = [(f"{path}.{name}" if path else str(name), value) for name, value in parts_of(part)]
            stack.extend(reversed([item for item in inner if item[0].rpartition(".")[2] not in HOOKS]))

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
        found = {id(part): (str(name), part) for name, part in reversed(parts_of(self)) if isinstance(part, Module)}
        plain = ((name, part) for name, part in self.named_modules() if name and "." not in name)
        found = {**{id(part): (name, part) for name, part in plain}, **found}
        return (found[id(part)] for _, part in self.named_modules() if id(part) in found)

    def children(self) -> Iterator[Any]:
        """The layers that are attributes of this model.

        Example:
          >>> from tg_frontend import nn
          >>> list(nn.Module().children())
          []
        """
        return (part for _, part in self.named_children())

    def add_module(self, name: str, module: Any) -> None:
        """Sets an attribute to a layer; in a dict or a Sequential, adds it under that name.

        Example:
          >>> from tg_frontend import nn
          >>> model = nn.Module()
          >>> model.add_module("inner", nn.ReLU())
          >>> model.inner
          ReLU()
        """
        if isinstance(self, dict):
            self[name] = module
        elif hasattr(self, "_named_items"):
            names = [known for known, _ in self._named_items()]
            self.append(module)  # type: ignore[attr-defined]
            self._names = (*names, name)
        else:
            setattr(self, name, module)

    def register_module(self, name: str, module: Any) -> None:
        """As :meth:`add_module`.

        Example:
          >>> from tg_frontend import nn
          >>> model = nn.Module()
          >>> model.register_module("inner", nn.Tanh())
          >>> model.inner
          Tanh()
        """
        self.add_module(name, module)

    def get_submodule(self, target: str) -> Any:
        """The layer of a dotted name, as :meth:`named_modules` has it.

        Raises:
          AttributeError: if there is none.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Sequential(nn.ReLU(), nn.Linear(2, 3)).get_submodule("1")
          Linear(in_features=2, out_features=3, bias=True)
        """
        return _found(self, target, dict(self.named_modules()), "layer")

    def get_parameter(self, target: str) -> Tensor:
        """The parameter of a dotted name.

        Raises:
          AttributeError: if there is none.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Sequential(nn.ReLU(), nn.Linear(2, 3)).get_parameter("1.weight").shape
          (3, 2)
        """
        found: Tensor = _found(self, target, dict(self.named_parameters()), "parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The tensor of a dotted name that is no parameter.

        Raises:
          AttributeError: if there is none.

        Example:
          >>> from tg_frontend import nn
          >>> nn.BatchNorm1d(2).get_buffer("running_mean")
          Tensor([0., 0.])
        """
        found: Tensor = _found(self, target, dict(self.named_buffers()), "buffer")
        return found

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """The floating tensors that may have gradients, by name, each once.

        Example:
          >>> from tg_frontend import nn
          >>> list(nn.Module().named_parameters())
          []
        """
        done: set[int] = set()
        for name, tensor in tensors_of(self, prefix).items():
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
        return ((name, tensor) for name, tensor in tensors_of(self).items() if id(tensor) not in learnt)

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
          persistent: whether what the attribute holds is in the state of the model, now and when it is set anew.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> model = nn.Module()
          >>> model.register_buffer("mean", Tensor.zeros(2))
          >>> model.register_buffer("mask", Tensor.ones(2), persistent=False)
          >>> [name for name, _ in model.named_buffers()], list(model.state_dict())
          (['mean', 'mask'], ['mean'])
        """
        others = tuple(known for known in self._transient_names if known != name)
        if others != self._transient_names or not persistent:
            self._transient_names = others if persistent else (*others, name)
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

    def state_dict(self, *, prefix: str = "") -> dict[str, Tensor]:
        """The tensors by name; see :func:`tg_frontend.nn.state.get_state_dict`.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Module().state_dict()
          {}
        """
        return {prefix + name: tensor for name, tensor in get_state_dict(self).items()}

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

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all tensors; or fills them with zeros.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Module().zero_grad()
        """
        for tensor in get_parameters(self):
            if set_to_none or tensor.grad is None:
                tensor.grad = None
            else:
                tensor.grad.assign(0)

    def apply(self, fn: Callable[[Any], object]) -> Self:
        """Calls a function on every layer, the innermost first, and on the model last. Returns the model.

        Example:
          >>> from tg_frontend import nn
          >>> _ = nn.Module().apply(print)
          Module()
        """
        waiting: list[tuple[str, Any]] = []
        for name, module in self.named_modules():
            while waiting and waiting[-1][0] and not name.startswith(f"{waiting[-1][0]}."):
                fn(waiting.pop()[1])
            waiting.append((name, module))
        for _, module in reversed(waiting):
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
            move(tensor, device, kind if tensor.dtype.kind == "float" else None)
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


def _found(model: Module, target: str, named: dict[str, Any], what: str) -> Any:
    if target not in named:
        known = ", ".join(name for name in list(named)[:8] if name) or "none"
        raise AttributeError(f"{type(model).__name__} has no {what} {target!r}; there are {known}")
    return named[target]


setattr(Module, "__init__", checked(Module.__init__, "Module"))  # noqa: B010
