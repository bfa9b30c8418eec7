"""Losses that are no methods of Tensor."""

from __future__ import annotations

import math

from tg_dtype import dtypes

from ...array.reading import is_at_hand
from ...ops.loss import checked, reduced
from ...tensor import Tensor
from .arranged import cross_entropy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NO_CLASS = -100
"""The class that does not count, where none is given: as PyTorch has it."""
_LOW = -1e30  # the logarithm of what cannot be; finite, so that gradients through it are none and not NaN


def multilabel_margin_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The mean over classes of max(0, 1 - x[label] + x[other]), summed over labels and over other classes.

    Args:
      x: shape (batch, classes) or (classes,).
      target: class numbers of that shape; those before the first negative one are labels.
      reduction: "mean", "sum" or "none".

    Raises:
      ValueError: if the shapes differ, or there is no such reduction.
      TypeError: if the target holds no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.multilabel_margin_loss(Tensor([[0.1, 0.2, 0.4, 0.8]]), Tensor([[3, 0, -1, 1]])).round(4)
      Tensor(0.85)
    """
    what = "multilabel_margin_loss"
    checked(what, reduction)
    if x.shape != target.shape or x.ndim > 2:
        raise ValueError(f"{what}: scores of shape {x.shape} and classes of shape {target.shape}; [batch,] classes fit")
    if not dtypes.is_int(target.dtype):
        raise TypeError(f"{what}: classes are integers, got a tensor of {target.dtype.name}")
    if x.ndim == 0:
        x, target = x.reshape(1), target.reshape(1)
    classes = x.shape[-1]
    counts = (target >= 0).cast(dtypes.int32).cumprod(-1).cast("bool")
    numbers = Tensor.arange(classes, device=x.device)
    label = counts.unsqueeze(-1) & target.unsqueeze(-1).eq(numbers)
    other = label.any(-2).logical_not()
    scores = label.where(x.unsqueeze(-2), 0).sum(-1)
    pairs = (1 - scores.unsqueeze(-1) + x.unsqueeze(-2)).relu()
    loss = (counts.unsqueeze(-1) & other.unsqueeze(-2)).where(pairs, 0).sum((-1, -2)) / classes
    return reduced(loss, reduction)


def triplet_margin_with_distance_loss(
    x: Tensor, positive: Tensor, negative: Tensor, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, distance to ``positive`` - distance to ``negative`` + margin), of any distance.

    Args:
      x: the anchors.
      distance_function: of two tensors; ``Tensor.pairwise_distance`` if not given.
      margin: by how much nearer the positive one is to be.
      swap: take the distance between positive and negative where that is less than from the anchor.
      reduction: "mean", "sum" or "none".

    Raises:
      ValueError: if there is no such reduction, or the margin is not positive.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> a, b, c = Tensor([[0.0]]), Tensor([[3.0]]), Tensor([[2.0]])
      >>> F.triplet_margin_with_distance_loss(a, b, c, lambda x, y: (x - y).abs().sum(-1))
      Tensor(2.)
    """
    what = "triplet_margin_with_distance_loss"
    checked(what, reduction)
    if not margin > 0:
        raise ValueError(f"{what}: margin {margin!r} is not positive")
    distance = Tensor.pairwise_distance if distance_function is None else distance_function
    near, far = distance(x, positive), distance(x, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((near - far + margin).relu(), reduction)


def _lengths(given: Tensor | Sequence[int] | int, like: Tensor) -> Tensor:
    found = given if isinstance(given, Tensor) else Tensor(given, device=like.device)
    return found.cast(dtypes.int32).reshape(-1)


def _check_lengths(given: Tensor | Sequence[int] | int, most: int, what: str, of: str) -> None:
    """Refuses lengths that are known without computing anything, and beyond what there is.

    Raises:
      ValueError: if one is negative or too large.
    """
    known = (
        (given.reshape(-1).tolist() if is_at_hand(given) else [])
        if isinstance(given, Tensor) else [given] if isinstance(given, int) else list(given)
    )  # fmt: skip
    wrong = next((n for n in known if not 0 <= n <= most), None)
    if wrong is not None:
        raise ValueError(f"{what}: {wrong} of {most} {of}")


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[int], target_lengths: Tensor | Sequence[int],
    blank: int = 0, reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """-log of the probability of label sequences, over all their alignments with the inputs (Graves et al. 2006).

    Args:
      log_probs: shape (steps, batch, classes) or (steps, classes): logarithms of probabilities.
      targets: shape (batch, labels), or all labels one after another.
      input_lengths: steps of each example.
      target_lengths: labels of each example.
      blank: the class that is no label.
      reduction: "mean" (of each loss over its number of labels), "sum" or "none".
      zero_infinity: 0 instead of infinity where there is no alignment.

    Raises:
      ValueError: if the shapes do not fit, there is no such class ``blank`` or no such reduction, or a length is beyond
        the steps or labels that there are: if it is known, in a list or in memory of the host. Else the loss is NaN.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.ctc_loss(Tensor.zeros(3, 1, 2).log_softmax(-1), Tensor([[1]]), [3], [1]).round(4)
      Tensor(0.2877)
    """
    what = "ctc_loss"
    checked(what, reduction)
    if log_probs.ndim == 2:
        loss = ctc_loss(
            log_probs.unsqueeze(1), targets.reshape(1, -1), input_lengths, target_lengths, blank, "none", zero_infinity
        )
        if reduction == "mean":
            loss = loss / _lengths(target_lengths, log_probs).maximum(1).cast(loss.dtype)
        return loss.squeeze(0)
    if log_probs.ndim != 3 or not 0 <= blank < log_probs.shape[2]:
        raise ValueError(f"{what}: log_probs of shape {log_probs.shape}, blank {blank}; (steps, batch, classes) fits")
    steps, batch, _ = (int(dim) for dim in log_probs.shape)
    ends, counts = _lengths(input_lengths, log_probs), _lengths(target_lengths, log_probs)
    if ends.shape != (batch,) or counts.shape != (batch,):
        raise ValueError(f"{what}: lengths of shapes {ends.shape} and {counts.shape} for {batch} examples")
    _check_lengths(input_lengths, steps, f"{what}: input_lengths", "steps")
    given = (ends >= 0) & (ends <= steps) & (counts >= 0)
    if targets.ndim == 1:
        begins = counts.cumsum(0) - counts
        _check_lengths(target_lengths, int(targets.shape[0]), f"{what}: target_lengths", "labels")
        given = given & (begins + counts <= int(targets.shape[0]))
        longest = max(1, int(counts.max().item()) if batch else 1)
        places = begins.unsqueeze(1) + Tensor.arange(longest, device=log_probs.device)
        places = places.minimum(max(0, int(targets.shape[0]) - 1))
        targets = targets[places] if targets.shape[0] else Tensor.zeros(batch, longest, dtype=targets.dtype)
    if targets.ndim != 2 or targets.shape[0] != batch:
        raise ValueError(f"{what}: targets of shape {targets.shape} for {batch} examples")
    labels = int(targets.shape[1])
    given = given & (counts <= labels)
    _check_lengths(target_lengths, labels, f"{what}: target_lengths", "labels")
    known = Tensor.arange(labels, device=log_probs.device) < counts.unsqueeze(1)
    inner = known.where(targets, blank).cast(dtypes.int32).unsqueeze(2)
    # blank, label, blank, label, …, blank
    path = inner.full_like(blank).cat(inner, dim=2).reshape(batch, 2 * labels).pad([None, (0, 1)], value=blank)
    width = 2 * labels + 1
    place = Tensor.arange(width, device=log_probs.device)
    skips = (path.ne(path.pad([None, (2, 0)], value=blank)[:, :width]) & path.ne(blank)) & (place >= 2)
    scores = log_probs.maximum(_LOW).gather(2, path.unsqueeze(0).expand(steps, batch, width).contiguous())
    alpha = (place < 2).where(scores[0], _LOW)
    alpha = (place <= 2 * counts.unsqueeze(1)).where(alpha, _LOW)
    alpha = (ends > 0).unsqueeze(1).where(alpha, place.eq(0).where(0.0, _LOW))  # nothing is heard: there is no label
    for step in range(1, steps):
        one = alpha.pad([None, (1, 0)], value=_LOW)[:, :width]
        two = skips.where(alpha.pad([None, (2, 0)], value=_LOW)[:, :width], _LOW)
        most = alpha.maximum(one).maximum(two).detach()
        total = ((alpha - most).exp() + (one - most).exp() + (two - most).exp()).log() + most
        alpha = (ends > step).unsqueeze(1).where((total + scores[step]).maximum(_LOW), alpha)
    last = place.eq(2 * counts.unsqueeze(1)) | place.eq(2 * counts.unsqueeze(1) - 1)
    loss = -last.where(alpha, _LOW).logsumexp(1)
    loss = (loss >= -_LOW / 2).where(0.0 if zero_infinity else math.inf, loss)
    loss = given.where(loss, math.nan)
    if reduction == "mean":
        return (loss / counts.maximum(1).cast(loss.dtype)).mean()
    return reduced(loss, reduction)


def linear_cross_entropy(
    x: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: None = None,
) -> Tensor:  # fmt: skip
    """:func:`cross_entropy` of x @ linear_weight.T + linear_bias.

    Args:
      x: shape ([batch,] inputs).
      linear_weight: shape (classes, inputs); or (classes, *features, inputs) for so many losses of each example.
      target: classes, shape ([batch,] *features); or their probabilities, shape ([batch,] classes, *features).
      linear_bias: shape (classes, *features).
      weight: of each class, shape (classes,).
      reduction: ``"mean"``, ``"sum"`` or ``"none"``.
      ignore_index: the class that does not count; -100 if not given.
      label_smoothing: the share of the target that is spread over all classes.
      options: None alone: results are fused and kept as the scheduler plans, not by settings.

    Raises:
      ValueError: if the shapes do not fit, or ``options`` are given.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> x, weight = Tensor([[1.0, 2.0], [0.0, 1.0]]), Tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
      >>> F.linear_cross_entropy(x, weight, Tensor([2, 0])).round(4)
      Tensor(1.1348)
    """
    what = "linear_cross_entropy"
    if options is not None:
        raise ValueError(f"{what}: there are no options; leave them out")
    classes, *features = linear_weight.shape[:-1] if linear_weight.ndim > 1 else (0,)
    bias_fits = linear_bias is None or linear_bias.shape == (classes, *features)
    fits = linear_weight.ndim > 1 and x.ndim in ((2,) if features else (1, 2)) and bias_fits
    if not fits or x.shape[-1] != linear_weight.shape[-1]:
        bias = "" if linear_bias is None else f" and linear_bias of shape {linear_bias.shape}"
        raise ValueError(f"{what}: x of shape {x.shape}, linear_weight of shape {linear_weight.shape}{bias}")
    flat = linear_weight.reshape(classes * math.prod(features), x.shape[-1])
    logits = x.linear(flat.T, None if linear_bias is None else linear_bias.reshape(-1))
    if features:
        logits = logits.reshape(x.shape[0], classes, *features)
    ignored = NO_CLASS if ignore_index is None else ignore_index
    return cross_entropy(logits, target, weight, ignored, reduction, label_smoothing)
