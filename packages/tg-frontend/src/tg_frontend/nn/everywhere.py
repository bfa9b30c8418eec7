"""Hooks that are called with every module, whichever it is: for looking into models that one did not write."""

from __future__ import annotations

from .hooks import EVERYWHERE, Hook, HookHandle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _registered(kind: str, hook: Hook) -> HookHandle:
    return HookHandle(EVERYWHERE.setdefault(kind, {}), hook, False)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> HookHandle:
    """Calls a function of the module and its arguments (a tuple) before each ``forward`` of any module.

    It is called before the module's own hooks; see :meth:`tg_frontend.nn.Module.register_forward_pre_hook`.

    Args:
      hook: gives None, or the arguments in place of those.

    Returns:
      A handle whose ``remove()`` ends that.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> with nn.register_module_forward_pre_hook(lambda module, args: print(type(module).__name__)):
      ...     _ = nn.Sequential(nn.ReLU(), nn.Tanh())(Tensor([1.0]))
      Sequential
      ReLU
      Tanh
    """
    return _registered("pre", Hook(hook))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> HookHandle:
    """Calls a function of the module, its arguments (a tuple) and its result after each ``forward`` of any module.

    It is called before the module's own hooks; see :meth:`tg_frontend.nn.Module.register_forward_hook`.

    Args:
      hook: gives None, or the result in place of that.
      with_kwargs: whether it is given the arguments by name, a dict before the result, too.
      always_call: whether it is called with None for a result where ``forward`` raised an error.

    Returns:
      A handle whose ``remove()`` ends that.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> with nn.register_module_forward_hook(lambda module, args, out: print(module, out.shape)):
      ...     _ = nn.Sequential(nn.Linear(2, 3), nn.Flatten(0))(Tensor.ones(1, 2))
      Linear(in_features=2, out_features=3, bias=True) (1, 3)
      Flatten(start_dim=0, end_dim=-1) (3,)
      Sequential(
        (0): Linear(in_features=2, out_features=3, bias=True)
        (1): Flatten(start_dim=0, end_dim=-1)
      ) (3,)
    """
    return _registered("forward", Hook(hook, with_kwargs, always_call))


def register_module_full_backward_hook(hook: Callable[..., Any]) -> HookHandle:
    """Calls a function of the module, the gradients of its inputs and those of its results (tuples) with each
    ``backward`` through any module that is called from now on.

    It is called before the module's own hooks; see :meth:`tg_frontend.nn.Module.register_full_backward_hook`.

    Args:
      hook: gives None, or gradients of the inputs in place of those.

    Returns:
      A handle whose ``remove()`` ends that.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> x = Tensor([-1.0, 2.0], requires_grad=True)
      >>> with nn.register_module_full_backward_hook(lambda module, grad_input, grad_output: print(grad_input)):
      ...     _ = nn.ReLU()(x).sum().backward()
      (Tensor([0., 1.]),)
    """
    return _registered("backward", Hook(hook))


def register_module_backward_hook(hook: Callable[..., Any]) -> HookHandle:
    """An older name of :func:`register_module_full_backward_hook`.

    Example:
      >>> from tg_frontend import nn
      >>> nn.register_module_backward_hook(print).remove()
    """
    return register_module_full_backward_hook(hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> HookHandle:
    """Calls a function of the module and the gradients of its results (a tuple) before these go through any module
    that is called from now on.

    It is called before the module's own hooks; see :meth:`tg_frontend.nn.Module.register_full_backward_pre_hook`.

    Args:
      hook: gives None, or gradients in place of those.

    Returns:
      A handle whose ``remove()`` ends that.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> x = Tensor([-1.0, 2.0], requires_grad=True)
      >>> with nn.register_module_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 10,)):
      ...     _ = nn.ReLU()(x).sum().backward()
      >>> x.grad
      Tensor([ 0., 10.])
    """
    return _registered("backward_pre", Hook(hook))
