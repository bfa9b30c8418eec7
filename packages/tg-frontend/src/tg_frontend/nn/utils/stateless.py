"""A model called with other tensors than its own."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import cast

from ...tensor import Tensor
from ..absent import refusing
from ..module import Module
from ..state import parts_of, tensors_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def functional_call(
    module: Module, parameters_and_buffers: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]], args: Any = None,
    kwargs: Mapping[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """What a model gives with other parameters and buffers than its own, which it has again afterwards.

    Gradients flow to the tensors that are given. What a call writes into running statistics goes to those that are
    given, too, or else to those of the model. Where the call puts another tensor in the place of a given one
    (``self.count = self.count + 1``), the dict that it was given in has that tensor afterwards.

    Args:
      module: the model.
      parameters_and_buffers: tensors by name, as ``state_dict()`` names them; or several such dicts.
      args: the arguments of the call; one that is no tuple stands for itself.
      kwargs: its arguments by name.
      tie_weights: whether a tensor that the model has under several names is replaced under all of them.
      strict: whether every tensor of the model is to be given.

    Raises:
      ValueError: if a name is in two dicts, or two different tensors are given for a tied one.
      RuntimeError: if the model has no tensor of a name, or, with ``strict``, one is missing.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.Linear(2, 1)
      >>> given = {"weight": Tensor([[1.0, 2.0]]), "bias": Tensor([0.5])}
      >>> nn.utils.stateless.functional_call(layer, given, Tensor([[3.0, 4.0]]))
      Tensor([[11.5]])
    """
    given = _merged(parameters_and_buffers)
    own = tensors_of(module)
    if unknown := [name for name in given if name not in own]:
        raise RuntimeError(f"functional_call: {type(module).__name__} has no tensor {', '.join(unknown)}")
    if tie_weights:
        tied: dict[int, Tensor] = {}
        for name, tensor in given.items():
            if tied.setdefault(id(own[name]), tensor) is not tensor:
                raise ValueError(f"functional_call: two tensors for {name}, which has another name in the model, too")
        given = {name: tied[id(tensor)] for name, tensor in own.items() if id(tensor) in tied}
    if strict and (missing := [name for name in own if name not in given]):
        raise RuntimeError(f"functional_call: not given: {', '.join(missing)}")
    listed = () if args is None else args if isinstance(args, tuple) else (args,)
    try:
        for name, tensor in given.items():
            _put(module, name, tensor)
        return module(*listed, **(kwargs or {}))
    finally:
        after = tensors_of(module)
        for one in _dicts(parameters_and_buffers):
            for name in [name for name in one if name in after and after[name] is not given[name]]:
                if isinstance(one, MutableMapping):
                    one[name] = after[name]
        for name in given:
            _put(module, name, own[name])


def _dicts(given: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]]) -> Sequence[Mapping[str, Tensor]]:
    return given if isinstance(given, (list, tuple)) else (cast("Mapping[str, Tensor]", given),)


def _merged(given: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for one in _dicts(given):
        if twice := sorted(found.keys() & one.keys()):
            raise ValueError(f"functional_call: {twice[0]} is in two of the dicts")
        found.update(one)
    return found


def _put(owner: Any, path: str, tensor: Tensor) -> None:
    """Sets the tensor of a dotted name."""
    *way, last = path.split(".")
    for name in way:
        owner = next(part for key, part in parts_of(owner) if str(key) == name)
    if isinstance(owner, list) and last.isdigit():
        owner[int(last)] = tensor
    elif isinstance(owner, dict) and last in owner:
        owner[last] = tensor
    else:
        object.__setattr__(owner, last, tensor)

if not TYPE_CHECKING:  # who checks types is to see that a name is not there
    __getattr__ = refusing("nn.utils.stateless")
