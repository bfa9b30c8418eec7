"""Padding as layers."""

from __future__ import annotations

from ..tensor import Tensor
from .layering import Layer, layer_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import ClassVar


@layer_class
class Pad(Layer):
    """Elements around the last axes.

    Args:
      padding: how many on every side; or (before, after) for each axis, beginning with the last. Negative ones cut.

    Raises:
      ValueError: if there are more or fewer numbers than sides.
    """

    _numbers = "any"
    _axes: ClassVar[int]
    _mode: ClassVar[str] = "constant"
    value: float = 0

    def __init__(self, padding: int | Sequence[int]) -> None:
        sides = (padding,) * (2 * self._axes) if isinstance(padding, int) else tuple(padding)
        if len(sides) != 2 * self._axes or not all(isinstance(side, int) for side in sides):
            raise ValueError(f"{type(self).__name__}: padding {padding!r}; one number or {2 * self._axes} are wanted")
        self.padding = sides

    def forward(self, x: Tensor) -> Tensor:
        """shape ([batch,] channels, *spatial) to the same with longer axes.

        Raises:
          ValueError: if the input has another number of axes, or the amounts do not fit.
        """
        if x.ndim not in (self._axes + 1, self._axes + 2):
            raise ValueError(
                f"{type(self).__name__}: input of shape {x.shape}; ([batch,] channels and {self._axes} more axes) fits"
            )
        return x.pad(self.padding, self._mode, self.value)


class ZeroPad1d(Pad):
    """Zeros around one axis. See :meth:`tg_frontend.Tensor.pad`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ZeroPad1d(1)(Tensor([[1.0, 2.0]]))
      Tensor([[0., 1., 2., 0.]])
    """

    _axes = 1


class ZeroPad2d(Pad):
    """Zeros around two axes. See :meth:`tg_frontend.Tensor.pad`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ZeroPad2d(1)(Tensor([[[1.0, 2.0], [3.0, 4.0]]]))
      Tensor([[[0., 0., 0., 0.],
               [0., 1., 2., 0.],
               [0., 3., 4., 0.],
               [0., 0., 0., 0.]]])
    """

    _axes = 2


class ZeroPad3d(Pad):
    """Zeros around three axes. See :meth:`tg_frontend.Tensor.pad`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ZeroPad3d(1)(Tensor.ones(1, 2, 2, 2)).shape
      (1, 4, 4, 4)
    """

    _axes = 3


@layer_class
class ConstantPad1d(Pad):
    """A number around one axis. See :meth:`tg_frontend.Tensor.pad`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ConstantPad1d(1, 5.0)(Tensor([[1.0, 2.0]]))
      Tensor([[5., 1., 2., 5.]])
    """

    _axes = 1

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value


@layer_class
class ConstantPad2d(Pad):
    """A number around two axes. See :meth:`tg_frontend.Tensor.pad`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ConstantPad2d(1, 5.0)(Tensor([[[1.0, 2.0], [3.0, 4.0]]]))
      Tensor([[[5., 5., 5., 5.],
               [5., 1., 2., 5.],
               [5., 3., 4., 5.],
               [5., 5., 5., 5.]]])
    """

    _axes = 2

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value


@layer_class
class ConstantPad3d(Pad):
    """A number around three axes. See :meth:`tg_frontend.Tensor.pad`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ConstantPad3d(1, 5.0)(Tensor.ones(1, 2, 2, 2)).shape
      (1, 4, 4, 4)
    """

    _axes = 3

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value


class ReflectionPad1d(Pad):
    """A reflection around one axis. See :meth:`tg_frontend.Tensor.pad`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ReflectionPad1d(1)(Tensor([[1.0, 2.0]]))
      Tensor([[2., 1., 2., 1.]])
    """

    _axes = 1
    _mode = "reflect"


class ReflectionPad2d(Pad):
    """A reflection around two axes. See :meth:`tg_frontend.Tensor.pad`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ReflectionPad2d(1)(Tensor([[[1.0, 2.0], [3.0, 4.0]]]))
      Tensor([[[4., 3., 4., 3.],
               [2., 1., 2., 1.],
               [4., 3., 4., 3.],
               [2., 1., 2., 1.]]])
    """

    _axes = 2
    _mode = "reflect"


class ReflectionPad3d(Pad):
    """A reflection around three axes. See :meth:`tg_frontend.Tensor.pad`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ReflectionPad3d(1)(Tensor.ones(1, 2, 2, 2)).shape
      (1, 4, 4, 4)
    """

    _axes = 3
    _mode = "reflect"


class ReplicationPad1d(Pad):
    """The outermost elements around one axis. See :meth:`tg_frontend.Tensor.pad`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ReplicationPad1d(1)(Tensor([[1.0, 2.0]]))
      Tensor([[1., 1., 2., 2.]])
    """

    _axes = 1
    _mode = "replicate"


class ReplicationPad2d(Pad):
    """The outermost elements around two axes. See :meth:`tg_frontend.Tensor.pad`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ReplicationPad2d(1)(Tensor([[[1.0, 2.0], [3.0, 4.0]]]))
      Tensor([[[1., 1., 2., 2.],
               [1., 1., 2., 2.],
               [3., 3., 4., 4.],
               [3., 3., 4., 4.]]])
    """

    _axes = 2
    _mode = "replicate"


class ReplicationPad3d(Pad):
    """The outermost elements around three axes. See :meth:`tg_frontend.Tensor.pad`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ReplicationPad3d(1)(Tensor.ones(1, 2, 2, 2)).shape
      (1, 4, 4, 4)
    """

    _axes = 3
    _mode = "replicate"


class CircularPad1d(Pad):
    """The elements of the other end around one axis. See :meth:`tg_frontend.Tensor.pad`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.CircularPad1d(1)(Tensor([[1.0, 2.0]]))
      Tensor([[2., 1., 2., 1.]])
    """

    _axes = 1
    _mode = "circular"


class CircularPad2d(Pad):
    """The elements of the other end around two axes. See :meth:`tg_frontend.Tensor.pad`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.CircularPad2d(1)(Tensor([[[1.0, 2.0], [3.0, 4.0]]]))
      Tensor([[[4., 3., 4., 3.],
               [2., 1., 2., 1.],
               [4., 3., 4., 3.],
               [2., 1., 2., 1.]]])
    """

    _axes = 2
    _mode = "circular"


class CircularPad3d(Pad):
    """The elements of the other end around three axes. See :meth:`tg_frontend.Tensor.pad`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.CircularPad3d(1)(Tensor.ones(1, 2, 2, 2)).shape
      (1, 4, 4, 4)
    """

    _axes = 3
    _mode = "circular"
