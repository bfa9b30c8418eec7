"""Checks on traces of the profiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def spans(trace: Mapping[str, Any]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """The complete events of a trace by (process, thread), as they stand."""
    events: Sequence[Mapping[str, Any]] = trace["traceEvents"]
    named = {(e["name"], e["pid"], e["tid"]): e["args"].get("name") for e in events if e["ph"] == "M"}
    out: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for event in events:
        if event["ph"] == "X":
            key = named["process_name", event["pid"], 0], named["thread_name", event["pid"], event["tid"]]
            out.setdefault(key, []).append(event)
    return out


def check_nesting(trace: Mapping[str, Any], slack_us: float = 0.0021) -> None:
    """Fails unless every track's spans begin in order and are nested or apart; ``slack_us`` is for rounding."""
    for track, events in spans(trace).items():
        open_until: list[float] = []
        before = float("-inf")
        for event in events:
            begin, end = event["ts"], event["ts"] + event["dur"]
            assert event["dur"] >= 0, f"{track}: {event} ends before it begins"
            assert begin >= before, f"{track}: {event} begins before the one ahead of it"
            before = begin
            while open_until and open_until[-1] <= begin + slack_us:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + slack_us, f"{track}: {event} overlaps the end of another"
            open_until.append(end)
