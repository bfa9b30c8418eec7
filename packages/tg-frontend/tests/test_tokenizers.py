"""Tokenizers against what ``tokenizers`` and ``sentencepiece`` made of the same texts (``tools/golden_tokens.py``)."""

from __future__ import annotations

import json
import random
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tg_frontend.text import Tokenizer
from tg_frontend.text.bytepairs import ALPHABET
from tg_frontend.text.merging import merged
from tg_frontend.text.words import cut

GOLDEN = json.loads((Path(__file__).parent / "data" / "tokens.json").read_text(encoding="utf-8"))
KINDS = list(GOLDEN["tokenizers"])


def tokenizer(kind: str, **changes: Any) -> Tokenizer:
    fields = {**GOLDEN["tokenizers"][kind]["metadata"], **changes}
    return Tokenizer({f"tokenizer.ggml.{name}": value for name, value in fields.items() if value is not None})


@pytest.mark.parametrize("kind", KINDS)
def test_numbers(kind: str) -> None:
    made = tokenizer(kind)
    wrong = []
    for text, ids in zip(GOLDEN["texts"], GOLDEN["tokenizers"][kind]["ids"], strict=True):
        got = made.encode(text)
        if got != ids:
            wrong.append((text, [made.tokens[i] for i in got], [made.tokens[i] for i in ids]))
    assert not wrong


@pytest.mark.parametrize("kind", KINDS)
def test_there_and_back(kind: str) -> None:
    made = tokenizer(kind)
    for text in GOLDEN["texts"]:
        back = made.decode(made.encode(text))
        if kind == "qwen2":
            continue  # it normalises
        assert back == (text.replace("\u2581", " ") if "sentencepiece" in kind else text)


@pytest.mark.parametrize("kind", KINDS)
def test_stream(kind: str) -> None:
    """Token by token, nothing is said that is taken back, and all of it is said."""
    made = tokenizer(kind)
    for text in GOLDEN["texts"]:
        ids = made.encode(text)
        stream = made.stream()
        parts = [stream.add(i) for i in ids]
        assert "".join([*parts, stream.end()]) == made.decode(ids)
        assert "\ufffd" not in "".join(parts)


def test_every_numeral_is_a_word() -> None:
    """As ``tokenizers`` (``Digits``) and llama.cpp cut for SmolLM: what Unicode calls a number, and no word for one."""
    numerals = [char for char in map(chr, range(0x110000)) if unicodedata.category(char) in ("Nd", "Nl", "No")]
    words = list(cut("smollm").words("".join(f"a{char}{char} {char}" for char in numerals)))
    assert words == [word for char in numerals for word in ("a", char, char, " ", char)]
    named = [char for char in map(chr, range(0x110000)) if char.isnumeric() and unicodedata.category(char) == "Lo"]
    assert len(named) > 50 and list(cut("smollm").words("".join(named))) == ["".join(named)]


def test_a_special_token_is_one_where_the_text_may_say_so() -> None:
    made = tokenizer("llama-bpe")
    end = made.special["<|end|>"]
    assert made.encode("a<|end|>b", special=True) == [made.tokens.index("a"), end, made.tokens.index("b")]
    assert end not in made.encode("a<|end|>b")
    assert end in made.ends
    assert made.decode([end]) == "" and made.decode([end], special=True) == "<|end|>"


def test_beginning_and_end() -> None:
    fields: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": 2, "add_bos_token": True, "add_eos_token": True}
    made = tokenizer("sentencepiece", **fields)
    ids = made.encode("hello")
    assert (ids[0], ids[-1]) == (1, 2)
    assert made.encode("hello", ends=False) == ids[1:-1]
    assert made.encode("<s>hello", special=True)[:2] != [1, 1], "a template that writes it does not double it"
    assert made.decode(ids) == "hello"


def test_added_tokens_are_found_in_any_text() -> None:
    fields = GOLDEN["tokenizers"]["qwen2"]["metadata"]
    tokens, kinds = [*fields["tokens"], "<think>"], [*fields["token_type"], 4]
    made = tokenizer("qwen2", tokens=tokens, token_type=kinds)
    assert made.encode("a<think>b")[1] == len(tokens) - 1
    assert made.decode(made.encode("a<think>b")) == "a<think>b"


def test_a_long_word_takes_no_quadratic_time() -> None:
    text = "".join(random.Random(1).choices("abcdefgh", k=100_000))
    begin = time.perf_counter()
    assert tokenizer("gpt-2").decode(tokenizer("gpt-2").encode(text)) == text
    assert time.perf_counter() - begin < 20


def by_trying(pieces: list[str], order: Callable[[str, str], float | None]) -> list[str]:
    """The definition: the best pair of all, the first of equals, again and again."""
    while True:
        ranks = [(rank, i) for i in range(len(pieces) - 1) if (rank := order(pieces[i], pieces[i + 1])) is not None]
        if not ranks:
            return pieces
        i = min(ranks)[1]
        pieces = [*pieces[:i], pieces[i] + pieces[i + 1], *pieces[i + 2 :]]


def test_merging_is_what_its_definition_says() -> None:
    draw = random.Random(3)
    for _ in range(300):
        words = {"".join(draw.choices("abc", k=draw.randint(2, 5))) for _ in range(draw.randint(1, 30))}
        ranks = {word: float(draw.randint(0, 5)) for word in words}

        def order(left: str, right: str, ranks: dict[str, float] = ranks) -> float | None:
            return ranks.get(left + right)

        text = list("".join(draw.choices("abc", k=draw.randint(0, 40))))
        assert merged(text, order) == by_trying(text, order)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": None}, r"the metadata lack tokenizer.ggml.model"),
        ({"model": "bert"}, "known are 'gpt2'"),
        ({"pre": "unheard-of"}, "'unheard-of', which is not known; known are .*llama-bpe"),
        ({"merges": None}, "lack tokenizer.ggml.merges"),
        ({"tokens": None}, "lack tokenizer.ggml.tokens"),
        ({"tokens": "abc"}, "not of type list"),
        ({"tokens": ["a", 1]}, "something else than str"),
        ({"tokens": ["a", "b"]}, "token_type has 420 elements for 2 tokens"),
        ({"tokens": ["ab", "b "], "token_type": [1, 1]}, "no token for any byte"),
        ({"eos_token_id": 420}, "eos_token_id is 420; there are 420 tokens"),
        ({"model": "llama"}, "lack tokenizer.ggml.scores"),
        ({"model": "llama", "scores": [1.0]}, "scores has 1 elements for 420 tokens"),
        ({"token_type": ["a"] * 420}, "token_type holds something else than int"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tokenizer("gpt-2", **changes)


def test_bytes_that_the_vocabulary_has_not() -> None:
    tokens, kinds = ["a", "b", "<unk>"], [1, 1, 2]
    with pytest.raises(ValueError, match="no token for the byte 99, nor for what is unknown"):
        tokenizer("gpt-2", tokens=tokens, token_type=kinds).encode("abc")
    assert tokenizer("gpt-2", tokens=tokens, token_type=kinds, unknown_token_id=2).encode("abc") == [0, 1, 2]


def test_numbers_that_are_none_of_a_token() -> None:
    made = tokenizer("gpt-2")
    for number in (-1, len(made)):
        with pytest.raises(IndexError, match=f"token {number} of 420"):
            made.decode([number])


def test_lone_surrogates_are_written_as_a_question_mark() -> None:
    """They are what Python makes of a terminal's bytes that are no UTF-8."""
    for kind in KINDS:
        made = tokenizer(kind)
        assert made.decode(made.encode("a\udcffb")) == "a?b"


def test_alphabet() -> None:
    assert len(set(ALPHABET)) == 256 and all(char.isprintable() and not char.isspace() for char in ALPHABET)
