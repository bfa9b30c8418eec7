"""The graph of what was computed, and hooks of several tensors; see :mod:`tg_frontend.transform.graph`."""

from tg_frontend.transform.graph import Node, register_multi_grad_hook

__all__ = ["Node", "register_multi_grad_hook"]
