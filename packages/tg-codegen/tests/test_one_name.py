"""One word is one thing: a name at the top of a module stands in no other module of its package.

That is so of the code generator and of the packages beneath it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import tg_codegen
import tg_dtype
import tg_lazy
import tg_shape

ROLES = {
    tg_codegen: {
        "DIALECT",  # of a language of the C family: what its renderer is made of
        "proposed",  # of a module of an action: where the heuristic wants it
    },
    tg_dtype: set[str](),
    tg_lazy: {"alu", "bitcast", "cast", "load", "reduce", "view"},  # nodes of an AST, and the same ones folded
    tg_shape: set[str](),
}
"""For each package the names that say what a module has to offer, the same in each that has it."""


def defined(source: str) -> Iterator[str]:
    """What a module defines at its top and does not keep to itself."""
    for line in ast.parse(source).body:
        found: list[str] = []
        if isinstance(line, ast.FunctionDef | ast.ClassDef):
            found = [line.name]
        elif isinstance(line, ast.Assign) and not typing_alone(line.value):
            found = [target.id for target in line.targets if isinstance(target, ast.Name)]
        elif isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            found = [line.target.id]
        yield from (name for name in found if not name.startswith("_") and name != "TYPE_CHECKING")


def typing_alone(value: ast.expr) -> bool:
    """Whether a value is a type variable, which means what the signature says in which it stands."""
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "TypeVar"


def twice(folder: Path) -> dict[str, list[str]]:
    """The names that several modules under a folder define, and which do."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        for name in dict.fromkeys(defined(path.read_text(encoding="utf-8"))):
            found.setdefault(name, []).append(str(path.relative_to(folder)))
    return {name: where for name, where in found.items() if len(where) > 1}


@pytest.mark.parametrize("package", ROLES, ids=lambda package: str(package.__name__))
def test_a_name_is_defined_in_one_module(package: ModuleType) -> None:
    assert package.__file__ is not None
    found, roles = twice(Path(package.__file__).parent), ROLES[package]
    assert found.keys() == roles, f"one name in several modules: {({n: w for n, w in found.items() if n not in roles})}"


def test_a_name_that_stands_twice_is_seen(tmp_path: Path) -> None:
    (tmp_path / "rooms").mkdir()
    (tmp_path / "one.py").write_text("def cut(): ...\nSIZE: int = 1\n_OWN = 2\n", encoding="utf-8")
    (tmp_path / "rooms" / "two.py").write_text("SIZE = 3\ncut = 4\n_OWN = 5\n", encoding="utf-8")
    assert twice(tmp_path) == {"cut": ["one.py", "rooms/two.py"], "SIZE": ["one.py", "rooms/two.py"]}


LAST_WORDS = {
    "Access": ("loads and stores of elements", "Access CStyleAccess ImageAccess LLVMAccess PTXAccess WGSLAccess"),
    "Action": ("a change to a kernel", "Action KernelAction LoopAction StructureAction"),
    "Arg": ("what the argument of a node is", "Arg NodeArg"),
    "Arithmetic": ("elementwise operations as text", "CStyleArithmetic LLVMArithmetic PTXArithmetic WGSLArithmetic"),
    "Builder": ("makes UOps one at a time", "IndexBuilder LinearBuilder"),
    "Conversion": ("casts as text", "CStyleConversion LLVMConversion PTXConversion WGSLConversion"),
    "Costs": ("the numbers of a machine", "CPUCosts GPUCosts"),
    "Dialect": ("what languages of a family differ in", "Dialect LLVMDialect"),
    "Dimension": ("one of an iteration space", "CutDimension StagedDimension"),
    "Emitter": ("loops to structured UOps", "Emitter KernelEmitter"),
    "Error": ("an exception", "ActionError EmitError LinearizeError LowerError ParseError"),
    "Function": ("one kernel as text", "CStyleFunction LLVMFunction PTXFunction WGSLFunction"),
    "Loops": ("opens loops, and what is in them", "Loops ReductionLoops"),
    "Memory": ("bytes that a kernel has at its disposal", "DynamicMemory StageMemory _Memory"),
    "Number": ("of a range of floats", "Number WholeNumber"),
    "Op": ("what a node does", "NodeOp UOp"),
    "Planner": ("collects actions for a nest", "CPUPlanner GPUPlanner Planner TilePlanner UpdatePlanner"),
    "Reader": ("text to a kernel", "_KernelReader _Reader"),
    "Reductions": ("reductions that are emitted", "Reductions SplitReductions"),
    "Region": ("what a loop or a condition runs", "LinearRegion Region"),
    "Renderer": (
        "a language and the machine it is written for",
        "AMDLLVMRenderer CStyleRenderer CUDARenderer ClangRenderer HIPRenderer LLVMRenderer MSLRenderer OpenCLRenderer "
        "PTXRenderer Renderer WGSLRenderer"),
    "Spec": ("a row of a table, or a program's description", "KindSpec NodeSpec ProgramSpec UOpSpec"),
    "Rows": ("those of a kernel: what an action changes", "TrimRows WidenRows"),
    "Stages": ("nodes kept in scratch, as they are filled", "GroupStages Stages"),
    "Terms": ("words of a language", "CStyleTerms Terms WGSLTerms"),
    "Text": ("a kernel that is being written", "LLVMText PTXText Text"),
    "Tile": ("results that are computed together", "GroupTile RegisterTile TransposedTile WindowTile"),
    "Trait": ("a fact from which groups are computed", "LoopTrait Trait"),
    "Values": ("what nodes evaluate to", "PTXValues ReuseRowValues Values"),
    "Window": ("dimensions that overlap in memory", "SlidingWindow Window"),
}  # fmt: skip
"""The last words that several classes have, private ones too: what such a word means, and which classes those are."""
ELSEWHERE = {
    "Block": "rows, terms or elements that are done together are a block; what a loop runs is a Region",
    "Context": "tg_lazy's, which holds settings; a point in the code is a Site",
    "Scope": "tg_lazy's, which shares a graph; a point in the code is a Site",
    "Step": "tg_lazy's, of a schedule",
    "Plan": "tg_runtime's, of memory; what is done to a kernel is a list of actions",
    "Place": "a computed index of a gather or an update",
    "Foresee": "Prefetch",
    "Piece": "a part of a reduction: Pieces",
}
"""Words that are no class here, as they mean something else, or another word means it."""


def last_words(folder: Path) -> dict[str, list[str]]:
    """The classes under a folder by the last word of their names."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                words = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z][a-z]+|[A-Z]+", node.name)
                found.setdefault(words[-1], set()).add(node.name)
    return {word: sorted(classes) for word, classes in found.items()}


def test_classes_that_share_a_word_share_its_meaning() -> None:
    found = last_words(Path(tg_codegen.__file__).parent)
    shared = {word: classes for word, classes in found.items() if len(classes) > 1}
    stated = {word: sorted(classes.split()) for word, (_, classes) in LAST_WORDS.items()}
    assert shared == stated, "a word has another meaning now, or one more class has it: say which"
    assert not ELSEWHERE.keys() & found.keys(), "that word means something else"


def test_a_class_with_a_word_that_another_one_has_is_seen(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("class LoopTile: ...\nclass _MemoryTile: ...\nclass UOps: ...\n", encoding="utf-8")
    assert last_words(tmp_path) == {"Tile": ["LoopTile", "_MemoryTile"], "Ops": ["UOps"]}
