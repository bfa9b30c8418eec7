"""Gradients and parameters of several tensors as one, and weights that are computed from other parameters."""

from __future__ import annotations

from ...autograd.differentiation import MODE, Switch
from ...tensor import Tensor
from ..initial import parameter
from ..module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of parameters one after another.

    Raises:
      ValueError: if there is none.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.utils.parameters_to_vector([Tensor([[1.0, 2.0]]), Tensor([3.0])])
      Tensor([1., 2., 3.])
    """
    flat = [one.reshape(-1) for one in parameters]
    if not flat:
        raise ValueError("parameters_to_vector: at least one parameter is wanted")
    joined: Tensor = flat[0].cat(*flat[1:]) if len(flat) > 1 else flat[0]
    return joined


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Writes the elements of a vector into parameters, one after another.

    Raises:
      ValueError: if there are more or fewer elements.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> a, b = Tensor.zeros(1, 2), Tensor.zeros(1)
      >>> nn.utils.vector_to_parameters(Tensor([1.0, 2.0, 3.0]), [a, b])
      >>> a, b
      (Tensor([[1., 2.]]), Tensor([3.]))
    """
    params = list(parameters)
    sizes = [int(one.numel()) for one in params]
    if vec.ndim != 1 or sum(sizes) != int(vec.numel()):
        raise ValueError(f"vector_to_parameters: a vector of shape {vec.shape} for {sum(sizes)} elements")
    begin = 0
    with Switch(MODE, "recording", False):
        for one, size in zip(params, sizes, strict=True):
            one.assign(vec.detach()[begin : begin + size].reshape(one.shape).cast(one.dtype))
            begin += size


class _Derived:
    """What computes an attribute of a layer from others, before each call."""

    def __init__(self, module: Module, name: str) -> None:
        self.name = name
        weight = getattr(module, name, None)
        if not isinstance(module, Module) or not isinstance(weight, Tensor):
            raise ValueError(f"{type(self).__name__}: a {type(module).__name__} has no tensor {name!r}")
        if name in module._derived:
            raise RuntimeError(f"{type(self).__name__}: {name!r} is computed from other parameters already")
        module._derived = (*module._derived, name)
        self.prepare(module, weight)
        self.handle = module.register_forward_pre_hook(self)
        setattr(module, name, self.computed(module))

    def __call__(self, module: Module, args: Any) -> None:
        setattr(module, self.name, self.computed(module))

    def prepare(self, module: Module, weight: Tensor) -> None:
        """Makes the others."""
        raise NotImplementedError

    def computed(self, module: Module) -> Tensor:
        """The attribute."""
        raise NotImplementedError

    def parts(self) -> tuple[str, ...]:
        """What the others are called."""
        raise NotImplementedError

    def remove(self, module: Module) -> None:
        """Leaves the attribute as a parameter with the value that it has."""
        with Switch(MODE, "recording", False):
            value = self.computed(module).detach().contiguous().realize()
        for part in self.parts():
            delattr(module, part)
        self.handle.remove()
        module._derived = tuple(name for name in module._derived if name != self.name)
        setattr(module, self.name, parameter(Tensor(value.numpy(), device=value.device)))


def length(v: Tensor, dim: int) -> Tensor:
    """The Euclidean norms of the slices along an axis, or that of the whole for -1, as PyTorch has it."""
    axes = tuple(axis for axis in range(v.ndim) if dim == -1 or axis != dim % v.ndim)
    return (v * v).sum(axes, keepdim=dim != -1).sqrt()


def unit(x: Tensor, eps: float) -> Tensor:
    """A vector of length 1."""
    return x / (x * x.conj()).real.sum().sqrt().maximum(eps)


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight as a matrix with a row for each place of an axis."""
    order = [dim % weight.ndim, *(axis for axis in range(weight.ndim) if axis != dim % weight.ndim)]
    return weight.permute(*order).flatten(1)


def power_method(matrix: Tensor, u: Tensor, v: Tensor, count: int, eps: float) -> None:
    """Turns two vectors, in place, towards those of the greatest singular value."""
    with Switch(MODE, "recording", False):
        for _ in range(count):
            v.assign(unit(matrix.mH.matmul(u), eps).contiguous())
            u.assign(unit(matrix.matmul(v), eps).contiguous())


class WeightNorm(_Derived):
    """A weight as a length and a direction."""

    def __init__(self, module: Module, name: str, dim: int | None) -> None:
        self.dim = -1 if dim is None else dim
        super().__init__(module, name)

    def prepare(self, module: Module, weight: Tensor) -> None:
        value = weight.detach().contiguous()
        setattr(module, f"{self.name}_g", parameter(length(value, self.dim).contiguous()))
        setattr(module, f"{self.name}_v", parameter(value))

    def computed(self, module: Module) -> Tensor:
        v: Tensor = getattr(module, f"{self.name}_v")
        return v * (getattr(module, f"{self.name}_g") / length(v, self.dim))  # type: ignore[no-any-return]

    def parts(self) -> tuple[str, ...]:
        return f"{self.name}_g", f"{self.name}_v"


class SpectralNorm(_Derived):
    """A weight over its greatest singular value."""

    def __init__(self, module: Module, name: str, count: int, eps: float, dim: int) -> None:
        self.count, self.eps, self.dim = count, eps, dim
        super().__init__(module, name)

    def prepare(self, module: Module, weight: Tensor) -> None:
        matrix = as_matrix(weight, self.dim)
        setattr(module, f"{self.name}_orig", parameter(weight.detach().contiguous()))
        for end, size in (("u", matrix.shape[0]), ("v", matrix.shape[1])):
            drawn = unit(Tensor.randn(size, device=weight.device), self.eps).contiguous()
            drawn.requires_grad = False
            setattr(module, f"{self.name}_{end}", drawn)

    def computed(self, module: Module) -> Tensor:
        weight, u, v = (getattr(module, f"{self.name}_{end}") for end in ("orig", "u", "v"))
        matrix = as_matrix(weight, self.dim)
        if Tensor.training and not MODE.repeating:
            power_method(matrix.detach(), u, v, self.count, self.eps)
        greatest = (u.detach() * matrix.matmul(v.detach())).sum()
        return weight / greatest  # type: ignore[no-any-return]

    def parts(self) -> tuple[str, ...]:
        return f"{self.name}_orig", f"{self.name}_u", f"{self.name}_v"


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Writes a weight as a length ``weight_g`` and a direction ``weight_v``, which are learnt (Salimans and Kingma,
    2016).

    Args:
      module: a layer; it is changed, and returned.
      name: of the weight, which is computed anew before each call.
      dim: the axis whose slices have lengths of their own; None, or -1, for one length.

    Raises:
      ValueError: if there is no such tensor.
      RuntimeError: if that was done before.

    Example:
      >>> from tg_frontend import nn
      >>> sorted(nn.utils.weight_norm(nn.Linear(2, 3)).state_dict())
      ['bias', 'weight_g', 'weight_v']
    """
    WeightNorm(module, name, dim)
    return module


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divides a weight by an estimate of its greatest singular value (Miyato et al., 2018).

    Args:
      module: a layer; it is changed, and returned.
      name: of the weight, which is computed anew before each call.
      n_power_iterations: steps of the estimate with each call in training.
      eps: the least norm that is divided by.
      dim: the axis of outputs; 1 for transposed convolutions and 0 for others if not given.

    Raises:
      ValueError: if there is no such tensor.
      RuntimeError: if that was done before.

    Example:
      >>> from tg_frontend import nn
      >>> sorted(nn.utils.spectral_norm(nn.Linear(2, 3)).state_dict())
      ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    from ..convolutional import ConvTranspose

    SpectralNorm(module, name, n_power_iterations, eps, int(isinstance(module, ConvTranspose)) if dim is None else dim)
    return module


def _removed(module: Any, name: str, kind: type[_Derived], what: str) -> Any:
    for hook in module._of("pre"):
        if isinstance(hook.function, kind) and hook.function.name == name:
            hook.function.remove(module)
            return module
    raise ValueError(f"{what}: {name!r} of a {type(module).__name__} is not computed so")


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Makes the weight a parameter again, with the value that it has.

    Raises:
      ValueError: if it is none of :func:`weight_norm`.

    Example:
      >>> from tg_frontend import nn
      >>> sorted(nn.utils.remove_weight_norm(nn.utils.weight_norm(nn.Linear(2, 3))).state_dict())
      ['bias', 'weight']
    """
    return _removed(module, name, WeightNorm, "remove_weight_norm")


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Makes the weight a parameter again, with the value that it has.

    Raises:
      ValueError: if it is none of :func:`spectral_norm`.

    Example:
      >>> from tg_frontend import nn
      >>> sorted(nn.utils.remove_spectral_norm(nn.utils.spectral_norm(nn.Linear(2, 3))).state_dict())
      ['bias', 'weight']
    """
    return _removed(module, name, SpectralNorm, "remove_spectral_norm")
