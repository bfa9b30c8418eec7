"""The state of a module: its tensors, what it holds beside them, and the hooks that see both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from . import state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_EXTRA = "_extra_state"


class Keys(NamedTuple):
    """What a state and a model do not have in common.

    Attributes:
      missing_keys: names that the model has alone.
      unexpected_keys: names that the state has alone.
    """

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if self.missing_keys or self.unexpected_keys:
            return f"Keys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"
        return "<All keys matched successfully>"


def _layers(model: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """The modules with hooks or a state beside tensors, each with what its names begin with, the innermost first."""
    named = [(name, part) for name, part in model.named_modules() if hasattr(part, "_hooks")]
    for name, part in reversed(named):
        yield (f"{prefix}{name}." if name else prefix), part


def _own_extra(part: Any, base: type, method: str) -> bool:
    """Whether a module says what it holds beside tensors, which the class of all modules leaves open."""
    return getattr(type(part), method) is not getattr(base, method)


def gathered(model: Any, base: type, found: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The state of a model, put into a dict."""
    layers = list(_layers(model, prefix))
    for begin, part in reversed(layers):
        for hook in part._of("state_pre"):
            hook.function(part, begin, False)
    found.update({prefix + name: tensor for name, tensor in state.get_state_dict(model).items()})
    for begin, part in layers:
        if _own_extra(part, base, "get_extra_state"):
            found[begin + _EXTRA] = part.get_extra_state()
        for hook in part._of("state"):
            hook.function(part, found, begin, {})
    return found


def loaded(model: Any, base: type, given: Mapping[str, Any], strict: bool, assign: bool) -> Keys:
    """Puts a state into a model.

    Raises:
      TypeError: if the state is no mapping.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"load_state_dict: a state is a dict of tensors by name, got {type(given).__name__}")
    layers = list(_layers(model, ""))
    whole = dict(given)
    missing: list[str] = []
    unexpected: list[str] = []
    said: list[str] = []
    for begin, part in reversed(layers):
        for hook in part._of("load_pre"):
            own = {name: value for name, value in whole.items() if name.startswith(begin)}
            others = {name: value for name, value in whole.items() if name not in own}
            hook.function(part, own, begin, {}, strict, missing, unexpected, said)
            whole = {**others, **{name: value for name, value in own.items() if name.startswith(begin)}}
    if said:
        raise RuntimeError(f"load_state_dict: {'; '.join(said)}")
    extra = {}
    for begin, part in layers:
        if _own_extra(part, base, "set_extra_state"):
            if begin + _EXTRA in whole:
                extra[begin + _EXTRA] = part, whole.pop(begin + _EXTRA)
            else:
                missing.append(begin + _EXTRA)
    known = state.get_state_dict(model)
    missing += state.missing_from(whole, known, model)
    unexpected += [name for name in whole if name not in known]
    hooks = [(part, hook) for _, part in layers for hook in part._of("load")]
    if strict and not hooks and any(name.rpartition(".")[2] == _EXTRA for name in missing):
        raise state.StateError(f"load_state_dict: not in the state: {', '.join(missing)}")
    state.load_state_dict(model, whole, strict=strict and not hooks, assign=assign)
    for part, value in extra.values():
        part.set_extra_state(value)
    keys = Keys(missing, unexpected)
    for part, hook in hooks:
        hook.function(part, keys)
    if strict and hooks:  # which may have forgiven names, or added some
        _refuse(keys)
    return keys


def _refuse(keys: Keys) -> None:
    """Looks whether a state and a model have all names in common.

    Raises:
      StateError: if not.
    """
    found = (("not in the state", keys.missing_keys), ("not in the model", keys.unexpected_keys))
    said = [f"{what}: {', '.join(names)}" for what, names in found if names]
    if said:
        raise state.StateError(f"load_state_dict: {'; '.join(said)}")
