"""Losses and distances, as objects that remember their settings."""

from __future__ import annotations

from ..tensor import Tensor
from . import functional
from .applied import Applied


class L1Loss(Applied):
    """The mean of abs(x - target). See :meth:`tg_frontend.Tensor.l1_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.L1Loss()(Tensor([1.0, 2.0]), Tensor([3.0, 2.0]))
      Tensor(1.)
    """

    _method = Tensor.l1_loss
    positional = ("size_average", "reduce", "reduction")


class MSELoss(Applied):
    """The mean of (x - target) squared. See :meth:`tg_frontend.Tensor.mse_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.MSELoss()(Tensor([1.0, 2.0]), Tensor([3.0, 2.0]))
      Tensor(2.)
    """

    _method = Tensor.mse_loss
    positional = ("size_average", "reduce", "reduction")


class HuberLoss(Applied):
    """The mean of a parabola near 0 and a line beyond ``delta`` (1). See :meth:`tg_frontend.Tensor.huber_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.HuberLoss()(Tensor([1.0, 2.0]), Tensor([3.0, 2.0]))
      Tensor(0.75)
    """

    _method = Tensor.huber_loss


class SmoothL1Loss(Applied):
    """The mean of distances, rounded below ``beta`` (1). See :meth:`tg_frontend.Tensor.smooth_l1_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.SmoothL1Loss()(Tensor([1.0, 2.0]), Tensor([3.0, 2.0]))
      Tensor(0.75)
    """

    _method = Tensor.smooth_l1_loss
    positional = ("size_average", "reduce", "reduction", "beta")


class PoissonNLLLoss(Applied):
    """-log of the probability of counts under Poisson distributions of rate exp(x). See
    :meth:`tg_frontend.Tensor.poisson_nll_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.PoissonNLLLoss()(Tensor([0.0]), Tensor([2.0]))
      Tensor(1.)
    """

    _method = Tensor.poisson_nll_loss
    positional = ("log_input", "full", "size_average", "eps", "reduce", "reduction")


class GaussianNLLLoss(Applied):
    """-log of the density of the target under normal distributions of mean x and given variance. See
    :meth:`tg_frontend.Tensor.gaussian_nll_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.GaussianNLLLoss()(Tensor([0.0]), Tensor([2.0]), Tensor([4.0])).round(4)
      Tensor(1.1931)
    """

    _method = Tensor.gaussian_nll_loss
    positional = ()


class KLDivLoss(Applied):
    """The divergence of distributions whose logarithms are x from the target. See :meth:`tg_frontend.Tensor.kl_div`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.KLDivLoss(reduction="sum")(Tensor([0.5, 0.5]).log(), Tensor([0.25, 0.75])).round(4)
      Tensor(0.1308)
    """

    _method = Tensor.kl_div
    positional = ("size_average", "reduce", "reduction", "log_target")


class NLLLoss(Applied):
    """-x[class] of logarithms of probabilities. See :meth:`tg_frontend.Tensor.nll_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.NLLLoss()(Tensor([[0.5, 0.5]]).log(), Tensor([1])).round(4)
      Tensor(0.6931)
    """

    _method = Tensor.nll_loss
    positional = ("weight", "size_average", "ignore_index", "reduce", "reduction")


class CrossEntropyLoss(Applied):
    """-log softmax(x)[class]. See :meth:`tg_frontend.Tensor.cross_entropy`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.CrossEntropyLoss()(Tensor([[0.0, 2.0]]), Tensor([1])).round(4)
      Tensor(0.1269)
    """

    _method = functional.cross_entropy
    positional = ("weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing")


class BCELoss(Applied):
    """The binary cross entropy of probabilities. See :meth:`tg_frontend.Tensor.binary_crossentropy`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.BCELoss()(Tensor([0.5]), Tensor([1.0])).round(4)
      Tensor(0.6931)
    """

    _method = Tensor.binary_crossentropy
    positional = ("weight", "size_average", "reduce", "reduction")


class BCEWithLogitsLoss(Applied):
    """The binary cross entropy of sigmoid(x). See :meth:`tg_frontend.Tensor.binary_crossentropy_logits`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.BCEWithLogitsLoss()(Tensor([0.0]), Tensor([1.0])).round(4)
      Tensor(0.6931)
    """

    _method = Tensor.binary_crossentropy_logits
    positional = ("weight", "size_average", "reduce", "reduction", "pos_weight")


class MarginRankingLoss(Applied):
    """max(0, -target * (x - other) + margin). See :meth:`tg_frontend.Tensor.margin_ranking_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.MarginRankingLoss()(Tensor([1.0]), Tensor([3.0]), Tensor([1.0]))
      Tensor(2.)
    """

    _method = Tensor.margin_ranking_loss
    positional = ("margin", "size_average", "reduce", "reduction")


class HingeEmbeddingLoss(Applied):
    """x where the target is 1, max(0, margin - x) where it is -1. See :meth:`tg_frontend.Tensor.hinge_embedding_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.HingeEmbeddingLoss()(Tensor([0.25]), Tensor([-1]))
      Tensor(0.75)
    """

    _method = Tensor.hinge_embedding_loss
    positional = ("margin", "size_average", "reduce", "reduction")


class SoftMarginLoss(Applied):
    """log(1 + exp(-target * x)). See :meth:`tg_frontend.Tensor.soft_margin_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.SoftMarginLoss()(Tensor([0.0]), Tensor([1.0])).round(4)
      Tensor(0.6931)
    """

    _method = Tensor.soft_margin_loss
    positional = ("size_average", "reduce", "reduction")


class CosineEmbeddingLoss(Applied):
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1. See
    :meth:`tg_frontend.Tensor.cosine_embedding_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.CosineEmbeddingLoss()(Tensor([[1.0, 0.0]]), Tensor([[0.0, 1.0]]), Tensor([1]))
      Tensor(1.)
    """

    _method = Tensor.cosine_embedding_loss
    positional = ("margin", "size_average", "reduce", "reduction")


class TripletMarginLoss(Applied):
    """max(0, distance to the positive - distance to the negative + margin). See
    :meth:`tg_frontend.Tensor.triplet_margin_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.TripletMarginLoss()(Tensor([[0.0]]), Tensor([[3.0]]), Tensor([[4.0]])).round(3)
      Tensor(0.)
    """

    _method = Tensor.triplet_margin_loss
    positional = ("margin", "p", "eps", "swap", "size_average", "reduce", "reduction")


class MultiMarginLoss(Applied):
    """The mean over other classes of max(0, margin - x[target] + x[class]) ** p. See
    :meth:`tg_frontend.Tensor.multi_margin_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.MultiMarginLoss()(Tensor([[0.1, 0.9]]), Tensor([1])).round(4)
      Tensor(0.1)
    """

    _method = Tensor.multi_margin_loss
    positional = ("p", "margin", "weight", "size_average", "reduce", "reduction")


class MultiLabelSoftMarginLoss(Applied):
    """The mean over labels of the binary cross entropy of sigmoid(x). See
    :meth:`tg_frontend.Tensor.multilabel_soft_margin_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.MultiLabelSoftMarginLoss()(Tensor([[0.0]]), Tensor([[1.0]])).round(4)
      Tensor(0.6931)
    """

    _method = Tensor.multilabel_soft_margin_loss
    positional = ("weight", "size_average", "reduce", "reduction")


class CosineSimilarity(Applied):
    """The cosine of the angle between vectors along an axis (1). See :meth:`tg_frontend.Tensor.cosine_similarity`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.CosineSimilarity()(Tensor([[1.0, 0.0]]), Tensor([[1.0, 1.0]])).round(4)
      Tensor([0.7071])
    """

    _method = Tensor.cosine_similarity


class PairwiseDistance(Applied):
    """The norm of the difference of vectors along the last axis. See :meth:`tg_frontend.Tensor.pairwise_distance`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.PairwiseDistance()(Tensor([[0.0, 0.0]]), Tensor([[3.0, 4.0]])).round(3)
      Tensor([5.])
    """

    _method = Tensor.pairwise_distance
    names = {"norm": "p"}


class CTCLoss(Applied):
    """-log of the probability of label sequences, over all alignments. See :func:`tg_frontend.nn.functional.ctc_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.CTCLoss()(Tensor.zeros(3, 1, 2).log_softmax(-1), Tensor([[1]]), [3], [1]).round(4)
      Tensor(0.2877)
    """

    _method = functional.ctc_loss
    positional = ("blank", "reduction", "zero_infinity")


class MultiLabelMarginLoss(Applied):
    """Margins between the scores of labels and of other classes. See
    :func:`tg_frontend.nn.functional.multilabel_margin_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.MultiLabelMarginLoss()(Tensor([[0.1, 0.2, 0.4, 0.8]]), Tensor([[3, 0, -1, 1]])).round(4)
      Tensor(0.85)
    """

    _method = functional.multilabel_margin_loss
    positional = ("size_average", "reduce", "reduction")


class TripletMarginWithDistanceLoss(Applied):
    """max(0, distance to the positive - distance to the negative + margin) of any distance. See
    :func:`tg_frontend.nn.functional.triplet_margin_with_distance_loss`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.TripletMarginWithDistanceLoss()(Tensor([[0.0]]), Tensor([[3.0]]), Tensor([[4.0]])).round(3)
      Tensor(0.)
    """

    _method = functional.triplet_margin_with_distance_loss
    positional = ()
