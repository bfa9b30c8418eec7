"""Losses with a margin: of scores that are to be ordered, of pairs and triples, of many labels."""

from __future__ import annotations

from ..array.array import A
from ..array.axes import counter
from ..array.casts import floating, negatable
from ..array.operands import as_tensor
from .activation import logsigmoid, relu, softplus
from .loss import checked, class_numbers, picked, reduced, same_shape
from .similarity import cosine_similarity, pairwise_distance


def margin_ranking_loss(x: A, other: A, target: A, margin: float = 0.0, reduction: str = "mean") -> A:
    """max(0, -target * (x - other) + margin): 0 where x leads by the margin, or other if the target is -1.

    Args:
      target: 1 where x is to be greater, -1 where other is.
      reduction: "mean", "sum" or "none".

    Raises:
      ValueError: if the shapes do not broadcast, or there is no such reduction.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).margin_ranking_loss(Tensor([0.0, 5.0]), Tensor([1.0, 1.0]))
      Tensor(1.5)
    """
    checked("margin_ranking_loss", reduction)
    lead = negatable(x) - negatable(as_tensor(x, other, "margin_ranking_loss"))
    y = as_tensor(x, target, "margin_ranking_loss")
    return reduced(relu(margin - y * lead), reduction)


def hinge_embedding_loss(x: A, target: A, margin: float = 1.0, reduction: str = "mean") -> A:
    """x where the target is 1, max(0, margin - x) where it is -1.

    Args:
      x: distances.
      target: 1 or -1, of the shape of x.
      reduction: "mean", "sum" or "none".

    Raises:
      ValueError: if the shapes differ, or there is no such reduction.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.5, 0.25]).hinge_embedding_loss(Tensor([1, -1]), reduction="none")
      Tensor([0.5 , 0.75])
    """
    checked("hinge_embedding_loss", reduction)
    y = same_shape(x, target, "hinge_embedding_loss")
    near = y.ne(1).where(relu(margin - x), 0)
    return reduced(near + y.ne(-1).where(x, 0), reduction)


def soft_margin_loss(x: A, target: A, reduction: str = "mean") -> A:
    """log(1 + exp(-target * x)).

    Args:
      target: 1 or -1, of the shape of x.
      reduction: "mean", "sum" or "none".

    Raises:
      ValueError: if the shapes differ, or there is no such reduction.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 100.0]).soft_margin_loss(Tensor([1.0, -1.0]), reduction="none").round(4)
      Tensor([  0.6931, 100.    ])
    """
    checked("soft_margin_loss", reduction)
    return reduced(softplus(-(same_shape(x, target, "soft_margin_loss") * floating(x))), reduction)


def cosine_embedding_loss(x: A, other: A, target: A, margin: float = 0.0, reduction: str = "mean") -> A:
    """1 - cosine of two vectors where the target is 1, max(0, cosine - margin) where it is -1.

    Args:
      x: vectors along the last axis.
      other: of the shape of x.
      target: 1 or -1, one for each pair.
      reduction: "mean", "sum" or "none".

    Raises:
      ValueError: if the shapes do not fit, or there is no such reduction.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 0.0]]).cosine_embedding_loss(Tensor([[0.0, 1.0]]), Tensor([1])).round(4)
      Tensor(1.)
    """
    checked("cosine_embedding_loss", reduction)
    cosine = cosine_similarity(x, other, dim=-1)
    y = same_shape(cosine, target, "cosine_embedding_loss")
    return reduced(y.eq(1).where(1 - cosine, relu(cosine - margin)), reduction)


def triplet_margin_loss(
    x: A, positive: A, negative: A, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
    reduction: str = "mean",
) -> A:  # fmt: skip
    """max(0, distance to ``positive`` - distance to ``negative`` + margin), of vectors along the last axis.

    Args:
      x: the anchors.
      margin: by how much nearer the positive one is to be.
      p: of the norm.
      eps: added to differences.
      swap: take the distance between positive and negative where that is less than from the anchor
        (Balntas et al. 2016).
      reduction: "mean", "sum" or "none".

    Raises:
      ValueError: if the shapes do not fit, there is no such reduction, or the margin is not positive.

    Example:
      >>> from tg_frontend import Tensor
      >>> a, b, c = Tensor([[0.0, 0.0]]), Tensor([[3.0, 4.0]]), Tensor([[0.0, 5.0]])
      >>> a.triplet_margin_loss(b, c).round(3)
      Tensor(1.)
    """
    checked("triplet_margin_loss", reduction)
    if not margin > 0:
        raise ValueError(f"triplet_margin_loss: margin {margin!r} is not positive")
    near, far = pairwise_distance(x, positive, p, eps), pairwise_distance(x, negative, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))
    return reduced(relu(near - far + margin), reduction)


def multi_margin_loss(
    x: A, target: A, p: int = 1, margin: float = 1.0, weight: A | None = None, reduction: str = "mean"
) -> A:
    """The mean over other classes of max(0, margin - x[target] + x[class]) ** p.

    Args:
      x: scores of classes along the last axis, of one row or of many.
      target: class numbers, one a row.
      p: 1 or 2.
      weight: of each class.
      reduction: "mean", "sum" or "none".

    Raises:
      ValueError: if the shapes do not fit, or there is no such reduction or ``p``.
      TypeError: if the classes are no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.1, 0.2, 0.4, 0.8]]).multi_margin_loss(Tensor([3])).round(4)
      Tensor(0.325)
    """
    what = "multi_margin_loss"
    checked(what, reduction)
    if x.ndim == 0:
        x, target = x.reshape((1,)), target.reshape(())
    if x.ndim == 1 and target.shape == (1,):
        target = target.reshape(())
    if p not in (1, 2) or not 1 <= x.ndim <= 2:
        raise ValueError(f"{what}: p is 1 or 2 and scores are a row or rows, got {p!r} and shape {x.shape}")
    axis = x.ndim - 1
    classes, _ = class_numbers(x, target, axis, None, what)
    own = picked(x, classes, axis, what).unsqueeze(axis)
    gap = relu(negatable(x) - negatable(own) + margin)
    gap = gap if p == 1 else gap * gap
    if weight is not None:
        gap = gap * picked(weight.expand(x.shape), classes, axis, what).unsqueeze(axis)
    others = counter(x, axis).ne(classes.unsqueeze(axis))
    loss: A = others.where(gap, 0).sum(axis) / x.shape[axis]
    return reduced(loss, reduction)


def multilabel_soft_margin_loss(x: A, target: A, weight: A | None = None, reduction: str = "mean") -> A:
    """The mean over labels of the binary cross entropy of sigmoid(x).

    Args:
      x: scores of labels along the last axis.
      target: 0 or 1, of the shape of x.
      weight: of each label.
      reduction: "mean", "sum" or "none".

    Raises:
      ValueError: if the shapes do not fit, or there is no such reduction.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0, 0.0]]).multilabel_soft_margin_loss(Tensor([[0.0, 1.0]])).round(4)
      Tensor(0.6931)
    """
    checked("multilabel_soft_margin_loss", reduction)
    x, y = floating(x), negatable(same_shape(x, target, "multilabel_soft_margin_loss"))
    loss = -(y * logsigmoid(x) + (1 - y) * logsigmoid(-x))
    return reduced((loss if weight is None else loss * weight).mean(-1), reduction)
