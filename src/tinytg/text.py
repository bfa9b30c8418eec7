"""Tokenizers and chat templates; see :mod:`tg_frontend.text`."""

from tg_frontend.text import ChatTemplate, TextStream, Tokenizer

__all__ = ["ChatTemplate", "TextStream", "Tokenizer"]
