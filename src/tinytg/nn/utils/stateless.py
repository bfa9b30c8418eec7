"""Models called with other tensors than their own; see :mod:`tg_frontend.nn.utils.stateless`."""

from tg_frontend.nn.utils.stateless import functional_call

__all__ = ["functional_call"]

TYPE_CHECKING = False
if not TYPE_CHECKING:
    from tg_frontend.nn.utils.stateless import __getattr__  # noqa: F401
