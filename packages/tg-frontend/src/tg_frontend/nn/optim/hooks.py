"""Functions of a person's own that are called around the steps of an optimiser, and around its states."""

from __future__ import annotations

from functools import update_wrapper

from tg_lazy.graph.origin import WRAPPERS

from ..hooks import Hook, HookHandle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from ..hooks import Registry

    F = TypeVar("F", bound=Callable[..., Any])


def sees_to_hooks(step: F) -> F:
    """Marks a ``step`` that calls the hooks itself."""
    step.sees_to_hooks = True  # type: ignore[attr-defined]
    return step


class HookedOptimizer:
    """What an optimiser's hooks are registered with, and how they are called."""

    _hooks: dict[str, Registry] | None = None
    _stepping = False  # in a step whose hooks are called already

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = vars(cls).get("step")
        if own is not None and not hasattr(own, "sees_to_hooks"):

            def step(self: Any, *args: Any, **kwargs: Any) -> Any:
                return self._hooked_step(lambda *given, **named: own(self, *given, **named), *args, **kwargs)

            WRAPPERS.add(step.__code__)
            cls.step = update_wrapper(step, own)  # type: ignore[attr-defined]

    def _register(self, kind: str, hook: Callable[..., Any], first: bool = False) -> HookHandle:
        if self._hooks is None:
            self._hooks = {}
        return HookHandle(self._hooks.setdefault(kind, {}), Hook(hook), first)

    def _of(self, kind: str) -> list[Hook]:
        return list(self._hooks.get(kind, {}).values()) if self._hooks else []

    def _hooked_step(self, step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A step with its hooks, which are called once where one ``step`` calls that of a base class."""
        if not self._hooks or self._stepping:
            return step(*args, **kwargs)
        self._stepping = True
        try:
            for hook in self._of("pre"):
                both = hook.function(self, args, kwargs)
                if both is not None:
                    if not isinstance(both, tuple) or len(both) != 2:
                        raise RuntimeError(f"a hook before a step gives None or (args, kwargs), not {both!r}")
                    args, kwargs = both
            out = step(*args, **kwargs)
            for hook in self._of("post"):
                hook.function(self, args, kwargs)
            return out
        finally:
            self._stepping = False

    def _changed(self, kind: str, state: Any) -> Any:
        """A state after the hooks of a kind have seen it; each may give another in its place."""
        for hook in self._of(kind):
            new = hook.function(self, state)
            state = state if new is None else new
        return state

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Calls a function of the optimiser, the arguments and the arguments by name before each ``step``.

        Args:
          hook: gives None, or both kinds of arguments in place of those.

        Returns:
          A handle whose ``remove()`` ends that.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> weight = Tensor([1.0])
          >>> optimizer = nn.optim.SGD([weight], lr=0.5)
          >>> _ = optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: print("before"))
          >>> _ = weight.sum().backward()
          >>> optimizer.step()
          before
        """
        return self._register("pre", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Calls a function of the optimiser, the arguments and the arguments by name after each ``step``.

        Returns:
          A handle whose ``remove()`` ends that.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> weight = Tensor([1.0])
          >>> optimizer = nn.optim.SGD([weight], lr=0.5)
          >>> _ = optimizer.register_step_post_hook(lambda optimizer, args, kwargs: print(weight.tolist()))
          >>> _ = weight.sum().backward()
          >>> optimizer.step()
          [0.5]
        """
        return self._register("post", hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> HookHandle:
        """Calls a function of the optimiser before its ``state_dict`` is made.

        Args:
          hook: the function.
          prepend: whether it is called before the hooks that there are.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> optimizer = nn.optim.SGD([Tensor([1.0])])
          >>> _ = optimizer.register_state_dict_pre_hook(lambda optimizer: print("asked"))
          >>> _ = optimizer.state_dict()
          asked
        """
        return self._register("state_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> HookHandle:
        """Calls a function of the optimiser and of its state once that is made.

        Args:
          hook: gives None, or a state in place of that.
          prepend: whether it is called before the hooks that there are.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> optimizer = nn.optim.SGD([Tensor([1.0])])
          >>> _ = optimizer.register_state_dict_post_hook(lambda optimizer, state: {**state, "epoch": 3})
          >>> optimizer.state_dict()["epoch"]
          3
        """
        return self._register("state", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> HookHandle:
        """Calls a function of the optimiser and of a state before that is put into it.

        Args:
          hook: gives None, or a state in place of that.
          prepend: whether it is called before the hooks that there are.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.25)
          >>> _ = optimizer.register_load_state_dict_pre_hook(lambda optimizer, state: state["optimizer"])
          >>> optimizer.load_state_dict({"optimizer": nn.optim.SGD([Tensor([1.0])], lr=0.5).state_dict()})
          >>> optimizer.param_groups[0]["lr"]
          0.5
        """
        return self._register("load_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> HookHandle:
        """Calls a function of the optimiser once a state was put into it.

        Args:
          hook: the function.
          prepend: whether it is called before the hooks that there are.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.25)
          >>> _ = optimizer.register_load_state_dict_post_hook(lambda optimizer: print("loaded"))
          >>> optimizer.load_state_dict(optimizer.state_dict())
          loaded
        """
        return self._register("load", hook, prepend)
