"""The page about the architecture: every action that it names is one."""

from __future__ import annotations

import re
from pathlib import Path

from tg_codegen.plan.vocabulary import ACTIONS, parse_action

PAGE = "docs/architecture.md"


def test_the_actions_on_the_page_exist(repository: Path) -> None:
    text = (repository / PAGE).read_text(encoding="utf-8")
    named = re.search(r"actions \(([a-z_, ]+), …\)", text)
    assert named is not None
    section = text.partition("## One language for what is done to a kernel")[2].partition("\n## ")[0]
    table = re.findall(r"^ ((?:\d: )?[a-z_]+\(.*?\)) {2,}", section, re.MULTILINE)
    assert len(table) >= 6
    listed = re.search(r"loops of one part: ([a-z_, ]+), …", section)
    assert listed is not None
    for line in table:
        parse_action(line)
    names = {*named[1].split(", "), *listed[1].split(", "), *re.findall(r"\b([a-z_]+)\(\)", section)}
    assert names <= set(ACTIONS), f"no actions: {names - set(ACTIONS)}"
