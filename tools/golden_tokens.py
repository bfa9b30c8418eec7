"""Tokens that other libraries make of texts, as test data: ``packages/tg-frontend/tests/data/tokens.json``.

    hatch run models:golden

trains small tokenizers of every kind with the packages ``tokenizers`` and ``sentencepiece`` on the sentences of this
file, lets them encode texts that are written here or drawn at random, and writes down tokenizers, texts and numbers.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "packages" / "tg-frontend" / "tests" / "data" / "tokens.json"

SENTENCES = [
    "The miller's daughter couldn't say how many sacks of flour the cart had carried to town.",
    "We'll count them again: 1, 2, 3, 10, 200, 3456 and 78901 grains; they've all been weighed.",
    "IT'S RAINING, AND I'M STILL OUT; SHE'D SAID YOU'RE LATE, HE'LL WAIT.",
    "A heron stands in the shallows.  It waits, it waits, and then it doesn't wait any more.\n\nThe pond is still.",
    "def area(width, height):\n    # in square metres\n    return width * height\n\n\tif x >= 10:\n\t\tpass\n",
    "Über die Brücke gehen große Bären; déjà vu, naïve Señora, smörgåsbord, Łódź.",
    "Καλημέρα κόσμε. Привет, мир! שלום עולם مرحبا بالعالم नमस्ते दुनिया",
    "今日は良い天気です。你好，世界。안녕하세요 세계",
    "Prices rose by 3.5% (from $1,299.00 to $1,344.47) in 2024-11-05T12:30:00Z.",
    "HTTPServer parseJSONText camelCaseWords SCREAMING_SNAKE kebab-case-words path/to/some_file.txt",
    "🙂🙃 👩‍👩‍👧 🇩🇪 ✓ → ≤ ½ ² Ⅷ ٣ ३",
]

TEXTS = [
    "", " ", "  ", "   leading", "trailing   ", "a", "\n", "\r\n", "\n\n\n", " \n \n", "\t\tx", "a  b   c", "x\n  y",
    "...\n\n", "I'm, you're; it's 'twas WE'LL they'D've", "don’t", "'S 'ſ iſ'ſ", "1234567890 12 ½x² x2y", "no.5",
    "e\u0301 n\u0303o",
    "a\u00a0b\u3000c\u2028d\x85e\x1cf\x0bg", "price:$5/€6\n/x", "camelCase HTTPServer ǅungla ŉ", "日本語 text 한글",
    "\u200b\ufeff", "🙂👩‍👩‍👧", "<|im_start|> is no token here", "a\u2581b", "\x00\x7f",
]  # fmt: skip

ALPHABET = [
    " ", " ", " ", "\n", "\r", "\t", "\xa0", "\u2003", "a", "b", "Z", "Q", "é", "Ω", "ß", "ſ", "ǅ", "ʰ", "你", "א",
    "\u0301", "0", "7", "²", "Ⅷ", "٣", "'", "'s", "'Ll", "'T", ".", ",", "/", "-", "_", "€", "🙂", "\u200d", "\x1c",
]  # fmt: skip

GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
ENGLISH = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = rf"{ENGLISH}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{BLANKS}"
QWEN2 = LLAMA3.replace("{1,3}", "")
BIG, SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LEAD = r"[^\r\n\p{L}\p{N}]?"
TEKKEN = rf"{LEAD}{BIG}*{SMALL}+|{LEAD}{BIG}+{SMALL}*|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{BLANKS}"
GPT4O = (
    rf"{LEAD}{BIG}*{SMALL}+{ENGLISH}?|{LEAD}{BIG}+{SMALL}*{ENGLISH}?|\p{{N}}{{1,3}}"
    rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{BLANKS}"
)
CUTS = {"gpt-2": GPT2, "smollm": "", "llama-bpe": LLAMA3, "qwen2": QWEN2, "tekken": TEKKEN, "gpt-4o": GPT4O}


def texts() -> list[str]:
    """Those above, the sentences, and some that are drawn."""
    draw = random.Random(7)
    drawn = ["".join(draw.choices(ALPHABET, k=draw.randint(1, 24))) for _ in range(150)]
    return [*TEXTS, *SENTENCES, *drawn]


def byte_pairs(pre: str, pattern: str) -> dict[str, Any]:
    """A trained tokenizer of byte pairs as metadata, and what it makes of the texts."""
    library = import_module("tokenizers")
    parts, normalizers = library.pre_tokenizers, library.normalizers
    made = library.Tokenizer(library.models.BPE(ignore_merges=pre in ("llama-bpe", "tekken")))
    if pre == "qwen2":
        made.normalizer = normalizers.NFC()
    if pattern and pre != "gpt-2":
        split = parts.Split(library.Regex(pattern), "isolated")
        made.pre_tokenizer = parts.Sequence([split, parts.ByteLevel(add_prefix_space=False, use_regex=False)])
    elif pre == "gpt-2":
        made.pre_tokenizer = parts.ByteLevel(add_prefix_space=False)
    else:
        digits = parts.Digits(individual_digits=True)
        made.pre_tokenizer = parts.Sequence([digits, parts.ByteLevel(add_prefix_space=False)])
    trainer = library.trainers.BpeTrainer(
        vocab_size=420, initial_alphabet=parts.ByteLevel.alphabet(), special_tokens=["<|end|>"], show_progress=False
    )
    made.train_from_iterator(SENTENCES, trainer)
    model = json.loads(made.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    kinds = [3] + [1] * (len(tokens) - 1)
    merges = [" ".join(pair) for pair in model["merges"]]
    metadata = {"model": "gpt2", "pre": pre, "tokens": tokens, "token_type": kinds, "merges": merges}
    return {"metadata": metadata, "ids": [made.encode(text, add_special_tokens=False).ids for text in texts()]}


def sentence_piece(prefix: bool) -> dict[str, Any]:
    """A trained SentencePiece model as metadata, and what it makes of the texts."""
    library = import_module("sentencepiece")
    with tempfile.TemporaryDirectory() as folder:
        corpus, model = Path(folder) / "text", Path(folder) / "model"
        corpus.write_text("\n".join(SENTENCES), encoding="utf-8")
        library.SentencePieceTrainer.train(
            input=str(corpus), model_prefix=str(model), model_type="bpe", vocab_size=620, byte_fallback=True,
            normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=prefix,
            character_coverage=0.98, split_digits=True, allow_whitespace_only_pieces=True, minloglevel=2,
        )  # fmt: skip
        made = library.SentencePieceProcessor(model_file=f"{model}.model")
    numbers = range(made.get_piece_size())
    asked = ((made.is_unknown, 2), (made.is_control, 3), (made.is_byte, 6), (made.is_unused, 5))
    kinds = [next((kind for ask, kind in asked if ask(i)), 1) for i in numbers]
    metadata = {
        "model": "llama", "tokens": [made.id_to_piece(i) for i in numbers], "token_type": kinds,
        "scores": [made.get_score(i) for i in numbers], "add_space_prefix": prefix, "unknown_token_id": made.unk_id(),
        "bos_token_id": made.bos_id(), "eos_token_id": made.eos_id(), "add_bos_token": False,
    }  # fmt: skip
    return {"metadata": metadata, "ids": [made.encode(text) for text in texts()]}


def main() -> int:
    found: dict[str, Any] = {pre: byte_pairs(pre, pattern) for pre, pattern in CUTS.items()}
    found |= {"sentencepiece": sentence_piece(True), "sentencepiece, no prefix": sentence_piece(False)}
    TARGET.parent.mkdir(exist_ok=True)
    whole = json.dumps({"texts": texts(), "tokenizers": found}, ensure_ascii=True, separators=(",", ":"))
    TARGET.write_text(whole.replace('],"', '],\n"') + "\n", encoding="utf-8")
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
