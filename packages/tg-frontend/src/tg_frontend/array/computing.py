"""Computing tensors, and their elements in memory of their own."""

from __future__ import annotations

from tg_lazy.ops import MEMORY
from tg_lazy.trackers import is_row_major
from tg_shape import Variable

from ..autograd.functions import Contiguous, ContiguousBackward, Same
from ..memory.realization import realize_all, schedule_all
from .base import B
from .casts import to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tg_lazy import LazyBuffer, ScheduleItem


def schedule_with_vars(x: B, *others: B) -> tuple[list[ScheduleItem], dict[Variable, int]]:
    """The kernels that would compute this tensor and ``others``, and the values of variables. Runs nothing.

    Example:
      >>> from tg_frontend import Tensor
      >>> kernels, values = (Tensor([1.0, 2.0]) + 1).schedule_with_vars()
      >>> len(kernels), values
      (1, {})
    """
    return schedule_all([part.lazydata for tensor in (x, *others) for part in tensor._floats()])


def schedule(x: B, *others: B) -> list[ScheduleItem]:
    """The kernels that would compute this tensor and ``others``. Runs nothing.

    Example:
      >>> from tg_frontend import Tensor
      >>> len((Tensor([1.0, 2.0]) + 1).schedule())
      1
    """
    return schedule_with_vars(x, *others)[0]


def realize(x: B, *others: B) -> B:
    """Computes this tensor and ``others`` now, and returns this tensor.

    Those that leave ``requires_grad`` open are leaves from now on, also where they come from parameters of layers:
    call ``backward`` before. What is only read stays what it was.

    Raises:
      MemoryError: if there is not enough memory; the message says how much was asked and is held.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([1.0, 2.0]).exp2().realize()
      >>> x.is_realized
      True
    """
    wanted: list[LazyBuffer] = []
    for part in [part for tensor in (x, *others) for part in tensor._floats()] if others else x._floats():
        if part._ctx is not None:
            part._let_go()
        if part._rows is None:
            wanted.append(part._lazy if part._home is None else part.lazydata)
        else:
            wanted += part._nodes()
    realize_all(wanted)
    return x


def contiguous(x: B) -> B:
    """The same elements in memory, row-major: this tensor, if it lies like that already; else a copy.

    A tensor that is no view lies row-major, and so does a range of one. Memory is asked for when it is realised.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[1, 2], [3, 4]]).T.contiguous()
      >>> x
      Tensor([[1, 3],
              [2, 4]])
    """
    home = x._memory()
    view = (x._place or x.lazydata).st.views[-1]
    if view.mask is None and is_row_major(view):
        if not home.direct or home.base.op not in MEMORY:
            home.settle()
        return x
    return x._apply(Contiguous())


def copied(x: B, *others: B) -> B:
    """The same elements as a tensor that shares no memory with this one. The gradient flows.

    Args:
      others: what the result is a function of though it has none of its elements: gradients of these are zeros.
    """
    return x._apply(Same(), *others)


def clone(x: B, device: str | None = None) -> B:
    """The same elements in new memory: what is assigned to one does not show in the other. The gradient flows.

    Args:
      device: where that memory is; the tensor's own device if not given.

    Raises:
      UnknownDevice: if no package offers such a device.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([1, 2])
      >>> y = x.clone()
      >>> _ = y.assign([3, 4])
      >>> x
      Tensor([1, 2])
    """
    return x._apply(Contiguous(fresh=True)) if device is None else to(x, device, copy=True)


def contiguous_backward(x: B) -> B:
    """The tensor itself; its gradient is put in memory before it flows on.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([1.0, 2.0], requires_grad=True)
      >>> _ = (x.contiguous_backward() * 3).sum().backward()
      >>> x.grad
      Tensor([3., 3.])
    """
    return x._apply(ContiguousBackward())
