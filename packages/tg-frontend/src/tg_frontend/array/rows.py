"""The rows of a sparse tensor."""

from __future__ import annotations

from typing import NamedTuple

from tg_lazy import LazyBuffer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Rows(NamedTuple):
    """Some rows of a table, of which all others are zero.

    Attributes:
      dense: the node of the tensor while it is sparse.
      indices: which rows.
      values: what is there.
      coalesced: whether each row is named once, in order.
    """

    dense: LazyBuffer
    indices: Any
    values: Any
    coalesced: bool
