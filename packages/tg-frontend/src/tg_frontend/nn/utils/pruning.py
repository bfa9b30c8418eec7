"""Methods that choose elements of a weight which become 0, and how a layer is changed so that they stay it."""

from __future__ import annotations

from numbers import Integral, Real

from ...autograd.differentiation import MODE, Switch
from ...tensor import Tensor
from ..initial import parameter
from ..module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar

_KINDS = ("unstructured", "structured", "global")


class BasePruningMethod:
    """A method of pruning: to be inherited by a class that has ``compute_mask`` and says its ``PRUNING_TYPE``.

    The layer learns ``weight_orig``, holds a mask of ones and zeros as the buffer ``weight_mask``, and has the product
    of both as ``weight``, which is computed anew before each call.

    Attributes:
      PRUNING_TYPE: what a further method of pruning is asked about: ``"unstructured"``, the elements that are left;
        ``"structured"``, the slices along ``dim`` in which something is left; ``"global"``, all elements.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> class Negative(nn.utils.prune.BasePruningMethod):
      ...     PRUNING_TYPE = "unstructured"
      ...     def compute_mask(self, t, default_mask):
      ...         return default_mask * (t >= 0)
      >>> Negative().prune(Tensor([1.0, -2.0, 3.0]))
      Tensor([ 1., -0.,  3.])
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str = ""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Which elements are kept: to be written by who inherits.

        Args:
          t: how much each element matters, in any shape; the elements themselves if nothing else is said.
          default_mask: which are kept already, of the same shape.

        Returns:
          Ones and zeros of that shape.

        Raises:
          NotImplementedError: if it was not.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.utils.prune.L1Unstructured(2).compute_mask(Tensor([1.0, -2.0, 3.0]), Tensor.ones(3))
          Tensor([0., 0., 1.])
        """
        raise NotImplementedError(f"{type(self).__name__} has no compute_mask(): write which elements are kept")

    def __call__(self, module: Any, inputs: Any = None) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module: Any) -> Tensor:
        """The weight of a layer that this method is applied to, with zeros.

        Raises:
          RuntimeError: if it is applied to none.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> layer = nn.Linear(1, 2)
          >>> layer.weight.assign(Tensor([[2.0], [3.0]])) is None
          False
          >>> nn.utils.prune.L1Unstructured.apply(layer, "weight", 1).apply_mask(layer).tolist()
          [[0.0], [3.0]]
        """
        name = self._applied("apply_mask")
        weight = getattr(module, f"{name}_orig")
        return weight * getattr(module, f"{name}_mask").cast(weight.dtype)  # type: ignore[no-any-return]

    def _applied(self, what: str) -> str:
        if not self._tensor_name:
            raise RuntimeError(f"{what}: {type(self).__name__} is applied to no layer")
        return self._tensor_name

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prunes a tensor of a layer with a method of this class, after others that were applied to it.

        Args:
          module: the layer, which is changed.
          name: of the tensor.
          args: what the method is made with; and ``kwargs``.
          importance_scores: how much each element matters, of the shape of the tensor; its elements if not given.

        Returns:
          The method; a :class:`PruningContainer` of several.

        Raises:
          ValueError: if there is no such tensor, or the scores have another shape. Nothing is changed then.

        Example:
          >>> from tg_frontend import nn
          >>> layer = nn.Linear(2, 3)
          >>> method = nn.utils.prune.RandomUnstructured.apply(layer, "weight", amount=0.5)
          >>> sorted(layer.state_dict()), int(layer.weight_mask.sum().item())
          (['bias', 'weight_mask', 'weight_orig'], 3)
        """
        old = method_of(module, name)
        tensor = getattr(module, name, None)
        if not isinstance(module, Module) or not isinstance(tensor, Tensor):
            raise ValueError(f"{cls.__name__}: a {type(module).__name__} has no tensor {name!r}")
        if old is None and (name in module._derived or name not in vars(module)):
            raise ValueError(f"{cls.__name__}: {name!r} of a {type(module).__name__} is computed from other tensors")
        scores = tensor if importance_scores is None else importance_scores
        if scores.shape != tensor.shape:
            raise ValueError(f"{cls.__name__}: importance_scores of shape {scores.shape} for {name}, {tensor.shape}")
        new = cls(*args, **kwargs)
        new._tensor_name = name
        method = new if old is None else PruningContainer(*_several(old), new)
        mask = tensor.ones_like() if old is None else getattr(module, f"{name}_mask")
        with Switch(MODE, "recording", False):
            mask = method.compute_mask(scores.detach(), default_mask=mask.detach().clone()).contiguous()
        if old is None:
            setattr(module, f"{name}_orig", tensor)
            module._derived = (*module._derived, name)
        else:
            _unhook(module, old)
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """A tensor with zeros where this method puts them. No layer is changed.

        Args:
          t: the tensor.
          default_mask: which elements are kept before; all of them if not given.
          importance_scores: how much each element matters; the elements if not given.

        Raises:
          ValueError: if the scores have another shape.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.utils.prune.L1Unstructured(1).prune(Tensor([1.0, -2.0, 3.0]))
          Tensor([ 0., -2.,  3.])
        """
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise ValueError(f"prune: importance_scores of shape {scores.shape} for a tensor of shape {t.shape}")
        before = t.ones_like() if default_mask is None else default_mask
        return t * self.compute_mask(scores.detach(), default_mask=before).cast(t.dtype)

    def remove(self, module: Any) -> None:
        """Makes the tensor of a layer one that it holds and learns again, with the zeros that it has.

        Raises:
          RuntimeError: if this method is applied to no layer.

        Example:
          >>> from tg_frontend import nn
          >>> layer = nn.Linear(2, 3)
          >>> nn.utils.prune.Identity.apply(layer, "weight").remove(layer)
          >>> sorted(layer.state_dict())
          ['bias', 'weight']
        """
        name = self._applied("remove")
        with Switch(MODE, "recording", False):
            value = self.apply_mask(module).detach().contiguous().realize()
            weight = getattr(module, f"{name}_orig")
            weight.assign(value)
        _unhook(module, self)
        for part in (name, f"{name}_orig", f"{name}_mask"):
            delattr(module, part)
        module._derived = tuple(known for known in module._derived if known != name)
        setattr(module, name, parameter(weight) if weight._wish is not False else weight)


class PruningContainer(BasePruningMethod):
    """Methods of pruning that were applied to one tensor, one after another.

    Args:
      args: the methods.

    Raises:
      TypeError: if one is none.
      ValueError: if they are of different tensors.

    Example:
      >>> from tg_frontend import nn
      >>> layer = nn.Linear(2, 3)
      >>> _ = nn.utils.prune.random_unstructured(nn.utils.prune.identity(layer, "weight"), "weight", 1)
      >>> method = nn.utils.prune.Identity.apply(layer, "weight")
      >>> [type(one).__name__ for one in method]
      ['Identity', 'RandomUnstructured', 'Identity']
    """

    PRUNING_TYPE = "global"

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Adds a method, which is the next to be asked.

        Raises:
          TypeError: if it is none.
          ValueError: if it is of another tensor.

        Example:
          >>> from tg_frontend import nn
          >>> both = nn.utils.prune.PruningContainer(nn.utils.prune.Identity())
          >>> both.add_pruning_method(nn.utils.prune.L1Unstructured(1))
          >>> len(both)
          2
        """
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"PruningContainer: a {type(method).__name__} is no method of pruning")
        if self._pruning_methods and method._tensor_name != self._tensor_name:
            raise ValueError(f"PruningContainer: a method of {method._tensor_name!r} beside {self._tensor_name!r}")
        self._tensor_name = method._tensor_name
        self._pruning_methods = (*self._pruning_methods, method)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Which elements are kept after the last method, which is asked about what the others left.

        Raises:
          ValueError: if there is no method, or its ``PRUNING_TYPE`` is none.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> both = nn.utils.prune.PruningContainer(nn.utils.prune.L1Unstructured(1))
          >>> both.compute_mask(Tensor([1.0, 2.0, 3.0]), Tensor([0.0, 1.0, 1.0]))
          Tensor([0., 0., 1.])
        """
        if not self._pruning_methods:
            raise ValueError("PruningContainer: there is no method")
        method, kind = self._pruning_methods[-1], self._pruning_methods[-1].PRUNING_TYPE
        if kind not in _KINDS:
            raise ValueError(f"{type(method).__name__}: PRUNING_TYPE is one of {', '.join(_KINDS)}, not {kind!r}")
        if kind == "global":
            return method.compute_mask(t, default_mask=default_mask)
        default_mask = default_mask.cast(t.dtype)
        if kind == "unstructured":
            left = (default_mask == 1).flatten().nonzero().squeeze(1)
            kept = method.compute_mask(t.flatten()[left], default_mask=default_mask.flatten()[left])
            return default_mask.flatten().index_put((left,), kept.cast(default_mask.dtype)).reshape(default_mask.shape)
        axis = _axis(t, getattr(method, "dim", -1))
        others = tuple(n for n in range(t.ndim) if n != axis)
        left = (default_mask.sum(others) != 0).nonzero().squeeze(1)
        chosen = method.compute_mask(t.index_select(axis, left), default_mask=default_mask.index_select(axis, left))
        return default_mask.index_copy(axis, left, chosen.cast(default_mask.dtype))


def _several(method: BasePruningMethod) -> tuple[BasePruningMethod, ...]:
    return tuple(method) if isinstance(method, PruningContainer) else (method,)


def method_of(module: Any, name: str | None = None) -> BasePruningMethod | None:
    """The method of pruning that is applied to a tensor of a layer, or to any of them; None if there is none."""
    for hook in module._of("pre") if isinstance(module, Module) else ():
        if isinstance(hook.function, BasePruningMethod) and name in (None, hook.function._tensor_name):
            return hook.function
    return None


def _unhook(module: Any, method: BasePruningMethod) -> None:
    registry = module._registry("pre")
    for number, hook in list(registry.items()):
        if hook.function is method:
            del registry[number]


def _checked(amount: Any, what: str) -> Any:
    """How much is to be pruned: a number of elements or slices, or a part of them."""
    if isinstance(amount, bool) or not isinstance(amount, Real):
        raise TypeError(f"{what}: amount is an integer or a float, not {amount!r}")
    if float(amount) < 0 or (not isinstance(amount, Integral) and float(amount) > 1):
        raise ValueError(f"{what}: amount is an integer from 0 on, or a part from 0 to 1, not {amount}")
    return amount


def _count(amount: Any, size: int, what: str) -> int:
    """How many of ``size`` are pruned; halves are rounded to even numbers, as Python does."""
    if isinstance(amount, Integral):
        if int(amount) > size:
            raise ValueError(f"{what}: amount={amount} of {size} that are left")
        return int(amount)
    return round(float(amount) * size)


def _axis(t: Tensor, dim: int) -> int:
    if not -t.ndim <= dim < t.ndim:
        raise IndexError(f"prune: a tensor of shape {t.shape} has no axis {dim}")
    return dim % t.ndim


def _least(scores: Tensor, count: int) -> Tensor:
    """Zeros in the ``count`` places of a vector with the least elements, and ones in the others."""
    places = scores.argsort(0, stable=True)[:count]
    return scores.ones_like().scatter(0, places, 0.0)


class Identity(BasePruningMethod):
    """Nothing is pruned; the layer is changed as if something were.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.utils.prune.Identity().prune(Tensor([1.0, 2.0]))
      Tensor([1., 2.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """What is kept already."""
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Elements drawn at random.

    Args:
      amount: how many: an integer, or a part from 0 to 1.

    Raises:
      TypeError: if the amount is no number.
      ValueError: if it is negative, or a float above 1; and, when it is applied, more than there are.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.utils.prune.RandomUnstructured(0.5).prune(Tensor.ones(6)).sum().item()
      3.0
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        self.amount = _checked(amount, type(self).__name__)

    def scores(self, t: Tensor) -> Tensor:
        """How much each element matters, in a row."""
        return Tensor.rand(int(t.numel()), device=t.device)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Ones but where elements matter least."""
        count = _count(self.amount, int(t.numel()), type(self).__name__)
        return default_mask * _least(self.scores(t), count).reshape(t.shape).cast(default_mask.dtype)


class L1Unstructured(RandomUnstructured):
    """The elements of least magnitude; of equal ones the first.

    Args:
      amount: how many: an integer, or a part from 0 to 1.

    Raises:
      TypeError: if the amount is no number.
      ValueError: if it is negative, or a float above 1; and, when it is applied, more than there are.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.utils.prune.L1Unstructured(0.5).prune(Tensor([1.0, -4.0, 3.0, -2.0]))
      Tensor([ 0., -4.,  3., -0.])
    """

    def scores(self, t: Tensor) -> Tensor:
        """Magnitudes."""
        return t.abs().flatten()


class _Structured(BasePruningMethod):
    """Whole slices along an axis."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        self.amount, self.dim = _checked(amount, type(self).__name__), dim

    def scores(self, t: Tensor, axis: int) -> Tensor:
        """How much each slice matters."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Zeros in the slices that matter least."""
        if t.ndim < 2:
            raise ValueError(f"{type(self).__name__}: slices are of a tensor of two axes or more, got shape {t.shape}")
        axis = _axis(t, self.dim)
        count = _count(self.amount, int(t.shape[axis]), type(self).__name__)
        kept = _least(self.scores(t, axis), count).cast(default_mask.dtype)
        return default_mask * kept.reshape([-1 if n == axis else 1 for n in range(t.ndim)])


class RandomStructured(_Structured):
    """Slices along an axis drawn at random.

    Args:
      amount: how many: an integer, or a part from 0 to 1.
      dim: the axis.

    Raises:
      TypeError: if the amount is no number.
      ValueError: if it is negative, or a float above 1; and, when it is applied, more than there are.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.utils.prune.RandomStructured(1, dim=0).prune(Tensor.ones(3, 2)).sum().item()
      4.0
    """

    def scores(self, t: Tensor, axis: int) -> Tensor:
        """Drawn numbers."""
        return Tensor.rand(int(t.shape[axis]), device=t.device)


class LnStructured(_Structured):
    """Slices along an axis with the least norms.

    Args:
      amount: how many: an integer, or a part from 0 to 1.
      n: the norm, as ``Tensor.norm`` takes it.
      dim: the axis.

    Raises:
      TypeError: if the amount is no number.
      ValueError: if it is negative, or a float above 1; and, when it is applied, more than there are.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.utils.prune.LnStructured(1, n=2, dim=0).prune(Tensor([[3.0, 4.0], [1.0, 1.0]]))
      Tensor([[3., 4.],
              [0., 0.]])
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def scores(self, t: Tensor, axis: int) -> Tensor:
        """The norms of the slices."""
        return t.norm(self.n, tuple(other for other in range(t.ndim) if other != axis))


class CustomFromMask(BasePruningMethod):
    """What a mask says.

    Args:
      mask: ones and zeros of the shape of the tensor.

    Raises:
      ValueError: when it is applied, if it has another shape.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.utils.prune.CustomFromMask(Tensor([1, 0])).prune(Tensor([3.0, 4.0]))
      Tensor([3., 0.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """What both masks keep."""
        if default_mask.shape != self.mask.shape:
            raise ValueError(f"CustomFromMask: a mask of shape {self.mask.shape} for {default_mask.shape}")
        return default_mask * self.mask.cast(default_mask.dtype)
