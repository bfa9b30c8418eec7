"""Losses of regression: distances from a target, and likelihoods of counts and of normal variables."""

from __future__ import annotations

import math

from ..array.array import A
from ..array.casts import floating, negatable
from ..array.operands import as_tensor
from .elementary import exp, log, square
from .elementwise import clip
from .loss import checked, difference, reduced, same_shape


def _weighted(loss: A, weight: A | None, reduction: str, what: str) -> A:
    """Losses as the reduction says, each as often as its weight says."""
    if weight is None:
        return reduced(loss, reduction)
    weight = same_shape(loss, weight, what)
    return (loss * weight).sum() / weight.sum() if reduction == "mean" else reduced(loss * weight, reduction)


def l1_loss(x: A, target: A, reduction: str = "mean", weight: A | None = None) -> A:
    """abs(x - target).

    Args:
      target: of the shape of x.
      reduction: "mean", "sum" or "none".
      weight: of the shape of x: what each distance counts, of which the mean is weighted.

    Raises:
      ValueError: if the shapes differ, or there is no such reduction.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).l1_loss(Tensor([3.0, 2.0]))
      Tensor(1.)
    """
    checked("l1_loss", reduction)
    return _weighted(difference(x, target, "l1_loss").abs(), weight, reduction, "l1_loss")


def mse_loss(x: A, target: A, reduction: str = "mean", weight: A | None = None) -> A:
    """(x - target) squared.

    Args:
      target: of the shape of x.
      reduction: "mean", "sum" or "none".
      weight: of the shape of x: what each square counts, of which the mean is weighted.

    Raises:
      ValueError: if the shapes differ, or there is no such reduction.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).mse_loss(Tensor([3.0, 2.0]))
      Tensor(2.)
    """
    checked("mse_loss", reduction)
    return _weighted(square(floating(difference(x, target, "mse_loss"))), weight, reduction, "mse_loss")


def huber_loss(
    x: A, target: A, reduction: str = "mean", delta: float = 1.0, weight: A | None = None
) -> A:
    """Half the squared distance, beyond ``delta`` a line: delta * (distance - delta / 2).

    Args:
      target: of the shape of x.
      reduction: "mean", "sum" or "none".
      delta: where the parabola ends.
      weight: of the shape of x: what each element counts, of which the mean is weighted.

    Raises:
      ValueError: if the shapes differ, there is no such reduction, or ``delta`` is not positive.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).huber_loss(Tensor([1.5, 5.0]), reduction="none")
      Tensor([0.125, 2.5  ])
    """
    checked("huber_loss", reduction)
    if not delta > 0:
        raise ValueError(f"huber_loss: delta {delta!r} is not positive")
    size = difference(x, target, "huber_loss").abs()
    loss = (size < delta).where(square(size) * 0.5, (size - 0.5 * delta) * delta)
    return _weighted(loss, weight, reduction, "huber_loss")


def smooth_l1_loss(x: A, target: A, reduction: str = "mean", beta: float = 1.0) -> A:
    """The distance less half of ``beta``; below ``beta`` a parabola, distance ** 2 / (2 * beta).

    Args:
      target: of the shape of x.
      reduction: "mean", "sum" or "none".
      beta: where the parabola ends; 0 for none.

    Raises:
      ValueError: if the shapes differ, there is no such reduction, or ``beta`` is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).smooth_l1_loss(Tensor([1.5, 5.0]), reduction="none")
      Tensor([0.125, 2.5  ])
    """
    checked("smooth_l1_loss", reduction)
    if not beta >= 0:
        raise ValueError(f"smooth_l1_loss: beta {beta!r} is negative")
    size = difference(x, target, "smooth_l1_loss").abs()
    if beta == 0:
        return reduced(size, reduction)
    return reduced((size < beta).where(square(size) * (0.5 / beta), size - 0.5 * beta), reduction)


def poisson_nll_loss(
    x: A, target: A, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
) -> A:
    """-log of the probability of counts ``target`` under Poisson distributions of rate exp(x), without constants.

    Args:
      target: counts, of the shape of x.
      log_input: x are logarithms of rates; else the rates, to which ``eps`` is added before the logarithm.
      full: add Stirling's approximation of log(target!) where the count is above 1.
      reduction: "mean", "sum" or "none".

    Raises:
      ValueError: if the shapes differ, or there is no such reduction.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).poisson_nll_loss(Tensor([2.0, 3.0]), reduction="none").round(4)
      Tensor([ 1.    , -0.2817])
    """
    checked("poisson_nll_loss", reduction)
    count = same_shape(x, target, "poisson_nll_loss")
    loss = exp(x) - count * x if log_input else x - count * log(x + eps)
    if full:
        some = (count > 1).where(count, 1)
        stirling = some * log(some) - some + log(some * (2 * math.pi)) * 0.5
        loss = loss + (count > 1).where(stirling, 0)
    return reduced(loss, reduction)


def gaussian_nll_loss(
    x: A, target: A, var: A, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> A:
    """-log of the density of ``target`` under normal distributions of mean x and variance ``var``.

    Args:
      target: of the shape of x, or one that broadcasts with it.
      var: variances; taken as ``eps`` where they are less, and then without gradient. They broadcast, but for those
        of x's shape without its last axis: each of them is for a row.
      full: add log(2 * pi) / 2.
      reduction: "mean", "sum" or "none".

    Raises:
      ValueError: if the shapes do not broadcast, or there is no such reduction.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0]).gaussian_nll_loss(Tensor([2.0]), Tensor([4.0])).round(4)
      Tensor(1.1931)
    """
    checked("gaussian_nll_loss", reduction)
    if not isinstance(var, (int, float)) and x.ndim and var.shape == x.shape[:-1]:
        var = var.unsqueeze(-1)
    spread = clip(as_tensor(x, var, "gaussian_nll_loss"), eps)
    loss = (log(spread) + square(as_tensor(x, target, "gaussian_nll_loss") - x) / spread) * 0.5
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def kl_div(x: A, target: A, reduction: str = "mean", log_target: bool = False) -> A:
    """target * (log(target) - x): the divergence of distributions whose logarithms are x from ``target``.

    Args:
      target: probabilities, of the shape of x; or their logarithms.
      reduction: "mean", "sum", "none", or "batchmean": the sum over the length of the first axis.
      log_target: ``target`` are logarithms.

    Raises:
      ValueError: if the shapes differ, or there is no such reduction.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.5, 0.5]]).log().kl_div(Tensor([[0.25, 0.75]]), reduction="batchmean").round(4)
      Tensor(0.1308)
    """
    if reduction != "batchmean":
        checked("kl_div", reduction)
    y = same_shape(x, target, "kl_div")
    if log_target:
        loss = exp(y) * (negatable(y) - negatable(x))
    else:
        some = y.ne(0)
        loss = some.where(y * (log(some.where(y, 1)) - x), 0)
    if reduction != "batchmean":
        return reduced(loss, reduction)
    return loss.sum() / (x.shape[0] if x.ndim else 1)
