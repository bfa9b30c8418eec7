"""Chat templates: what real ones write, and what hostile ones may not."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tg_frontend.text import ChatTemplate, Tokenizer
from tg_frontend.text.bytepairs import ALPHABET

pytest.importorskip("jinja2")

TALK = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello {{ 1 }}"},
    {"role": "user", "content": "Bye"},
]


def tokenizer() -> Tokenizer:
    fields: dict[str, Any] = {
        "model": "gpt2", "tokens": [*ALPHABET, "<s>", "</s>"], "merges": [], "bos_token_id": 256, "eos_token_id": 257
    }  # fmt: skip
    return Tokenizer({f"tokenizer.ggml.{name}": value for name, value in fields.items()})


def test_blocks_leave_no_lines() -> None:
    template = ChatTemplate(
        "{{ bos_token }}{% for m in messages %}\n  {% if m['role'] == 'user' %}\n"
        "[INST] {{ m['content'] | trim }} [/INST]"
        "{% else %}\n{{ m.content + eos_token }}{% endif %}\n{% endfor %}",
        tokenizer(),
    )
    assert template(TALK) == "<s>[INST] Hi [/INST]Hello {{ 1 }}</s>[INST] Bye [/INST]"


def test_the_beginning_of_the_answer() -> None:
    source = "{% for m in messages %}{{ m.role }}:{% endfor %}{% if add_generation_prompt %}>{% endif %}"
    template = ChatTemplate(source)
    assert template(TALK) == "user:assistant:user:>"
    assert template(TALK, answer=False) == "user:assistant:user:"


def test_what_templates_call() -> None:
    template = ChatTemplate(
        "{% set ns = namespace(n=0) %}{% for m in messages %}{% if loop.last %}{% break %}{% endif %}"
        "{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }} "
        "{{ {'ä': [1]} | tojson }} {{ strftime_now('%Y') | length }} {{ tools is none }}"
    )
    assert template(TALK) == '2 {"ä": [1]} 4 True'


def test_a_refusal_is_told() -> None:
    template = ChatTemplate("{% if messages[0].role != 'system' %}{{ raise_exception('system first') }}{% endif %}")
    with pytest.raises(ValueError, match="system first"):
        template(TALK)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{{ raise_exception.__globals__.json }}",
        "{{ messages[0].update(role='system') }}",
        "{% for i in range(10**9) %}{% endfor %}",
        "{{ strftime_now.__code__.co_name }}",
    ],
)
def test_nothing_leads_out_of_the_sandbox(source: str) -> None:
    with pytest.raises(ValueError, match="chat template"):
        ChatTemplate(source)(TALK)


def test_what_is_no_template() -> None:
    with pytest.raises(ValueError, match="chat template: .*end"):
        ChatTemplate("{% for m in messages %}")
    with pytest.raises(ValueError, match="is no text"):
        ChatTemplate.of({"tokenizer.chat_template": 1}, tokenizer())
    assert ChatTemplate.of({}, tokenizer()) is None
    with pytest.raises(ValueError, match="chat template"):
        ChatTemplate("{{ 1 / 0 }}")(TALK)


def test_jinja_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'tg-frontend\[chat\]'"):
        ChatTemplate("")
