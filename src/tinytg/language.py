"""Language models from GGUF files; see :mod:`tg_frontend.language`."""

from tg_frontend.language import LanguageModel, Sampler, load

__all__ = ["LanguageModel", "Sampler", "load"]
