"""What the metadata of a GGUF file say of a transformer: sizes, and what sets its family apart.

Sources: the keys that ggml's ``docs/gguf.md`` lists, and the configurations of the models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """What all models of an architecture have in common, and no metadata say.

    Attributes:
      interleaved: whether a rotation turns neighbours, rather than an element of the first half with its like in the
        second. Converters to ``llama`` reorder the weights for it.
      gelu: whether the gate is a GELU, by the approximation through tanh, rather than a SiLU.
      scaled: whether embeddings are multiplied by the square root of their width.
      period: of each so many layers the last sees everything and the others a window; 1 where all see a window, if
        there is one; 0 where none does.
      wide: layers of the one model whose queries are scaled by what its width would give each head.
    """

    interleaved: bool = False
    gelu: bool = False
    scaled: bool = False
    period: int = 0
    wide: int = 0


FAMILIES = {
    "llama": Family(interleaved=True, period=1),
    "qwen2": Family(),
    "qwen3": Family(),
    "gemma": Family(gelu=True, scaled=True),
    "gemma2": Family(gelu=True, scaled=True, period=2, wide=46),
    "gemma3": Family(gelu=True, scaled=True, period=6, wide=62),
}
"""By ``general.architecture``. Mistral's models are of ``llama``."""

_LOCAL_BASE = 10_000.0


@dataclass(frozen=True)
class Rotation:
    """How positions turn queries and keys.

    Attributes:
      width: how many elements of a head are turned.
      base: the ratio of the longest wavelength to the shortest, nearly.
      scaling: ``none``, ``linear`` or ``yarn``.
      factor: by how much the context is longer than it was in training.
      original: the context in training, for ``yarn``.
      strength: what ``yarn`` multiplies queries and keys with, besides its own.
      fast, slow: turns within the original context, between which ``yarn`` goes over from one scaling to the other.
    """

    width: int
    base: float
    scaling: str = "none"
    factor: float = 1.0
    original: int = 0
    strength: float = 1.0
    fast: float = 32.0
    slow: float = 1.0


@dataclass(frozen=True)
class Description:
    """A transformer.

    Attributes:
      architecture: the name of its family.
      family: what that says.
      layers: how many.
      width: of what goes from layer to layer.
      heads: of queries.
      groups: heads of keys and values, each for as many heads of queries.
      head: the width of keys.
      value: the width of values.
      inner: the width between the two products of a feed-forward part.
      context: how many positions it was trained for.
      epsilon: that norms add to the mean square.
      rotation: of layers that see everything.
      local_rotation: of those that see a window.
      window: how many positions those see, their own among them; 0 if there are none.
      attention_cap: the bound of scores, 0 for none.
      logit_cap: the bound of logits, 0 for none.
      attention_scale: what scores are multiplied with.
      period: as that of the family, unless the metadata say otherwise.
    """

    architecture: str
    family: Family
    layers: int
    width: int
    heads: int
    groups: int
    head: int
    value: int
    inner: int
    context: int
    epsilon: float
    rotation: Rotation
    local_rotation: Rotation
    window: int
    attention_cap: float
    logit_cap: float
    attention_scale: float
    period: int

    def sees_window(self, layer: int) -> bool:
        """Whether a layer sees a window, rather than everything."""
        if not self.window or not self.period:
            return False
        return self.period == 1 or (layer + 1) % self.period != 0


class _Reader:
    """Takes numbers from metadata, whose keys begin with the architecture."""

    def __init__(self, metadata: Mapping[str, object], architecture: str) -> None:
        self.metadata, self.architecture = metadata, architecture

    def _found(self, name: str) -> object:
        return self.metadata.get(f"{self.architecture}.{name}")

    def whole(self, name: str, default: int | None = None, least: int = 1) -> int:
        found = self._found(name)
        if isinstance(found, list) and found and len(set(map(str, found))) == 1:
            found = found[0]  # one of each layer, and all alike
        if found is None and default is not None:
            return default
        if not isinstance(found, int) or isinstance(found, bool) or found < least:
            raise ValueError(f"language model: {self.architecture}.{name} is {found!r:.40}, no number from {least} on")
        return found

    def real(self, name: str, default: float | None = None) -> float:
        found = self._found(name)
        if found is None and default is not None:
            return default
        if not isinstance(found, (int, float)) or isinstance(found, bool) or not 0 <= found < float("inf"):
            raise ValueError(f"language model: {self.architecture}.{name} is {found!r:.40}, no number from 0 on")
        return float(found)

    def rotation(self, head: int) -> Rotation:
        kind = self._found("rope.scaling.type") or "none"
        if kind not in ("none", "linear", "yarn"):
            raise ValueError(f"language model: rope.scaling.type is {kind!r}; known are none, linear and yarn")
        width = self.whole("rope.dimension_count", head)
        if width > head or width % 2:
            raise ValueError(f"language model: rope.dimension_count is {width}; a head has {head} elements")
        return Rotation(
            width, self.real("rope.freq_base", 10_000.0), str(kind), self.real("rope.scaling.factor", 1.0) or 1.0,
            self.whole("rope.scaling.original_context_length", self.whole("context_length")),
            self.real("rope.scaling.attn_factor", 1.0), self.real("rope.scaling.yarn_beta_fast", 32.0),
            self.real("rope.scaling.yarn_beta_slow", 1.0),
        )  # fmt: skip


def describe(metadata: Mapping[str, object]) -> Description:
    """The transformer that metadata describe.

    Raises:
      ValueError: if it is of a family that is not known, or metadata are missing or do not fit together.
    """
    name = metadata.get("general.architecture")
    if not isinstance(name, str) or name not in FAMILIES:
        raise ValueError(f"language model: general.architecture is {name!r:.60}; known are {', '.join(FAMILIES)}")
    family, read = FAMILIES[name], _Reader(metadata, name)
    if read.whole("expert_count", 0, 0):
        raise ValueError("language model: mixtures of experts are not known here")
    width, heads, layers = read.whole("embedding_length"), read.whole("attention.head_count"), read.whole("block_count")
    groups = read.whole("attention.head_count_kv", heads)
    if heads % groups:
        raise ValueError(f"language model: {heads} heads of queries do not divide by {groups} of keys")
    head = read.whole("attention.key_length", max(width // heads, 1))
    rotation = read.rotation(head)
    each = width // heads if family.wide == layers else head
    window = read.whole("attention.sliding_window", 0, 0) if family.period else 0
    local = rotation
    if family.period > 2:
        local = Rotation(rotation.width, read.real("rope.freq_base_swa", _LOCAL_BASE))
    return Description(
        name, family, layers, width, heads, groups, head, read.whole("attention.value_length", head),
        read.whole("feed_forward_length"), read.whole("context_length"),
        read.real("attention.layer_norm_rms_epsilon", 1e-6), rotation, local, window,
        read.real("attn_logit_softcapping", 0.0), read.real("final_logit_softcapping", 0.0), each**-0.5,
        family.period,
    )  # fmt: skip
