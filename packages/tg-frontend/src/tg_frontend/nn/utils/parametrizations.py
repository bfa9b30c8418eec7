"""Parametrisations of weights: a length and a direction, a spectral norm of one, orthogonal columns."""

from __future__ import annotations

from ...autograd.differentiation import MODE, Switch
from ...linalg import matrix_exp, qr, solve
from ...linalg.matrices import epsilon
from ...linalg.orthogonal import householder_product, reflections
from ...tensor import Tensor
from ..absent import refusing
from ..convolutional import ConvTranspose
from ..initial import Buffer
from ..module import Module
from .parameters import as_matrix, length, power_method, unit
from .parametrize import register_parametrization

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
_MAPS = ("matrix_exp", "cayley", "householder")
_BEGUN = 15  # steps of the power method when a layer is parametrised, as in PyTorch


def _own(module: Any, name: str, what: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(module, Module) or not isinstance(weight, Tensor):
        raise ValueError(f"{what}: a {type(module).__name__} has no tensor {name!r}")
    return weight


class _WeightNorm(Module):
    """A weight from a length and a direction."""

    def __init__(self, dim: int | None) -> None:
        self.dim = -1 if dim is None else dim

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        return v * (g / length(v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return length(weight, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Computes a weight from a length and a direction, which are learnt (Salimans and Kingma, 2016).

    They are ``layer.parametrizations[name].original0`` and ``original1``. States of layers that
    :func:`tg_frontend.nn.utils.weight_norm` changed (``weight_g``, ``weight_v``) can be loaded.

    Args:
      module: a layer; it is changed, and returned.
      name: of the weight.
      dim: the axis whose slices have lengths of their own; None, or -1, for one length.

    Raises:
      ValueError: if there is no such tensor.

    Example:
      >>> from tg_frontend import nn
      >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
      >>> [tuple(one.shape) for one in layer.parametrizations["weight"].originals()]
      [(3, 1), (3, 2)]
    """
    _own(module, name, "weight_norm")
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def renamed(layer: Any, state: Any, prefix: str, *rest: Any) -> None:
        if f"{prefix}{name}_g" in state and f"{prefix}{name}_v" in state:
            for end, number in (("g", 0), ("v", 1)):
                state[f"{prefix}parametrizations.{name}.original{number}"] = state.pop(f"{prefix}{name}_{end}")

    module.register_load_state_dict_pre_hook(renamed)
    return module


class _SpectralNorm(Module):
    """A weight over an estimate of its greatest singular value."""

    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"spectral_norm: a weight of {weight.ndim} axes has no axis {dim}")
        if n_power_iterations <= 0:
            raise ValueError(f"spectral_norm: n_power_iterations is to be positive, got {n_power_iterations}")
        self.dim, self.eps, self.n_power_iterations = dim % weight.ndim, eps, n_power_iterations
        if weight.ndim > 1:
            with Switch(MODE, "recording", False):
                matrix = as_matrix(weight.detach(), dim)
                sides = [unit(Tensor.randn(n, device=weight.device, dtype=weight.dtype), eps) for n in matrix.shape]
                self._u, self._v = (Buffer(side.contiguous()) for side in sides)
                power_method(matrix.mH, self._v, self._u, _BEGUN, eps)  # u first, as in PyTorch

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return unit(weight, self.eps)
        matrix = as_matrix(weight, self.dim)
        if Tensor.training and not MODE.repeating:
            power_method(matrix.detach().mH, self._v, self._u, self.n_power_iterations, self.eps)
        greatest = (self._u.conj() * matrix.matmul(self._v.detach())).sum()
        return weight / greatest

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divides a weight by an estimate of its greatest singular value (Miyato et al., 2018).

    The vectors of the estimate are buffers, ``layer.parametrizations[name][0]._u`` and ``_v``.

    Args:
      module: a layer; it is changed, and returned.
      name: of the weight.
      n_power_iterations: steps of the power method with each reading in training.
      eps: the least norm that is divided by.
      dim: the axis of outputs; 1 for transposed convolutions and 0 for others if not given.

    Raises:
      ValueError: if there is no such tensor; or ``n_power_iterations`` is not positive.
      IndexError: if there is no such axis.

    Example:
      >>> from tg_frontend import nn
      >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3))
      >>> bool((nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)).weight.svd()[1][0] - 1).abs() < 0.1)
      True
    """
    weight = _own(module, name, "spectral_norm")
    axis = int(isinstance(module, ConvTranspose)) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, axis, eps))


class _Orthogonal(Module):
    """A matrix with orthonormal columns, or rows if it has fewer, of one without bounds."""

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        if orthogonal_map == "householder" and weight.dtype.kind == "complex":
            raise ValueError("orthogonal: reflections of complex matrices are not there; use another orthogonal_map")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        self.base: Tensor | None = None
        self.use_trivialization = use_trivialization

    def forward(self, x: Tensor) -> Tensor:
        wide = x.shape[-2] < x.shape[-1]
        tall = x.mT if wide else x
        rows, columns = tall._ints()[-2:]
        if self.orthogonal_map == "householder":
            axes = tall.tril(-1)
            found = householder_product(axes, 2 / (1 + (axes * axes).sum(-2)))
            found = found * tall.diagonal(0, -2, -1).detach().trunc().unsqueeze(-2)
        else:
            lower = tall.tril()
            if rows != columns:
                lower = lower.cat(lower.new_zeros((*lower.shape[:-1], rows - columns)), dim=-1)
            skew = lower - lower.mH
            if self.orthogonal_map == "matrix_exp":
                found = matrix_exp(skew)
            else:
                one = Tensor.eye(rows, dtype=x.dtype, device=x.device)
                found = solve(one - skew * 0.5, one + skew * 0.5)
            found = found[..., :columns]
        if self.base is not None:
            found = self.base @ found
        return found.mT if wide else found

    def right_inverse(self, q: Tensor) -> Tensor:
        if q.shape != self.shape:
            raise ValueError(f"orthogonal: a matrix of shape {q.shape} for {self.shape}")
        wide = q.shape[-2] < q.shape[-1]
        tall = q.mT if wide else q
        rows, columns = tall._ints()[-2:]
        if not self.use_trivialization:
            if self.orthogonal_map != "householder":
                raise NotImplementedError("orthogonal: without use_trivialization, this map has no inverse")
            packed, factors = reflections(tall)
            signs = packed.diagonal(0, -2, -1).sign() * (factors == 0).where(-1.0, 1.0)
            made = packed.tril(-1) + packed.triu(1) + _diagonal(signs, rows, columns)
            return made.mT if wide else made
        if rows != columns:
            tall = tall.cat(Tensor.randn(*tall._ints()[:-1], rows - columns, dtype=q.dtype, device=q.device), dim=-1)
        if rows != columns or not _orthonormal(tall):
            tall = _orthonormalised(tall)
        if self.base is None:
            self.base = Buffer(tall.contiguous())
        else:
            self.base.assign(tall.detach())
        return -Tensor.eye(q._ints()[-2], q._ints()[-1], dtype=q.dtype, device=q.device).expand(q.shape).contiguous()


def _diagonal(values: Tensor, rows: int, columns: int) -> Tensor:
    """A matrix (…, rows, columns) with a diagonal."""
    return Tensor.eye(rows, columns, dtype=values.dtype, device=values.device) * values.unsqueeze(-2)


def _orthonormalised(q: Tensor) -> Tensor:
    """The nearest way to a matrix with orthonormal columns: Q of QR, with the signs of R's diagonal."""
    found, upper = qr(q)
    return found * upper.diagonal(0, -2, -1).sgn().unsqueeze(-2)


def _orthonormal(q: Tensor) -> bool:
    """Whether the columns of a square matrix are orthonormal, to about a hundred times the precision of a number."""
    error = q.mH @ q - Tensor.eye(q._ints()[-1], dtype=q.dtype, device=q.device)
    tolerance = 10.0 * q._ints()[-2] * epsilon(q.real)
    return bool((error.abs() <= tolerance).all().item())


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Any:
    """Keeps a weight orthogonal: its columns, or rows if there are fewer, are orthonormal (Lezcano-Casado, 2019).

    Args:
      module: a layer; it is changed, and returned.
      name: of the weight, which becomes orthogonal if it is not.
      orthogonal_map: what makes an orthogonal matrix: ``"matrix_exp"`` of a skew-symmetric one, ``"cayley"``, Cayley's
        transform of it, or ``"householder"``, a product of reflections. If not given, ``"matrix_exp"`` for square and
        complex matrices, and ``"householder"`` for others.
      use_trivialization: whether what the map gives is multiplied by a fixed orthogonal matrix, the buffer
        ``layer.parametrizations[name][0].base``, so that the tensor can be set.

    Raises:
      ValueError: if there is no such tensor, it is no matrix, or there is no such map.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(5, 3))
      >>> bool((layer.weight @ layer.weight.T - Tensor.eye(3)).abs().max() < 1e-5)
      True
    """
    weight = _own(module, name, "orthogonal")
    if weight.ndim < 2:
        raise ValueError(f"orthogonal: a matrix is wanted, got a tensor of {weight.ndim} axes")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1] or weight.dtype.kind == "complex"
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(f"orthogonal: orthogonal_map is one of {', '.join(_MAPS)}, not {orthogonal_map!r}")
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)


if not TYPE_CHECKING:  # who checks types is to see that a name is not there
    __getattr__ = refusing("nn.utils.parametrizations")
