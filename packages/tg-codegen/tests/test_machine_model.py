"""The machine model: each number has a unit and a source, and none of them stands twice under one name."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import tg_codegen
from tg_codegen import Target
from tg_codegen.machine.costs import CPUCosts
from tg_codegen.machine.gpu import GPUCosts
from tg_codegen.machine.numbers import numbers
from tg_lazy.cost import Limits

ARITHMETIC = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
ROOMS = ("machine", "nest", "plan", "search", "emit", "rewrite")


@pytest.mark.parametrize("model", [CPUCosts, GPUCosts])
def test_numbers_have_units_and_sources(model: type) -> None:
    for number in numbers(model):
        assert number.unit and number.meaning and number.source, number.name
        assert isinstance(number.value, (int, float)) and number.value > 0


def test_the_scheduler_splits_reductions_for_as_many_groups_as_a_gpu_holds() -> None:
    """The layer below cannot import the model: its number is the model's all the same."""
    gpu = GPUCosts()
    assert Limits().split_parts == gpu.resident // gpu.group_items


def test_a_number_without_a_source_is_refused() -> None:
    @dataclass
    class Bare:
        ways: int = 8

    with pytest.raises(ValueError, match=r"Bare\.ways has no default, unit or source"):
        list(numbers(Bare))


def named() -> dict[str, dict[str, object]]:
    """The numbers that modules of the planning rooms name in capitals, by name and module."""
    folder, found = Path(tg_codegen.__file__).parent, dict[str, dict[str, object]]()
    for room in ROOMS:
        for path in sorted((folder / room).rglob("*.py")):
            for line in ast.parse(path.read_text(encoding="utf-8")).body:
                target = line.targets[0] if isinstance(line, ast.Assign) else None
                if isinstance(target, ast.Name) and target.id.isupper() and isinstance(line, ast.Assign):
                    if all(isinstance(part, ARITHMETIC) for part in ast.walk(line.value)):
                        found.setdefault(target.id, {})[str(path.relative_to(folder))] = ast.unparse(line.value)
    return found


def test_one_name_is_one_number() -> None:
    twice = {name: where for name, where in named().items() if len(where) > 1}
    assert not twice, f"one name in two modules: {twice}"


MAY_ASK = {
    "nest/launch_shape.py": 1,  # which kinds of loops there are
    "plan/heuristic.py": 1,  # whose planner it is
    "plan/split_concat.py": 1,  # work-items have no loops that parts could shorten
}
"""Where a pass may ask whether a kernel is a grid, and how often: an entry may only go, or get smaller."""


def test_no_pass_asks_for_the_kind_of_a_device() -> None:
    """What differs between devices is a property of the target: ``prefetches``, ``counter``, ``keeps_rows``, costs."""
    folder, asking = Path(tg_codegen.__file__).parent, dict[str, int]()
    for path in (path for room in (*ROOMS[1:], "linear") for path in (folder / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            kind = isinstance(node, ast.Constant) and node.value in ("cpu", "gpu")
            if kind or (isinstance(node, ast.Attribute) and node.attr == "grid"):
                name = str(path.relative_to(folder))
                asking[name] = asking.get(name, 0) + 1
    assert asking == MAY_ASK


def test_planners_ask_the_target() -> None:
    """A machine that is told to differ does: its costs are read from its target alone."""
    wide = Target(cpu=replace(CPUCosts(), units=4, latency=3))
    assert wide.cpu.in_flight == 12 and wide.cpu.load == 0.25 and Target().cpu.in_flight == 8
    assert Target(l1_bytes=48 << 10, l1_ways=12).period_bytes == 4096
    assert Target(l1_bytes=64 << 10, l1_ways=4).partial_bytes > Target().partial_bytes
