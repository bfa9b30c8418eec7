from __future__ import annotations

import re

import pytest

from tg_lazy import DEBUG, Context, ContextVar, getenv


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TG_LAZY_TEST", " 7 ")
    assert getenv("TG_LAZY_TEST") == 7 and getenv("TG_LAZY_TEST", "x") == "7"
    assert getenv("TG_LAZY_ABSENT", 3) == 3 and getenv("TG_LAZY_ABSENT", "a") == "a"
    monkeypatch.setenv("TG_LAZY_TEST", "")
    assert getenv("TG_LAZY_TEST", 3) == 3 and getenv("TG_LAZY_TEST", "x") == "x"


@pytest.mark.parametrize("foreign", ["seven", "true", "-1", "1.5", "*", "node:*"])
def test_what_is_no_number_is_told_and_counts_as_not_set(foreign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TG_LAZY_TEST", foreign)
    told = f"TG_LAZY_TEST is {foreign!r}: a whole number from 0 on is wanted, and 5 is taken"
    with pytest.warns(RuntimeWarning, match=re.escape(told)):
        assert getenv("TG_LAZY_TEST", 5) == 5


def test_scopes_nest_and_restore() -> None:
    before = DEBUG.value
    with Context(DEBUG=2):
        with Context(DEBUG=5):
            assert DEBUG.value == 5 and DEBUG >= 5 and DEBUG > 4 and DEBUG < 6 and bool(DEBUG)
        assert DEBUG.value == 2
    assert DEBUG.value == before
    with pytest.raises(RuntimeError, match="inside"), Context(DEBUG=1):
        raise RuntimeError("inside")
    assert DEBUG.value == before and "DEBUG" in repr(DEBUG)


def test_unknown_and_double_settings() -> None:
    with pytest.raises(KeyError, match="NOT_A_SETTING is not a setting; these are"):
        Context(NOT_A_SETTING=1)
    with pytest.raises(RuntimeError, match="declared twice"):
        ContextVar("DEBUG", 0)
