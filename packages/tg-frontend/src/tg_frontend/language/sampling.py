"""The choice of the next token from its logits."""

from __future__ import annotations

import math
from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy as np

    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]


FEW = 64
"""Tokens that are put in order first, where the likeliest are looked for; each time too few, as many times more."""


class Sampler:
    """How tokens are chosen: the likeliest, or one drawn from what is left of the distribution.

    Penalties come first, then the temperature; then tokens are left out by ``top_k``, ``top_p`` and ``min_p``, in this
    order, each of what the one before left.

    Args:
      temperature: what logits are divided by; 0 takes the likeliest token.
      top_k: how many of the likeliest stay; 0 for all.
      top_p: the least likely go, as long as those that stay have this share of the probability; 1 for all.
      min_p: those go that are less likely than this share of the likeliest's probability.
      repetition_penalty: logits of tokens that were there are divided by it where they are positive, and multiplied
        where they are negative. 1 for no penalty.
      last: of how many tokens before that holds; 0 for all.
      seed: from which tokens are drawn; None for another each time.

    Raises:
      ValueError: if a number is out of its range.

    Example:
      >>> from tg_frontend.language import Sampler
      >>> import numpy as np
      >>> logits = np.array([1.0, 3.0, 2.0], np.float32)
      >>> Sampler().choose(logits), Sampler(temperature=1.0, top_k=1).choose(logits)
      (1, 1)
    """

    def __init__(
        self,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        last: int = 64,
        seed: int | None = None,
    ) -> None:
        ranges = (
            ("temperature", temperature, 0.0 <= temperature < math.inf, "from 0 on"),
            ("top_k", top_k, top_k >= 0, "from 0 on"),
            ("top_p", top_p, 0.0 < top_p <= 1.0, "above 0 and up to 1"),
            ("min_p", min_p, 0.0 <= min_p <= 1.0, "from 0 to 1"),
            ("repetition_penalty", repetition_penalty, 0.0 < repetition_penalty < math.inf, "above 0"),
            ("last", last, last >= 0, "from 0 on"),
            ("seed", seed, seed is None or seed >= 0, "from 0 on"),
        )
        for name, value, good, wanted in ranges:
            if not good:
                raise ValueError(f"Sampler: {name}={value!r}: it is a number {wanted}")
        self.temperature, self.top_k, self.top_p, self.min_p = temperature, top_k, top_p, min_p
        self.repetition_penalty, self.last, self.seed = repetition_penalty, last, seed
        self._random: np.random.Generator | None = None

    def choose(self, logits: Floats, before: Sequence[int] = ()) -> int:
        """The next token.

        Args:
          logits: shape (vocabulary,), float32; is not changed.
          before: the tokens so far, for the penalty.

        Raises:
          ValueError: if a logit is NaN, or all are -inf; with a penalty, if one of ``before`` is not in the vocabulary.

        Example:
          >>> import numpy as np
          >>> logits = np.array([1.0, 3.0, 2.0], np.float32)
          >>> Sampler(repetition_penalty=2.0).choose(logits, before=[1])
          2
        """
        import numpy as np

        best = int(logits.argmax())  # a NaN, if there is one
        if not logits[best] > -math.inf:
            raise ValueError(f"Sampler: the greatest of {logits.size} logits is {float(logits[best])}")
        scores = logits
        if self.repetition_penalty != 1.0 and before:
            seen = np.unique(np.asarray(before[-self.last :], np.int64))
            if not 0 <= seen[0] <= seen[-1] < logits.size:
                wrong = seen[0] if seen[0] < 0 else seen[-1]
                raise ValueError(f"Sampler: before has token {wrong}, of a vocabulary of {logits.size}")
            scores = logits.copy()
            scores[seen] = self._penalised(scores[seen])
            best = int(scores.argmax())
        if self.temperature == 0:
            return best
        tokens, chances = self._left(scores, best)
        if self._random is None:
            self._random = np.random.default_rng(self.seed)
        bounds = np.cumsum(chances)
        place = int(np.searchsorted(bounds, self._random.random() * bounds[-1], side="right"))
        return int(tokens[min(place, len(tokens) - 1)])

    def _penalised(self, scores: Floats) -> Any:
        """The scores of tokens that are there; those that the penalty takes past the floats stay finite.

        An infinite one would be as likely as a token that was ruled out, or as one more likely than it.
        """
        import numpy as np

        with np.errstate(over="ignore"):
            found = np.where(scores > 0, scores / self.repetition_penalty, scores * self.repetition_penalty)
        most = np.finfo(found.dtype).max
        return np.where(np.isfinite(scores), found.clip(-most, most), scores)

    def _left(self, scores: Floats, best: int) -> tuple[Any, Any]:
        """The tokens that are left, and the chance of each by that of ``best``, which is the greatest; none is 0.

        No more tokens are put in order than it takes: of a large vocabulary that would be most of the work.
        """
        import numpy as np

        size, greatest = scores.size, float(scores[best])
        whole = not 0 < self.top_k < size
        tokens = np.arange(size) if whole else _likeliest(scores, self.top_k)
        among = scores[tokens].astype(np.float64)
        by = np.zeros(len(tokens))
        np.subtract(among, greatest, out=by, where=among != greatest)  # infinities have no difference
        chances = np.exp(by / self.temperature)
        if self.top_p < 1.0:
            share, count = self.top_p * chances.sum(), FEW
            if whole:
                every = chances
                while True:
                    tokens = _likeliest(scores, min(count, size))
                    chances = every[tokens]
                    if count >= size or chances.sum() >= share:
                        break
                    count *= FEW
            held = int(np.searchsorted(np.cumsum(chances), share)) + 1
            tokens, chances = tokens[:held], chances[:held]
        left = (chances > 0.0) & (chances >= self.min_p)
        return tokens[left], chances[left]


def _likeliest(scores: Floats, count: int) -> Any:
    """The numbers of the ``count`` greatest scores, the greatest first; of equals the first."""
    import numpy as np

    size = scores.size
    if count == size:
        return np.argsort(-scores, kind="stable")
    least = np.partition(scores, size - count)[size - count]
    some = np.flatnonzero(scores >= least)
    return some[np.argsort(-scores[some], kind="stable")][:count]
