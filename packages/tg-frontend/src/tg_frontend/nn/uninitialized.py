"""Parameters and buffers of layers whose sizes are not known yet."""

from __future__ import annotations

from ..array.base import Base
from ..array.becoming import adopt
from ..keywords import public
from ..memory.realization import enlist
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from tg_lazy import LazyBuffer

_NODE: Any = vars(Base)["_lazy"]  # the slot, which a subclass may hide


class Uninitialized(Tensor):
    """A tensor that has a dtype and a device, and neither a shape nor elements until :meth:`materialize`.

    Whatever needs more of it raises a ValueError.
    """

    __slots__ = ()

    _learnt: ClassVar[bool] = False

    def __init__(self, requires_grad: bool | None = None, device: str | None = None, dtype: Any = None) -> None:
        """Notes the dtype and the device."""
        _NODE.__set__(self, Tensor.zeros(0, device=device, dtype=dtype).lazydata)
        self.grad = self._ctx = self._home = self._place = self._cut = self._rows = None
        self._wants_grad = requires_grad if self._learnt else False
        self._parameter = self._learnt and requires_grad is not False

    def _nothing(self) -> LazyBuffer:
        raise ValueError(
            f"{type(self).__name__}: it has no shape and no elements yet; call the model once with an input, or load "
            "its state, before its tensors are used"
        )

    if not TYPE_CHECKING:  # for whom a slot stays a slot
        _lazy = property(_nothing)

    @property
    def dtype(self) -> Any:
        """Type that the elements will have.

        Example:
          >>> from tg_frontend import nn
          >>> nn.UninitializedBuffer(dtype="float16").dtype
          dtypes.float16
        """
        return _NODE.__get__(self).dtype

    @property
    def device(self) -> str:
        """Where the elements will live.

        Example:
          >>> from tg_frontend import nn
          >>> nn.UninitializedParameter(device="NUMPY").device
          'NUMPY'
        """
        return str(_NODE.__get__(self).device)

    def materialize(self, shape: int | tuple[int, ...], device: str | None = None, dtype: Any = None) -> None:
        """Makes this very object a tensor of zeros.

        Args:
          shape: of the tensor; one number is that of a vector.
          device: where it lives, and ``dtype`` the type of its elements: those noted before if not given.

        Example:
          >>> from tg_frontend import nn
          >>> weight = nn.UninitializedParameter()
          >>> weight.materialize((2, 3))
          >>> weight.shape
          (2, 3)
        """
        kind = self.dtype if dtype is None else dtype
        sizes = (shape,) if isinstance(shape, int) else shape
        self._adopt(Tensor.zeros(*sizes, device=self.device if device is None else device, dtype=kind))

    def _adopt(self, value: Tensor) -> None:
        """Makes this very object a tensor of these elements."""
        node = value.lazydata
        self.__class__ = Tensor  # type: ignore[assignment]
        _NODE.__set__(self, node)
        enlist(self)
        adopt(self, value)

    def _filled(self, value: Tensor) -> None:
        """Likewise; the dtype and the device are those noted before."""
        self._adopt(value.detach().to(self.device).cast(self.dtype))

    def _noted(self, device: str | None, dtype: Any) -> None:
        """Notes another device or dtype."""
        kind = self.dtype if dtype is None else dtype
        _NODE.__set__(self, Tensor.zeros(0, device=self.device if device is None else device, dtype=kind).lazydata)

    def __deepcopy__(self, memo: dict[int, Any]) -> Uninitialized:
        return type(self)(self._wants_grad, self.device, self.dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._wants_grad, self.device, self.dtype)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.dtype.name}>"


@public
class UninitializedParameter(Uninitialized):
    """A parameter whose shape is not known yet.

    It has a dtype and a device, can be copied and pickled, and takes the place of a parameter in a layer. Whatever
    needs its shape or its elements raises a ValueError: an optimiser, a file, an operation.

    Args:
      requires_grad: whether it is to have a gradient; None leaves that open.
      device: where the elements will live.
      dtype: type that they will have.

    Example:
      >>> from tg_frontend import nn
      >>> nn.LazyLinear(3).weight
      <UninitializedParameter of float32>
      >>> nn.LazyLinear(3).weight.shape
      Traceback (most recent call last):
      ...
      ValueError: UninitializedParameter: it has no shape and no elements yet; call the model once with an input, \
or load its state, before its tensors are used
    """

    __slots__ = ()

    _learnt = True


@public
class UninitializedBuffer(Uninitialized):
    """A tensor that a layer holds and does not learn, and whose shape is not known yet.

    Args:
      requires_grad: of no effect: it has no gradient.
      device: where the elements will live.
      dtype: type that they will have.

    Example:
      >>> from tg_frontend import nn
      >>> nn.LazyBatchNorm1d().running_mean
      <UninitializedBuffer of float32>
    """

    __slots__ = ()
