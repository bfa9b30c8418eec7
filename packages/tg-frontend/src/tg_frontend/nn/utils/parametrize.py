"""Parametrisations: tensors of a layer that are computed, each time they are read, from others that are learnt."""

from __future__ import annotations

from functools import cache
from threading import local

from tg_runtime import capturing

from ...array.becoming import adopt
from ...autograd.differentiation import MODE, Switch
from ...tensor import Tensor
from ..absent import refusing
from ..containers import ModuleDict, ModuleList
from ..describing import describe
from ..initial import Parameter, parameter
from ..module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    Originals = list[Tensor]

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip


class _Kept(local):
    """What was computed inside ``cached()``, for each thread its own.

    Attributes:
      values: tensors by what they were computed from and what was true of the moment, with the originals, so that none
        of them is taken for another; None outside.
    """

    values: dict[Any, tuple[Tensor, Originals]] | None = None


_KEPT = _Kept()


def cached() -> AbstractContextManager[Any]:
    """Inside a ``with`` block, a parametrised tensor is computed when it is first read, and then kept.

    What was computed without a record for gradients, in another precision, outside of a TinyJit that records, or of
    other tensors, as ``functional_call`` and ``grad`` put them in, is computed again. A block inside another one keeps
    what that one kept.

    Example:
      >>> from tg_frontend import nn
      >>> from tg_frontend.nn.utils import parametrize
      >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
      >>> layer.weight is layer.weight
      False
      >>> with parametrize.cached():
      ...     layer.weight is layer.weight
      True
    """
    return Switch(_KEPT, "values", {} if _KEPT.values is None else _KEPT.values)


class ParametrizationList(ModuleList):
    """What a tensor of a layer is computed from, and how: the value of ``layer.parametrizations[name]``.

    Attributes:
      original: the tensor that the first parametrisation takes; ``original0``, ``original1``, … if its
        ``right_inverse`` gives several.
      unsafe: whether dtype and shape may differ from those that the layer had.
      is_tensor: whether there is one original.
      ntensors: how many there are.

    Args:
      modules: one parametrisation or more.
      original: the tensor of the layer, which becomes the original, or what the originals are computed from.
      unsafe: as above.

    Raises:
      ValueError: if there is no parametrisation; or one of them gives no tensor, or one of another dtype or shape.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> from tg_frontend.nn.utils.parametrize import ParametrizationList
      >>> both = ParametrizationList([nn.Softplus(), nn.Tanh()], nn.Parameter(Tensor.zeros(2)))
      >>> both().numpy().round(4).tolist()
      [0.6000000238418579, 0.6000000238418579]
    """

    def __init__(self, modules: Sequence[Any], original: Tensor, unsafe: bool = False) -> None:
        if not len(modules):
            raise ValueError("ParametrizationList: one parametrisation or more is wanted")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        found = self._inverted(original, lenient=True)
        self.is_tensor, self.ntensors = isinstance(found, Tensor), 1 if isinstance(found, Tensor) else len(found)
        if isinstance(found, Tensor):
            if found.dtype is not dtype or found.device != original.device:
                raise ValueError(
                    f"register_parametrization: right_inverse gives {found.dtype.name} on {found.device} for "
                    f"{dtype.name} on {original.device}; one tensor keeps its dtype and its device"
                )
            _refill(original, found)
            self.original = original
        else:
            for number, value in enumerate(found):
                learnt = original._parameter and value.dtype.kind in ("float", "complex")
                made = Parameter(value, original._wish is not False) if learnt else value.detach().clone()
                if not learnt:
                    made.requires_grad = False
                setattr(self, f"original{number}", made)
        if not unsafe:
            _alike(self(), shape, dtype, "a parametrisation", "the tensor of the layer")

    def originals(self) -> Originals:
        """The tensors that it is computed from.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> from tg_frontend.nn.utils.parametrize import ParametrizationList
          >>> ParametrizationList([nn.Tanh()], Tensor([0.5])).originals()
          [Tensor([0.5])]
        """
        return [getattr(self, name) for name in self._places()]

    def _places(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{number}" for number in range(self.ntensors)]

    def _inverted(self, value: Any, lenient: bool) -> Any:
        """A tensor, or a list of them, of which the parametrisations make ``value``."""
        with Switch(MODE, "recording", False):
            for module in reversed(self):
                inverse = getattr(module, "right_inverse", None)
                if inverse is None and not lenient:
                    raise RuntimeError(f"{type(module).__name__} has no right_inverse: its tensor cannot be set")
                try:
                    value = value if inverse is None else inverse(value)
                except NotImplementedError:
                    if not lenient:
                        raise
        if isinstance(value, Tensor):
            return value
        if not isinstance(value, (list, tuple)) or not value or not all(isinstance(one, Tensor) for one in value):
            raise ValueError(f"right_inverse gives a tensor, or a list or tuple of them, not {type(value).__name__}")
        return list(value)

    def right_inverse(self, value: Tensor) -> None:
        """Gives the originals values of which the parametrisations make ``value``.

        Raises:
          RuntimeError: if one of the parametrisations has no ``right_inverse``.
          ValueError: if these give other tensors than the originals are.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 1))
          >>> layer.parametrizations["weight"].right_inverse(Tensor([[3.0, 4.0]]))
          >>> layer.parametrizations["weight"].original0.tolist()
          [[5.0]]
        """
        found = self._inverted(value, lenient=False)
        new, old = [found] if isinstance(found, Tensor) else found, self.originals()
        if isinstance(found, Tensor) is not self.is_tensor or len(new) != len(old):
            raise ValueError(f"right_inverse gives {len(new)} tensors for {len(old)}")
        for name, before, after in zip(self._places(), old, new, strict=True):
            if before.dtype is not after.dtype:
                raise ValueError(f"right_inverse gives {after.dtype.name} for {name}, which is {before.dtype.name}")
        for before, after in zip(old, new, strict=True):
            _refill(before, after)

    def forward(self) -> Any:
        """The tensor of the layer."""
        value = self[0](*self.originals())
        for module in list(self)[1:]:
            value = module(value)
        return value


def _refill(tensor: Tensor, value: Tensor) -> None:
    """Gives a tensor, which stays the same object for optimisers that hold it, the elements of another."""
    if value is tensor:
        return
    with Switch(MODE, "recording", False):
        value = value.detach()
        if value.shape == tensor.shape:
            tensor.assign(value.to(tensor.device))
        else:
            adopt(tensor, value)


def _alike(made: Any, shape: Any, dtype: Any, what: str, whose: str) -> None:
    if not isinstance(made, Tensor):
        raise ValueError(f"{what} gives a tensor, not a {type(made).__name__}")
    if made.dtype is not dtype or made.shape != shape:
        raise ValueError(
            f"{what} gives {made.dtype.name} of shape {made.shape} for {whose}, {dtype.name} of shape {shape}; "
            "it keeps both unless unsafe=True"
        )


def _read(name: str) -> Any:
    """The property by which a layer has a parametrised tensor."""

    def get(self: Any) -> Tensor:
        computing = self.parametrizations[name]
        try:
            if _KEPT.values is None:
                value: Tensor = computing()
                return value
            originals = computing.originals()
            now = capturing(), MODE.recording, MODE.repeating, MODE.precision
            key = computing, *(id(one) for one in originals), *now
            if key not in _KEPT.values:
                _KEPT.values[key] = computing(), originals
            return _KEPT.values[key][0]
        except AttributeError as error:  # which Python would take for: there is no such attribute
            raise RuntimeError(f"the parametrisation of {name!r}: {error}") from error

    def put(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


@cache
def _kind(base: type, names: frozenset[str]) -> type:
    """A class of layers whose tensors of some names are computed."""
    attributes: dict[str, Any] = {name: _read(name) for name in names}
    attributes |= {"_parametrized": base, "__module__": base.__module__}
    if not getattr(base, "_tree", False):
        attributes["__repr__"] = _text
    return type(f"Parametrized{base.__name__}", (base,), attributes)


def _text(self: Any) -> str:
    inner = type(self)._parametrized.__repr__(self).partition("(")[2].removesuffix(")")
    below = describe(self.parametrizations).replace("\n", "\n  ")
    return f"{type(self).__name__}(\n  {inner}\n  (parametrizations): {below}\n)"


def _turn(module: Any) -> None:
    """Gives a layer the class that has a property for each of its parametrised tensors, or its own."""
    names = frozenset(vars(module).get("parametrizations", ()))
    base = type_before_parametrizations(module)
    module.__class__ = _kind(base, names) if names else base


def register_parametrization(module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False) -> Any:
    """Computes a tensor of a layer from another one, which is learnt, each time it is read.

    The other is ``layer.parametrizations[tensor_name].original``; if the parametrisation has a method
    ``right_inverse``, it holds what that gives for the tensor, so that the layer computes what it did; and if that is
    several tensors, they are ``original0``, ``original1``, …, and the parametrisation takes them all. A second
    parametrisation takes what the first one gives. Where all have a ``right_inverse``, the tensor can be set.

    Args:
      module: the layer; it is changed, and returned.
      tensor_name: of a tensor of the layer itself.
      parametrization: a module of the original, or originals; it gives a tensor of the same dtype and shape.
      unsafe: whether dtype and shape may be others, which is not looked at then.

    Raises:
      ValueError: if there is no such tensor; or dtypes or shapes differ.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> from tg_frontend.nn.utils import parametrize
      >>> class Symmetric(nn.Module):
      ...     def forward(self, x):
      ...         return x.triu() + x.triu(1).T
      ...     def right_inverse(self, x):
      ...         return x.triu()
      >>> layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
      >>> sorted(layer.state_dict()), bool((layer.weight == layer.weight.T).all())
      (['bias', 'parametrizations.weight.original'], True)
      >>> layer.weight = Tensor.eye(3)
      >>> layer.weight.tolist()
      [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    if isinstance(parametrization, Module) and module.training is not None:
        parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _fits(getattr(module, tensor_name), parametrization)
        known = module.parametrizations[tensor_name]
        known.append(parametrization)
        known.unsafe |= unsafe
        return module
    original = vars(module).get(tensor_name) if isinstance(module, Module) else None
    if not isinstance(original, Tensor) or tensor_name in module._derived:
        raise ValueError(f"register_parametrization: {type(module).__name__} has no tensor {tensor_name!r} of its own")
    made = ParametrizationList([parametrization], original, unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = made
    _turn(module)
    return module


def _fits(value: Tensor, parametrization: Any) -> None:
    """Looks whether a further parametrisation keeps what the tensor is, both ways."""
    made = parametrization(value)
    _alike(made, value.shape, value.dtype, "a parametrisation", "the tensor of the layer")
    inverse = getattr(parametrization, "right_inverse", None)
    try:
        back = made if inverse is None else inverse(made)
    except NotImplementedError:
        return
    _alike(back, value.shape, value.dtype, "right_inverse", "what the parametrisation takes")


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a tensor of a layer, or any of them, is computed by parametrisations.

    Example:
      >>> from tg_frontend import nn
      >>> from tg_frontend.nn.utils import parametrize
      >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(2, 3))
      >>> parametrize.is_parametrized(layer), parametrize.is_parametrized(layer, "bias")
      (True, False)
    """
    names = getattr(module, "parametrizations", None)
    return isinstance(names, ModuleDict) and (tensor_name in names if tensor_name is not None else len(names) > 0)


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Makes a tensor of a layer one that it holds again.

    Args:
      module: the layer; it is changed, and returned.
      tensor_name: of the tensor.
      leave_parametrized: whether it has the value that was computed, or that of the original, if there is one.

    Raises:
      ValueError: if it is not parametrised; or there are several originals and ``leave_parametrized`` is False.

    Example:
      >>> from tg_frontend import nn
      >>> from tg_frontend.nn.utils import parametrize
      >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
      >>> sorted(parametrize.remove_parametrizations(layer, "weight").state_dict())
      ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"remove_parametrizations: {tensor_name!r} of a {type(module).__name__} is not parametrised")
    known = module.parametrizations[tensor_name]
    if not known.is_tensor and not leave_parametrized:
        raise ValueError(
            f"remove_parametrizations: {tensor_name!r} is computed from {known.ntensors} tensors, of which none is it: "
            "leave_parametrized=True"
        )
    originals = known.originals()
    with Switch(MODE, "recording", False):
        value = getattr(module, tensor_name).detach().contiguous().realize()
    if known.is_tensor:
        left = originals[0]
        if leave_parametrized:
            _refill(left, value)
    else:
        left = value.clone()
        if any(one._parameter for one in originals):
            parameter(left)
            left.requires_grad = any(one._wish is not False for one in originals)
        else:
            left.requires_grad = False
    del module.parametrizations[tensor_name]
    if not module.parametrizations:
        del module.parametrizations
    _turn(module)
    setattr(module, tensor_name, left)
    return module


def type_before_parametrizations(module: Any) -> type:
    """The class that a layer had before tensors of it were parametrised.

    Example:
      >>> from tg_frontend import nn
      >>> from tg_frontend.nn.utils import parametrize
      >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
      >>> type(layer).__name__, parametrize.type_before_parametrizations(layer).__name__
      ('ParametrizedLinear', 'Linear')
    """
    kind: type = getattr(type(module), "_parametrized", type(module))
    return kind


def transfer_parametrizations_and_params(from_module: Any, to_module: Any, tensor_name: str | None = None) -> Any:
    """Gives a layer the parametrisations of another one, and the originals that they take.

    Args:
      from_module: the layer that has them; if it has none, nothing is done.
      to_module: the other, which is changed, and returned; it gets a tensor where it has none of that name.
      tensor_name: of the one tensor whose parametrisations are meant; all of them if not given.

    Raises:
      ValueError: if the tensor is not parametrised.

    Example:
      >>> from tg_frontend import nn
      >>> from tg_frontend.nn.utils import parametrize
      >>> a, b = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3)), nn.Linear(2, 3)
      >>> _ = parametrize.transfer_parametrizations_and_params(a, b)
      >>> b.parametrizations["weight"].original1 is a.parametrizations["weight"].original1
      True
    """
    for name in _transferred(from_module, tensor_name):
        known = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for one in known:
            register_parametrization(to_module, name, one, unsafe=known.unsafe)
        for place, tensor in zip(known._places(), known.originals(), strict=True):
            setattr(to_module.parametrizations[name], place, tensor)
    return to_module


def _transferred(module: Any, tensor_name: str | None) -> Iterator[str]:
    names = list(module.parametrizations) if is_parametrized(module) else []
    if names and tensor_name is not None and tensor_name not in names:
        raise ValueError(f"transfer_parametrizations_and_params: {tensor_name!r} is not parametrised")
    return (name for name in names if tensor_name in (None, name))


if not TYPE_CHECKING:  # who checks types is to see that a name is not there
    __getattr__ = refusing("nn.utils.parametrize")
