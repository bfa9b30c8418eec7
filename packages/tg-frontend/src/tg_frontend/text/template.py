"""Chat templates: the messages of a conversation as the text that a model was trained on.

A GGUF file brings its template as a program in the language Jinja. It is a stranger's program, so it runs in Jinja's
sandbox, without access to attributes that lead out of it, and cannot change what it is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import import_module

from .tokenizer import Tokenizer, special_texts

_KEY = "tokenizer.chat_template"


class ChatTemplate:
    """A model's chat template.

    Args:
      source: the program, in Jinja.
      tokenizer: whose tokens of beginning and end the program may name.

    Raises:
      ImportError: if Jinja is not installed; the message says how to install it.
      ValueError: if the program is none.

    Example:
      >>> from tg_frontend.text import ChatTemplate
      >>> template = ChatTemplate("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}")
      >>> template([{"role": "user", "content": "Hello"}])
      '<user>Hello'
    """

    def __init__(self, source: str, tokenizer: Tokenizer | None = None) -> None:
        try:
            jinja2, sandbox = import_module("jinja2"), import_module("jinja2.sandbox")
        except ImportError:
            raise ImportError("chat templates need Jinja: pip install 'tg-frontend[chat]'") from None
        environment = sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        dumps = import_module("json").dumps  # 2 ms that a program without a template does not spend
        environment.filters["tojson"] = lambda value, indent=None: dumps(value, ensure_ascii=False, indent=indent)
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
        self._errors = (jinja2.TemplateError, TypeError, ArithmeticError, LookupError, AttributeError)
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise ValueError(f"chat template: {error}") from None
        numbers = (None, None) if tokenizer is None else (tokenizer.bos, tokenizer.eos)
        self._bos, self._eos = special_texts(tokenizer, numbers) if tokenizer is not None else ("", "")

    @staticmethod
    def of(metadata: Mapping[str, object], tokenizer: Tokenizer) -> ChatTemplate | None:
        """The template of a GGUF file, or None if it has none.

        Args:
          metadata: those of the file.
          tokenizer: the file's.

        Raises:
          ImportError: if Jinja is not installed.
          ValueError: if it is no template.

        Example:
          >>> from tg_frontend.text import ChatTemplate, Tokenizer
          >>> from tg_frontend.text.bytepairs import ALPHABET
          >>> fields = {"model": "gpt2", "tokens": [*ALPHABET, "<|end|>"], "token_type": [1] * 256 + [3], "merges": []}
          >>> tokenizer = Tokenizer({f"tokenizer.ggml.{name}": value for name, value in fields.items()})
          >>> ChatTemplate.of({}, tokenizer) is None
          True
        """
        source = metadata.get(_KEY)
        if source is None:
            return None
        if not isinstance(source, str):
            raise ValueError(f"chat template: {_KEY} is no text")
        return ChatTemplate(source, tokenizer)

    def __call__(self, messages: Sequence[Mapping[str, object]], answer: bool = True) -> str:
        """The text of a conversation.

        Args:
          messages: in order, each with a ``role`` (system, user or assistant) and a ``content``.
          answer: whether the beginning of the assistant's answer follows.

        Returns:
          What the model is to go on from; :meth:`Tokenizer.encode` with ``special`` makes tokens of it.

        Raises:
          ValueError: if the template refuses the messages, such as two of a user in a row, or fails.
        """
        given = [dict(message) for message in messages]
        try:
            out = self._template.render(
                messages=given, add_generation_prompt=answer, bos_token=self._bos, eos_token=self._eos,
                tools=None, documents=None,
            )  # fmt: skip
        except self._errors as error:
            raise ValueError(f"chat template: {error}") from None
        return str(out)


def _refuse(message: str) -> str:
    """What templates call where they do not know what to write."""
    raise ValueError(f"chat template: {message}")
