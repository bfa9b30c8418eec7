"""Functions of a person's own that are called with a module's inputs, results, gradients and states."""

from __future__ import annotations

from itertools import count

from ..tensor import Tensor
from ..transform.custom import Function, FunctionContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Registry = dict[int, "Hook"]

_numbers = count()
FORWARD = ("pre", "forward")
BACKWARD = ("backward_pre", "backward")
EVERYWHERE: dict[str, Registry] = {}
"""Hooks that are called with every module, by kind, before its own; empty until one is registered."""


class Hook:
    """A function that is called at some point of a module's life.

    Attributes:
      function: the function.
      with_kwargs: whether it is given arguments by name, too.
      always: whether it is called after an error.
    """

    __slots__ = ("always", "function", "with_kwargs")

    def __init__(self, function: Callable[..., Any], with_kwargs: bool = False, always: bool = False) -> None:
        self.function, self.with_kwargs, self.always = function, with_kwargs, always


class HookHandle:
    """A hook of a module or an optimiser, to be removed; as a context, it is removed at its end."""

    __slots__ = ("_number", "_registry")

    def __init__(self, registry: Registry, hook: Hook, first: bool) -> None:
        self._registry, self._number = registry, next(_numbers)
        others = dict(registry) if first else {}
        if first:
            registry.clear()
        registry[self._number] = hook
        registry.update(others)

    def remove(self) -> None:
        """Removes the hook; nothing, if it is removed already."""
        self._registry.pop(self._number, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class _Passed(Function):
    """Tensors as they are, whose gradients are what a function of them gives."""

    @staticmethod
    def forward(ctx: FunctionContext, step: Any, *values: Tensor) -> tuple[Tensor, ...]:
        ctx.step = step  # type: ignore[attr-defined]
        return tuple(values)

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        return None, *ctx.step(grads)  # type: ignore[attr-defined]


class Gradients:
    """What a call of a module and its hooks know of the gradients that come back.

    Args:
      module: the module.
      before: hooks of gradients of results: those that there are when the module is called, as in PyTorch.
      after: hooks of those and of gradients of inputs, likewise.
    """

    def __init__(self, module: Any, before: list[Hook], after: list[Hook]) -> None:
        self.module, self.before, self.after = module, before, after
        self.places: list[int] = []
        self.width = 0
        self.of_results: tuple[Any, ...] | None = None  # of a backward that has not reached the inputs yet

    def through(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of the call, those that gradients flow to through the hooks."""
        self.width = len(args)
        self.places = [n for n, x in enumerate(args) if _may_have(x)]
        if not self.places:
            return args
        made = dict(zip(self.places, _Passed.apply(self.leave, *(args[n] for n in self.places)), strict=True))
        return tuple(made.get(n, x) for n, x in enumerate(args))

    def out(self, result: Any) -> Any:
        """The result of the call, through the hooks."""
        parts = result if isinstance(result, tuple) else (result,)
        places = [n for n, x in enumerate(parts) if isinstance(x, Tensor) and x.dtype.kind == "float"]
        if not places:
            return result
        self.results = len(parts), places
        made = dict(zip(places, _Passed.apply(self.enter, *(parts[n] for n in places)), strict=True))
        if not isinstance(result, tuple):
            return made[0]
        changed = tuple(made.get(n, x) for n, x in enumerate(parts))
        return type(result)(*changed) if hasattr(result, "_fields") else changed

    def enter(self, grads: tuple[Tensor, ...]) -> tuple[Any, ...]:
        """Calls the hooks with the gradients of the results."""
        number, places = self.results
        found = _spread(grads, places, number)
        for hook in self.before:
            found = _replaced(hook.function(self.module, found), found)
        if self.places:
            self.of_results = found
        else:
            for hook in self.after:
                hook.function(self.module, (None,) * self.width, found)
        return tuple(found[n] for n in places)

    def leave(self, grads: tuple[Tensor, ...]) -> tuple[Any, ...]:
        """Calls the hooks with the gradients of the inputs; not of a derivative of these that came past the results."""
        if self.of_results is None:
            return grads
        of_results, self.of_results = self.of_results, None
        found = _spread(grads, self.places, self.width)
        for hook in self.after:
            found = _replaced(hook.function(self.module, found, of_results), found)
        return tuple(found[n] for n in self.places)


def _may_have(x: Any) -> bool:
    """Whether a gradient flows through an argument: to one that is asked for, or to a parameter."""
    if not isinstance(x, Tensor) or x.dtype.kind != "float":
        return False
    context = x._ctx
    if context is None:
        return x._wish is True or (x._wish is None and x._parameter)
    return context.wanted or context.learnt


def _spread(grads: tuple[Tensor, ...], places: list[int], count: int) -> tuple[Any, ...]:
    at = dict(zip(places, grads, strict=True))
    return tuple(at.get(n) for n in range(count))


def _replaced(new: Any, old: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a hook gave in place of gradients; the same if it gave nothing."""
    if new is None:
        return old
    given = new if isinstance(new, tuple) else (new,)
    if len(given) != len(old):
        raise RuntimeError(f"a backward hook gave {len(given)} gradients; {len(old)} are wanted")
    return given


class Hooked:
    """What a module's hooks are registered with, and how they are called."""

    _hooks: dict[str, Registry] | None = None

    def _registry(self, kind: str) -> Registry:
        if self._hooks is None:
            self._hooks = {}
        return self._hooks.setdefault(kind, {})

    def _of(self, kind: str) -> list[Hook]:
        """The hooks of a kind, in the order in which they are called."""
        return list(self._hooks.get(kind, {}).values()) if self._hooks else []

    def _called(self, kind: str) -> list[Hook]:
        """Likewise, after those of every module."""
        return [*EVERYWHERE.get(kind, {}).values(), *self._of(kind)]

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Calls a function of the model and its arguments (a tuple) before each ``forward``.

        Args:
          hook: gives None, or the arguments in place of those; ``with_kwargs``, both kinds of them.
          prepend: whether it is called before the hooks that there are.
          with_kwargs: whether it is given the arguments by name, a dict, too.

        Returns:
          A handle whose ``remove()`` ends that.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> layer = nn.ReLU()
          >>> with layer.register_forward_pre_hook(lambda layer, args: -args[0]):
          ...     layer(Tensor([-1.0, 2.0]))
          Tensor([1., 0.])
        """
        return HookHandle(self._registry("pre"), Hook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> HookHandle:
        """Calls a function of the model, its arguments (a tuple) and its result after each ``forward``.

        Args:
          hook: gives None, or the result in place of that.
          prepend: whether it is called before the hooks that there are.
          with_kwargs: whether it is given the arguments by name, a dict before the result, too.
          always_call: whether it is called with None for a result where ``forward`` raised an error.

        Returns:
          A handle whose ``remove()`` ends that.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> layer = nn.ReLU()
          >>> with layer.register_forward_hook(lambda layer, args, out: out + 1):
          ...     layer(Tensor([-1.0, 2.0]))
          Tensor([1., 3.])
        """
        return HookHandle(self._registry("forward"), Hook(hook, with_kwargs, always_call), prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> HookHandle:
        """Calls a function of the model, the gradients of its inputs and those of its results (tuples) with each
        ``backward``.

        Inputs that no gradient flows to, and arguments that are no tensors, have None.

        Args:
          hook: gives None, or gradients of the inputs in place of those.
          prepend: whether it is called before the hooks that there are.

        Returns:
          A handle whose ``remove()`` ends that.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> x, layer = Tensor([-1.0, 2.0], requires_grad=True), nn.ReLU()
          >>> with layer.register_full_backward_hook(lambda layer, grad_input, grad_output: (grad_input[0] * 10,)):
          ...     _ = layer(x).sum().backward()
          >>> x.grad
          Tensor([ 0., 10.])
        """
        return HookHandle(self._registry("backward"), Hook(hook), prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """An older name of :meth:`register_full_backward_hook`.

        Example:
          >>> from tg_frontend import nn
          >>> nn.ReLU().register_backward_hook(print).remove()
        """
        return self.register_full_backward_hook(hook)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> HookHandle:
        """Calls a function of the model and the gradients of its results (a tuple) before these go through it.

        Args:
          hook: gives None, or gradients in place of those.
          prepend: whether it is called before the hooks that there are.

        Returns:
          A handle whose ``remove()`` ends that.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> x, layer = Tensor([-1.0, 2.0], requires_grad=True), nn.ReLU()
          >>> with layer.register_full_backward_pre_hook(lambda layer, grad_output: (grad_output[0] * 10,)):
          ...     _ = layer(x).sum().backward()
          >>> x.grad
          Tensor([ 0., 10.])
        """
        return HookHandle(self._registry("backward_pre"), Hook(hook), prepend)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Calls a function of the model, a prefix of names and False before its ``state_dict`` is made.

        Example:
          >>> from tg_frontend import nn
          >>> with nn.ReLU().register_state_dict_pre_hook(print) as handle:
          ...     handle.remove()
        """
        return HookHandle(self._registry("state_pre"), Hook(hook), False)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Calls a function of the model, the state, a prefix of names and a dict once its ``state_dict`` is made.

        The hook changes the state itself: what stands under names with that prefix belongs to the model.

        Example:
          >>> from tg_frontend import nn
          >>> layer = nn.Linear(2, 3)
          >>> _ = layer.register_state_dict_post_hook(lambda layer, state, prefix, _: state.pop(prefix + "bias"))
          >>> list(layer.state_dict())
          ['weight']
        """
        return HookHandle(self._registry("state"), Hook(hook), False)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Calls a function before a state is put into the model.

        Args:
          hook: of the model, what the state has of it (a copy, which the hook may change), the prefix of those names, a
            dict, ``strict``, and lists of names that are missing, of names that are unknown, and of messages, to which
            it may add.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> layer = nn.Linear(2, 3, bias=False)
          >>> _ = layer.register_load_state_dict_pre_hook(
          ...     lambda layer, state, prefix, *_: state.update({prefix + "weight": state.pop(prefix + "kernel")}))
          >>> layer.load_state_dict({"kernel": Tensor.zeros(3, 2)})
          <All keys matched successfully>
        """
        return HookHandle(self._registry("load_pre"), Hook(hook), False)

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> HookHandle:
        """The older form, by the name that programs know: the function is not given the model if not asked for."""
        return self.register_load_state_dict_pre_hook(hook if with_module else lambda _, *rest: hook(*rest))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Calls a function of the model and of what ``load_state_dict`` returns, once a state was put into the model.

        Example:
          >>> from tg_frontend import nn
          >>> layer = nn.ReLU()
          >>> _ = layer.register_load_state_dict_post_hook(lambda layer, keys: print(keys.missing_keys))
          >>> _ = layer.load_state_dict({})
          []
        """
        return HookHandle(self._registry("load"), Hook(hook), False)

    def _call_hooked(self, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of the model with its hooks."""
        called: set[int] = set()
        try:
            for hook in self._called("pre"):
                args, kwargs = _prepared(hook, self, args, kwargs)
            gradients = None
            before, after = (self._called(kind) for kind in BACKWARD)
            if before or after:
                gradients = Gradients(self, before, after)
                args = gradients.through(args)
            out = forward(*args, **kwargs)
            for hook in self._called("forward"):
                called.add(id(hook))
                changed = _followed(hook, self, args, kwargs, out)
                out = out if changed is None else changed
            return out if gradients is None else gradients.out(out)
        except Exception:
            for hook in self._called("forward"):
                if hook.always and id(hook) not in called:
                    _followed(hook, self, args, kwargs, None)
            raise


def _prepared(
    hook: Hook, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments after a hook has seen them."""
    if hook.with_kwargs:
        both = hook.function(module, args, kwargs)
        if both is None:
            return args, kwargs
        if not isinstance(both, tuple) or len(both) != 2:
            raise RuntimeError(f"a forward hook with kwargs gives None or (args, kwargs), not {both!r}")
        return both
    changed = hook.function(module, args)
    if changed is None:
        return args, kwargs
    return changed if isinstance(changed, tuple) else (changed,), kwargs


def _followed(hook: Hook, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    """What a hook gives in place of a result."""
    return hook.function(module, args, kwargs, out) if hook.with_kwargs else hook.function(module, args, out)
