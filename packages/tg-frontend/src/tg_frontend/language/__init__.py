"""Language models from GGUF files: transformers of the Llama, Qwen, Mistral and Gemma families."""

from .model import LanguageModel, load
from .sampling import Sampler

__all__ = ["LanguageModel", "Sampler", "load"]
