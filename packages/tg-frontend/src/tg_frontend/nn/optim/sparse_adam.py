"""Adam for row-sparse gradients."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import Ops

from ...array.writing import update_rows
from ...keywords import public
from ...ops.indexing import getitem
from ...ops.row_sparse import merged
from ...tensor import Tensor
from .elementwise import rest
from .group import pair
from .optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .group import Group, Pair
    from .optimizer import Parameters


@public
class SparseAdam(Optimizer):
    """Adam for row-sparse gradients, lazily as PyTorch has it: a step touches the rows that a gradient holds.

    The running means of a row stand still while it gets no gradient, and so does the row. The bias correction of a
    parameter counts all its steps; ``eps`` is added to the root before that correction.

    Args:
      params: see :class:`Optimizer`.
      lr: learning rate.
      betas: shares of the running means of the gradient and of its square that are kept; ``b1`` and ``b2`` give each by
        itself.
      eps: added to the root of the mean square.
      maximize: climb.

    Raises:
      ValueError: if one of ``betas`` is not from 0 to below 1, or another number is negative.
      RuntimeError: if ``step()`` finds a dense gradient.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> table = nn.Embedding(1000, 2, sparse=True)
      >>> optimizer = nn.optim.SparseAdam([table.weight], lr=0.25)
      >>> before = table.weight[7].numpy()
      >>> _ = table(Tensor([7])).sum().backward()
      >>> optimizer.step()
      >>> (table.weight[7].numpy() - before).round(4).tolist()
      [-0.25, -0.25]
    """

    def __init__(
        self, params: Parameters, lr: float | Tensor = 0.001, betas: Pair = (0.9, 0.999), eps: float = 1e-8,
        maximize: bool = False, *, b1: float | None = None, b2: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, betas=pair(betas, b1, b2, type(self).__name__), eps=eps, maximize=maximize)

    row_sparse = True

    def _check(self, values: Mapping[str, Any]) -> None:
        (b1, b2), eps = values["betas"], values["eps"]
        if not 0 <= b1 < 1 or not 0 <= b2 < 1 or eps < 0:
            raise ValueError(f"SparseAdam: b1 {b1}, b2 {b2}, eps {eps}")

    def _begin(self, param: Tensor, group: Group) -> dict[str, Tensor]:
        step = Tensor(0.0, device=self.device, dtype=dtypes.float32, requires_grad=False).contiguous().realize()
        return {"exp_avg": self._state(param), "exp_avg_sq": self._state(param), "step": step}

    def _step(self, ready: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
        for param, gradient in ready:
            if not gradient.is_sparse:
                raise RuntimeError(
                    f"SparseAdam: {self._called(param)} has a dense gradient; nn.optim.Adam is for those. Lookups have "
                    "row-sparse ones with nn.Embedding(…, sparse=True), while nothing else adds a dense one to them"
                )
        if self._skip is not None:
            raise RuntimeError("SparseAdam: row-sparse gradients do not go with a gradient scaler")
        group_of = {id(param): group for group in self.param_groups for param in group["params"]}
        state, changed = self.state, list[Tensor]()
        for param, gradient in ready:
            group, kept = group_of[id(param)], state[param]
            m, v, step = kept["exp_avg"], kept["exp_avg_sq"], kept["step"]
            step.assign(step + 1)
            changed += [m, v, step]
            index, g = merged(gradient, m.dtype)
            if 0 in g.shape:
                continue
            g = -g if group["maximize"] else g
            b1, b2 = (group.number("betas", m.dtype, n) for n in (0, 1))
            mean = (getitem(m, index) * b1 + g * (1 - b1)).contiguous()
            square = (getitem(v, index) * b2 + g * g * (1 - b2)).contiguous()
            first, second = (rest(share, step.cast(m.dtype)) for share in (b1, b2))
            rate = (group.number("lr", m.dtype) * second.sqrt() / first).contiguous()
            moved = (mean / (square.sqrt() + group["eps"]) * -rate).cast(param.dtype)
            update_rows(m, index.lazydata, mean.lazydata, distinct=True)
            update_rows(v, index.lazydata, square.lazydata, distinct=True)
            update_rows(param, index.lazydata, moved.lazydata, Ops.ADD, distinct=True)
        return changed
