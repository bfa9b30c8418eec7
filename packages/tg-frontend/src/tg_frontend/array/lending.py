"""What other libraries are given of a tensor: its elements, where no gradient is lost by that.

One rule for all the ways by which a library asks by itself: ``__array__``, the buffer protocol, ``__dlpack__``, and
numpy's functions that are not functions here. Elements come without the graph that they were computed by, and what is
written to memory behind the tensor's back is seen by no graph. So none of these takes a tensor of which a gradient may
be wanted. Who calls ``numpy()``, ``data()``, ``tolist()`` or ``item()`` asks for elements by name, and gets them.
"""

from __future__ import annotations

from .writing import brings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def wants_gradient(x: Any) -> bool:
    """Whether a gradient may be wanted of a tensor: one is required, or it depends on parameters of layers.

    In ``Tensor.no_grad()``, none is.
    """
    for part in x._floats():
        _ = part.lazydata  # and with it the graph of the newest version
        if brings(part):
            return True
    return False


def check_lendable(x: Any, what: str, error: type[Exception] = RuntimeError) -> None:
    """Refuses to give another library a tensor of which a gradient may be wanted.

    Raises:
      RuntimeError: if that would lose the gradient; or ``error``.
    """
    if wants_gradient(x):
        raise error(
            f"{what}: a tensor of shape {x.shape} that requires a gradient is given to another library, which would "
            "lose the gradient; use detach(), or numpy() for a copy of the elements"
        )
