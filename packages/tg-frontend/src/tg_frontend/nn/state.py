"""The tensors of a model by name, and files of tensors (safetensors, GGUF)."""

from __future__ import annotations

from ..array.becoming import adopt
from ..files.checkpoint.loading import torch_load
from ..files.checkpoint.saving import torch_save
from ..files.gguf.reading import gguf_load
from ..files.gguf.writing import gguf_save
from ..files.safetensors import safe_load, safe_load_metadata, safe_save
from ..host.coerce import as_array, is_arraylike
from ..keywords import ArgumentError
from ..tensor import Tensor
from .initial import LEARNT
from .uninitialized import Uninitialized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_COUNT = "num_batches_tracked"
__all__ = [
    "StateError", "get_parameters", "get_state_dict", "gguf_load", "gguf_save", "load_state_dict", "safe_load",
    "safe_load_metadata", "safe_save", "torch_load", "torch_save",
]  # fmt: skip


class StateError(KeyError, RuntimeError):
    """Names that a state and a model do not have in common: a ``RuntimeError``, as PyTorch raises, and a ``KeyError``.

    Example:
      >>> from tg_frontend import nn
      >>> try:
      ...     nn.Linear(2, 3, bias=False).load_state_dict({})
      ... except nn.state.StateError as error:
      ...     print(error)
      load_state_dict: not in the state: weight
    """

    def __str__(self) -> str:
        return RuntimeError.__str__(self)


def get_state_dict(obj: Any, prefix: str = "") -> dict[str, Tensor]:
    """The tensors in an object, by path: attributes, list positions and keys, joined with dots.

    An ``nn.Module`` gives its parameters first, then its other tensors, then those of its layers.
    A tensor that is reached twice has two names; an object that contains itself is entered once. Buffers that are not
    persistent (see :func:`tg_frontend.nn.Buffer`) are left out.

    Args:
      obj: a model, or anything that holds tensors in attributes, lists, tuples and dicts.
      prefix: put in front of every name, with a dot.

    Example:
      >>> from tg_frontend import nn
      >>> sorted(nn.state.get_state_dict([nn.Linear(2, 3)]))
      ['0.bias', '0.weight']
    """
    return tensors_of(obj, prefix, transient=False)


def tensors_of(obj: Any, prefix: str = "", transient: bool = True) -> dict[str, Tensor]:
    """As :func:`get_state_dict`, with or without buffers that are not persistent.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> from tg_frontend.nn.state import tensors_of
      >>> list(tensors_of({"mask": nn.Buffer([1.0], persistent=False)}))
      ['mask']
    """
    found: dict[str, Tensor] = {}
    stack: list[tuple[str, Any, tuple[int, ...]]] = [(prefix, obj, ())]
    while stack:
        path, value, inside = stack.pop()
        if isinstance(value, Tensor):
            if transient or not getattr(value, "_transient", False):
                found[path] = value
            continue
        if id(value) in inside:
            continue
        below = (*inside, id(value))
        skipped = () if transient else getattr(value, "_transient_names", ())
        held = parts_of(value)
        parts = [
            (f"{path}.{name}" if path else str(name), part, below)
            for name, part in (sorted(held, key=_rank) if getattr(value, "_tensors_first", False) else held)
            if name not in skipped
        ]  # fmt: skip
        stack.extend(reversed(parts))
    return found


def parts_of(value: Any) -> list[tuple[Any, Any]]:
    """What an object holds, by name: the items of lists, tuples and dicts, and attributes.

    Example:
      >>> from tg_frontend.nn.state import parts_of
      >>> parts_of([1.5, None])
      [(0, 1.5), (1, None)]
    """
    if hasattr(value, "_asdict"):
        return list(value._asdict().items())
    found: list[tuple[Any, Any]] = []
    if hasattr(value, "_named_items"):
        found = value._named_items()
    elif isinstance(value, (list, tuple)):
        found = list(enumerate(value))
    elif isinstance(value, dict):
        found = list(value.items())
    if not hasattr(value, "__dict__") or isinstance(value, type):
        return found
    derived = getattr(value, "_derived", ())
    return found + [item for item in vars(value).items() if item[0] not in derived]


def _rank(item: tuple[Any, Any]) -> int:
    """PyTorch's order in a layer, which numbers the states of optimisers: parameters, other tensors, the rest."""
    part = item[1]
    if not isinstance(part, Tensor):
        return 2
    return 0 if is_learnt(part) else 1


def is_learnt(tensor: Tensor) -> bool:
    """Whether a tensor of a module is a parameter: made as one, frozen or not, or floats that require a gradient.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> from tg_frontend.nn.state import is_learnt
      >>> is_learnt(nn.Parameter(Tensor.ones(2), requires_grad=False)), is_learnt(nn.Buffer([1.0]))
      (True, False)
    """
    return tensor._parameter or (tensor._wish is True and tensor.dtype.kind in LEARNT)


def is_held(tensor: Tensor) -> bool:
    """Whether a tensor of a module is neither a parameter nor a buffer: nobody said anything about it.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> from tg_frontend.nn.state import is_held
      >>> is_held(Tensor.ones(2)), is_held(nn.Buffer([1.0]))
      (True, False)
    """
    return tensor._wish is None and not tensor._parameter


def get_parameters(obj: Any) -> list[Tensor]:
    """The tensors in an object, each once.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> [tensor.shape for tensor in nn.state.get_parameters(nn.Linear(2, 3))]
      [(3, 2), (3,)]
    """
    return list({id(tensor): tensor for tensor in tensors_of(obj).values()}.values())


def load_state_dict(
    model: Any,
    state_dict: Mapping[str, Any],
    strict: bool = True,
    verbose: bool = False,
    consume: bool = False,
    realize: bool = True,
    assign: bool = False,
) -> list[Tensor]:
    """Puts tensors into a model by name, converted to the dtype and moved to the device of the model's.

    Tensors that are in memory are overwritten there, so that whoever uses that memory, a TinyJit for instance, sees the
    new elements. Those that are not computed yet, or in memory that is not theirs to write (a mapped file), take over
    what the state has. Nothing is changed if something does not fit.

    Args:
      model: see :func:`get_state_dict`.
      state_dict: the new tensors, also PyTorch's or numpy arrays. A count of batches (``num_batches_tracked``) may be
        missing on either side, and have one element in any shape.
      strict: both must have the same names; otherwise what is only on one side is left alone. Of an ``nn.Module``, what
        is neither a parameter nor a buffer may be missing.
      verbose: print each tensor, and what is left alone.
      consume: take the tensors out of ``state_dict``, which must be a dict, so that they do not stay in memory.
      realize: compute the tensors now.
      assign: the model's tensors take over what the state has, its dtype and device included, and leave their memory.

    Returns:
      The tensors that were put in.

    Raises:
      StateError: if a name is missing on one side, with ``strict``; the message lists the names.
      ArgumentError: if shapes differ; the message names each; or complex numbers are given for real ones.
      TypeError: if something in the state is neither a tensor nor an array.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> old, new = nn.Linear(2, 1), nn.Linear(2, 1)
      >>> _ = nn.state.load_state_dict(new, nn.state.get_state_dict(old))
      >>> (new.weight == old.weight).all().item()
      True
    """
    own = get_state_dict(model)
    missing = missing_from(state_dict, own, model)
    unknown = [name for name in state_dict if name not in own]
    if strict and not all(name.endswith(_COUNT) for name in (*missing, *unknown)):
        raise StateError(
            "load_state_dict: " + "; ".join(
                f"{what}: {', '.join(names[:8])}{f' and {len(names) - 8} more' if len(names) > 8 else ''}"
                for what, names in (("not in the state", missing), ("not in the model", unknown)) if names
            )
        )  # fmt: skip
    pairs = [(name, t, _tensor(name, t, state_dict[name])) for name, t in own.items() if name in state_dict]
    empty = [pair for pair in pairs if isinstance(pair[2], Uninitialized)]
    if unknowable := [name for name, old, _ in empty if not isinstance(old, Uninitialized)]:
        raise ArgumentError(f"load_state_dict: the state has no shape yet for {', '.join(unknowable[:8])}")
    pairs = [pair for pair in pairs if not isinstance(pair[2], Uninitialized)]
    sized = [pair for pair in pairs if not isinstance(pair[1], Uninitialized)]
    wrong = [f"{name}: {new.shape} for {old.shape}" for name, old, new in sized if new.shape != old.shape]
    if wrong:
        raise ArgumentError(f"load_state_dict: shapes differ: {'; '.join(wrong)}")
    for _, old, new in pairs:
        if isinstance(old, Uninitialized):
            old._filled(new)
    given = [(old, new.detach()) for _, old, new in pairs]
    kinds = [name for name, old, new in pairs if new.is_complex() > old.is_complex() or
             (assign and new.is_complex() is not old.is_complex())]  # fmt: skip
    if kinds:
        raise ArgumentError(f"load_state_dict: complex numbers for real ones, or these for those: {', '.join(kinds)}")
    if not assign:
        given = [(old, new.to(old.device).cast(old.dtype)) for old, new in given]
    parts = [both for old, new in given for both in zip(old._floats(), new._floats(), strict=True)]
    for (old, _), value in zip(parts, _apart(parts), strict=True):
        if not assign and old.is_realized and old._owns():
            old.assign(value)
        else:
            adopt(old, value)
    for name, old, _ in pairs:
        if verbose:
            print(f"{name}: {old.shape} {old.dtype.name}")
        if consume and isinstance(state_dict, dict):
            del state_dict[name]
    if verbose:
        for what, names in (("not in the state", missing), ("not in the model", unknown)):
            for name in names:
                print(f"{name}: {what}, left alone")
    loaded = [old for _, old, _ in pairs]
    if realize and loaded:
        loaded[0].realize(*loaded[1:])
    return loaded


def missing_from(state_dict: Mapping[str, Any], own: Mapping[str, Tensor], model: Any) -> list[str]:
    """Names of a model's tensors that a state should have and has not.

    Example:
      >>> from tg_frontend import nn
      >>> from tg_frontend.nn.state import get_state_dict, missing_from
      >>> layer = nn.Linear(2, 3)
      >>> missing_from({"bias": layer.bias}, get_state_dict(layer), layer)
      ['weight']
    """
    module = getattr(model, "_tensors_first", False)
    return [name for name, tensor in own.items() if name not in state_dict and not (module and is_held(tensor))]


def _tensor(name: str, old: Tensor, given: Any) -> Tensor:
    """What a state holds under a name, as a tensor; of another library's a copy."""
    new: Tensor
    if isinstance(given, Tensor):
        new = given
    elif type(given).__module__ == "torch":
        new = Tensor.from_dlpack(given.detach().cpu(), copy=True)
    elif is_arraylike(given):
        new = Tensor(as_array(given), device=old.device)
    else:
        raise TypeError(f"load_state_dict: {name} is a {type(given).__name__}, neither a tensor nor an array")
    if name.endswith(_COUNT) and new.shape != old.shape and new.numel() == old.numel() == 1:
        return new.reshape(old.shape)
    return new


def _apart(pairs: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
    """The second of each pair, as a copy where it is in memory that another pair is going to overwrite."""
    targets = {storage.root: old for old, _ in pairs if (storage := old.lazydata.storage) is not None}
    out = []
    for old, new in pairs:
        storage = new.lazydata.storage
        mine = storage is None or targets.get(storage.root, old) is old
        out.append(new if mine else new.clone())
    copies = [new for new, (_, given) in zip(out, pairs, strict=True) if new is not given]
    if copies:
        copies[0].realize(*copies[1:])
    return out
