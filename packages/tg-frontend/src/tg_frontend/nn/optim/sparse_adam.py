"""Adam for row-sparse gradients."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import Ops

from ...array.writing import update_rows
from ...keywords import public
from ...ops.indexing import getitem
from ...ops.row_sparse import merged
from ...tensor import Tensor
from .optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


@public
class SparseAdam(Optimizer):
    """Adam for row-sparse gradients, lazily as PyTorch has it: a step touches the rows that a gradient holds.

    The running means of a row stand still while it gets no gradient, and so does the row. The bias correction of a
    parameter counts all its steps; ``eps`` is added to the root before that correction.

    Args:
      params: see :class:`Optimizer`.
      lr: learning rate.
      b1: share of the running mean of the gradient that is kept.
      b2: share of the running mean of its square that is kept.
      eps: added to the root of the mean square.

    Raises:
      ValueError: if ``b1`` or ``b2`` is not from 0 to below 1, or another number is negative.
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
        self, params: Iterable[Tensor], lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
    ) -> None:
        super().__init__(params, lr)
        if not 0 <= b1 < 1 or not 0 <= b2 < 1 or eps < 0:
            raise ValueError(f"SparseAdam: b1 {b1}, b2 {b2}, eps {eps}")
        self.b1, self.b2, self.eps = b1, b2, eps
        # of each parameter, since it counts only the steps in which it had a gradient: see AdamW
        self.b1_c = [self._none() for _ in self.params]
        self.b2_c = [self._none() for _ in self.params]
        self.m = [self._state(param) for param in self.params]
        self.v = [self._state(param) for param in self.params]

    row_sparse = True
    settings = ("b1", "b2", "eps")

    def _none(self) -> Tensor:
        return Tensor([0.0], device=self.device, dtype=dtypes.float32, requires_grad=False)

    def _named(self) -> dict[str, Tensor]:
        out: dict[str, Tensor] = {}
        for n, (c1, c2, m, v) in enumerate(zip(self.b1_c, self.b2_c, self.m, self.v, strict=True)):
            out |= {f"state.{n}.bias_correction1": c1, f"state.{n}.bias_correction2": c2}
            out |= {f"state.{n}.exp_avg": m, f"state.{n}.exp_avg_sq": v}
        return out

    def _step(self, ready: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
        for param, gradient in ready:
            if not gradient.is_sparse:
                raise RuntimeError(
                    f"SparseAdam: {self._called(param)} has a dense gradient; nn.optim.Adam is for those. Lookups have "
                    "row-sparse ones with nn.Embedding(…, sparse=True), while nothing else adds a dense one to them"
                )
        state = {id(param): at for at, param in enumerate(self.params)}
        changed: list[Tensor] = []
        for param, gradient in ready:
            at = state[id(param)]
            c1, c2, m, v = self.b1_c[at], self.b2_c[at], self.m[at], self.v[at]
            c1.assign(c1 * self.b1 + (1 - self.b1))
            c2.assign(c2 * self.b2 + (1 - self.b2))
            changed += [c1, c2, m, v]
            index, g = merged(gradient, m.dtype)
            if 0 in g.shape:
                continue
            mean = (getitem(m, index) * self.b1 + g * (1 - self.b1)).contiguous()
            square = (getitem(v, index) * self.b2 + g * g * (1 - self.b2)).contiguous()
            rate = self.lr.cast(m.dtype) * c2.cast(m.dtype).sqrt() / c1.cast(m.dtype)
            step = (mean / (square.sqrt() + self.eps) * -rate).cast(param.dtype)
            update_rows(m, index.lazydata, mean.lazydata, distinct=True)
            update_rows(v, index.lazydata, square.lazydata, distinct=True)
            update_rows(param, index.lazydata, step.lazydata, Ops.ADD, distinct=True)
        return changed
