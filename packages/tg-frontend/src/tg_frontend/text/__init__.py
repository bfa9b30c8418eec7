"""Text as a language model sees it: tokenizers and chat templates, both from the metadata of a GGUF file."""

from .template import ChatTemplate
from .tokenizer import TextStream, Tokenizer

__all__ = ["ChatTemplate", "TextStream", "Tokenizer"]
