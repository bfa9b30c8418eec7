"""A softmax over many classes whose rare ones have fewer features."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from tg_dtype import dtypes

from ..tensor import Tensor
from .containers import ModuleList, Sequential
from .layering import layer_class
from .layers import Linear
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class TargetLogProbabilities(NamedTuple):
    """What :class:`AdaptiveLogSoftmaxWithLoss` gives.

    Attributes:
      output: the logarithm of the probability of each target, shape (batch,) or ().
      loss: the mean of ``-output``.
    """

    output: Tensor
    loss: Tensor


@layer_class
class AdaptiveLogSoftmaxWithLoss(Module):
    """Log probabilities of targets among many classes, sorted from frequent to rare: the first are scored at once, the
    others by clusters, each with fewer features than the one before (Grave et al., "Efficient softmax approximation for
    GPUs", 2016).

    What it saves is parameters, and the products of the rare classes by the features they lack. Every cluster is
    computed for every row: which rows it is for is known when targets are, and shapes are known before.

    Args:
      in_features: length of a row of the input.
      n_classes: number of classes.
      cutoffs: classes at which a cluster begins, rising.
      div_value: by what features shrink from cluster to cluster.
      head_bias: whether the scores of the head have a bias.

    Attributes:
      head: scores of the frequent classes and of the clusters.
      tail: for each cluster, a projection to fewer features and the scores of its classes.

    Raises:
      ValueError: if the cutoffs do not rise, or are not between 0 and ``n_classes``; or no feature is left for a
        cluster.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.AdaptiveLogSoftmaxWithLoss(16, 20, [4, 10])
      >>> output, loss = layer(Tensor.ones(2, 16), Tensor([3, 17]))
      >>> output.shape, loss.shape
      ((2,), ())
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False
    ) -> None:
        limits = [*cutoffs, n_classes]
        if len(limits) < 2 or limits[0] <= 0 or any(a >= b for a, b in pairwise(limits)):
            raise ValueError(
                f"AdaptiveLogSoftmaxWithLoss: cutoffs {list(cutoffs)} of {n_classes} classes; they rise, from above 0 "
                "to below the number of classes"
            )
        if not div_value > 0:
            raise ValueError(f"AdaptiveLogSoftmaxWithLoss: div_value is {div_value}; a number above 0 is wanted")
        self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs = limits
        self.shortlist_size, self.n_clusters = limits[0], len(limits) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias)
        self.tail: Any = ModuleList()
        for i, (begin, end) in enumerate(pairwise(limits)):
            features = int(in_features // div_value ** (i + 1))
            if features < 1:
                raise ValueError(
                    f"AdaptiveLogSoftmaxWithLoss: {in_features} features over {div_value} ** {i + 1} leave none for "
                    f"cluster {i}"
                )
            self.tail.append(Sequential(Linear(in_features, features, False), Linear(features, end - begin, False)))

    def forward(self, x: Tensor, target: Tensor) -> TargetLogProbabilities:
        """Rows of shape (batch, in_features) with targets (batch,), or one row and its target.

        A target that is no class has NaN, and so has the loss.

        Raises:
          ValueError: if the shapes do not fit.
          TypeError: if the targets are no integers.
        """
        if not dtypes.is_int(target.dtype):
            raise TypeError(f"AdaptiveLogSoftmaxWithLoss: targets are integers, got a tensor of {target.dtype.name}")
        if x.ndim not in (1, 2) or x.shape[-1] != self.in_features or target.shape != x.shape[:-1]:
            raise ValueError(
                f"AdaptiveLogSoftmaxWithLoss: input of shape {x.shape} with targets {target.shape}; "
                f"(batch, {self.in_features}) with (batch,), or without a batch, is wanted"
            )
        classes = target.cast(dtypes.int32 if target.dtype.itemsize < 4 else dtypes.int64).unsqueeze(-1)
        head = self.head(x).log_softmax(-1)
        place = classes
        for i, begin in enumerate(self.cutoffs[:-1]):
            place = (classes >= begin).where(self.shortlist_size + i, place)
        inside = (classes >= 0) & (classes < self.n_classes)
        output = head.gather(-1, inside.where(place, 0))
        for cluster, begin, end in zip(self.tail, self.cutoffs, self.cutoffs[1:], strict=False):
            own = (classes >= begin) & (classes < end)
            logs = cluster(x).log_softmax(-1).gather(-1, own.where(classes - begin, 0))
            output = output + own.where(logs, 0)
        output = inside.where(output, float("nan")).squeeze(-1)
        return TargetLogProbabilities(output, -output.mean())

    def log_prob(self, x: Tensor) -> Tensor:
        """Log probabilities of all classes: shape (…, in_features) to (…, n_classes).

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.AdaptiveLogSoftmaxWithLoss(16, 20, [4, 10]).log_prob(Tensor.ones(2, 16)).exp().sum(-1).round(4)
          Tensor([1., 1.])
        """
        head = self.head(x).log_softmax(-1)
        parts = [head[..., : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            at = self.shortlist_size + i
            parts.append(cluster(x).log_softmax(-1) + head[..., at : at + 1])
        return parts[0].cat(*parts[1:], dim=-1)

    def predict(self, x: Tensor) -> Tensor:
        """The likeliest class of each row: shape (…, in_features) to (…).

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.AdaptiveLogSoftmaxWithLoss(16, 20, [4, 10]).predict(Tensor.ones(2, 16)).shape
          (2,)
        """
        return self.log_prob(x).argmax(-1)
