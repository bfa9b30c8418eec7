"""Blocks that put back what they changed: by C functions alone, with tasks and threads of their own."""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import ExitStack
from contextvars import copy_context
from types import FrameType

import pytest

from tg_lazy import DEBUG, STRICT, Context


def test_threads_have_settings_of_their_own() -> None:
    turns, seen = threading.Barrier(2), {}

    def work(value: int) -> None:
        with Context(DEBUG=value):
            turns.wait()
            seen[value] = DEBUG.value
            turns.wait()
        seen[-value] = DEBUG.value

    threads = [threading.Thread(target=work, args=(value,)) for value in (5, 6)]
    with Context(DEBUG=4):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert DEBUG.value == 4
    assert seen == {5: 5, 6: 6, -5: 0, -6: 0}


def test_a_thread_may_be_handed_the_settings() -> None:
    seen = []
    with Context(DEBUG=4, STRICT=1):
        thread = threading.Thread(target=copy_context().run, args=(lambda: seen.append((DEBUG.value, STRICT.value)),))
    thread.start()
    thread.join()
    assert seen == [(4, 1)]


def test_tasks_have_settings_of_their_own() -> None:
    async def work(value: int) -> list[int]:
        with Context(DEBUG=value):
            await asyncio.sleep(0)
            inside = DEBUG.value
        return [inside, DEBUG.value]

    async def both() -> list[list[int]]:
        with Context(DEBUG=3):
            return list(await asyncio.gather(work(7), work(8)))

    assert asyncio.run(both()) == [[7, 3], [8, 3]]
    assert DEBUG.value == 0


def test_one_object_serves_again_and_inside_of_itself() -> None:
    block = Context(DEBUG=5)
    with block, Context(DEBUG=6):
        with block:
            assert DEBUG.value == 5
        assert DEBUG.value == 6
    with ExitStack() as stack:
        stack.enter_context(block)
        stack.enter_context(block)
        assert DEBUG.value == 5
    assert DEBUG.value == 0
    assert block.saved == []


def test_it_is_entered_and_left_by_explicit_calls() -> None:
    """As fixtures do, which set something up in one function and take it down in another."""
    block, other = Context(DEBUG=5), Context(DEBUG=6)
    block.__enter__()
    other.__enter__()
    block.__enter__()
    assert DEBUG.value == 5
    block.__exit__(None, None, None)
    assert DEBUG.value == 6
    other.__exit__(None, None, None)
    assert DEBUG.value == 5
    leave = block.__exit__
    leave(ValueError, ValueError("an error"), None)
    assert DEBUG.value == 0
    assert block.saved == other.saved == []


def test_one_object_serves_several_threads() -> None:
    """Each puts back what it found, in whatever order they come and go."""
    block, turns, seen = Context(DEBUG=9), threading.Barrier(2), {}

    def work(value: int, first: bool) -> None:
        with Context(DEBUG=value):
            if not first:
                turns.wait()
            with block:
                if first:
                    turns.wait()
                turns.wait()
            seen[value] = DEBUG.value

    threads = [threading.Thread(target=work, args=(value, value == 5)) for value in (5, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {5: 5, 6: 6}


def test_it_decorates() -> None:
    @Context(DEBUG=5)
    def inner() -> int:
        return DEBUG.value

    assert (inner(), DEBUG.value) == (5, 0)


def test_the_process_wide_value_shows_where_nothing_overrides_it() -> None:
    with Context(STRICT=1):
        pass
    STRICT.value = 1
    try:
        with Context(DEBUG=1):
            assert STRICT.value == 1
        with Context(STRICT=0):
            assert STRICT.value == 0
    finally:
        STRICT.value = 0


def test_no_line_of_python_runs_when_a_block_ends() -> None:
    """A handler of a signal could raise before the first line of such a function, and nothing would be put back."""
    called: list[str] = []

    def watch(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)

    block = Context(DEBUG=5)
    with block:
        sys.setprofile(watch)
    sys.setprofile(None)
    assert called == []
    assert DEBUG.value == 0


def test_names_are_checked() -> None:
    with pytest.raises(KeyError, match="NOSUCH is not a setting"):
        Context(NOSUCH=1)
