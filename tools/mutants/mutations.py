"""What is changed: operators, constants, conditions, guards; one node of a syntax tree at a time."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.Pow: ast.Mult,
}  # fmt: skip
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any", "ceildiv": "floordiv"}
SILENT = ("__repr__", "__str__", "_repr_html_", "__rich_repr__")
"""Functions whose bodies are left alone: what they say has tests of its own, or none on purpose."""


@dataclass(frozen=True)
class Mutant:
    """A changed place.

    Attributes:
      path: of the file, relative to the root.
      line: where, from 1.
      kind: what was done.
      before: the text of the place.
      after: what stands there instead.
      source: the whole changed file.
    """

    path: str
    line: int
    kind: str
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        before, after = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.path}:{self.line}: {self.kind}: {before}  ->  {after}"


class _Places(ast.NodeVisitor):
    """The nodes that may be changed: none of annotations, decorators, docstrings and what is only for type checkers."""

    def __init__(self) -> None:
        self.found: list[ast.AST] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in SILENT:
            return
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self.found.append(node)
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.found.append(node)  # but not what it says

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        return

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.found.append(node)
            self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, (ast.Compare, ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Constant, ast.Call, ast.AugAssign,
                             ast.Continue, ast.IfExp)):  # fmt: skip
            self.found.append(node)
        super().generic_visit(node)


def _text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The changes of a node: what is done, and what takes its place."""
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[op]) if type(op) in COMPARED:
            new.ops = [COMPARED[type(op)]()]
            yield "comparison", new
        case ast.BinOp(op=op, left=left, right=right) if type(op) in COMPUTED and not (_text(left) or _text(right)):
            new.op = COMPUTED[type(op)]()
            yield "arithmetic", new
        case ast.AugAssign(op=op) if type(op) in COMPUTED:
            new.op = COMPUTED[type(op)]()
            yield "arithmetic", new
        case ast.BoolOp(op=op, values=values):
            new.op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "and, or", new
            for i in range(len(values)):
                rest = values[:i] + values[i + 1 :]
                yield "guard left out", rest[0] if len(rest) == 1 else ast.BoolOp(copy.deepcopy(op), rest)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not", operand
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield "constant", ast.Constant(value * 2 if value else 1.0)
        case ast.Call(func=ast.Name(id=name)) if name in CALLED:
            new.func = ast.Name(CALLED[name])
            yield "min, max, any, all", new
        case ast.IfExp(body=body, orelse=orelse):
            yield "condition", body
            yield "condition", orelse
        case ast.If():
            for value in (True, False):
                yield "condition", ast.Constant(value)
        case ast.Raise() | ast.Expr(value=ast.Call()):
            yield "statement left out", ast.Pass()
        case ast.Continue():
            yield "statement left out", ast.Pass()
        case _:
            return


def mutants_of(root: Path, path: Path) -> list[Mutant]:
    """Every mutant of a file that is Python still."""
    return [mutant for mutant in changed_texts(root, path) if is_python(mutant)]


def is_python(mutant: Mutant) -> bool:
    """Whether the changed file can be compiled."""
    try:
        compile(mutant.source, mutant.path, "exec")
    except SyntaxError:
        return False
    return True


def changed_texts(root: Path, path: Path) -> list[Mutant]:
    """Every changed text of a file: to compile them all takes minutes."""
    text = path.read_text(encoding="utf-8")
    places = _Places()
    places.visit(ast.parse(text))
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    raw, found = text.encode(), []
    for node in places.found:
        for kind, new in changes(node):
            old = node.test if isinstance(node, ast.If) else node
            begin = starts[old.lineno - 1] + old.col_offset  # type: ignore[attr-defined]
            end = starts[old.end_lineno - 1] + old.end_col_offset  # type: ignore[attr-defined]
            after = ast.unparse(ast.fix_missing_locations(new))
            if isinstance(new, ast.expr) and not isinstance(new, (ast.Constant, ast.Name, ast.Call)):
                after = f"({after})"
            changed = (raw[:begin] + after.encode() + raw[end:]).decode()
            before = raw[begin:end].decode()
            found.append(Mutant(str(path.relative_to(root)), old.lineno, kind, before, after, changed))  # type: ignore[attr-defined]
    return found


def drawn(root: Path, package: str, count: int, seed: int) -> list[Mutant]:
    """``count`` mutants of a package, drawn over kinds, then over files, then over places, each once."""
    folder = root / "packages" / package.replace("_", "-") / "src" / package
    pool: dict[str, dict[str, list[Mutant]]] = {}
    for path in sorted(folder.rglob("*.py")):
        if path.name != "__init__.py":
            for mutant in changed_texts(root, path):
                pool.setdefault(mutant.kind, {}).setdefault(mutant.path, []).append(mutant)
    pick = random.Random(f"{package} {seed}")
    chosen: list[Mutant] = []
    while pool and len(chosen) < count:
        kind = pick.choice(sorted(pool))
        paths = sorted(pool[kind])
        path_name = pick.choices(paths, [len(pool[kind][p]) ** 0.5 for p in paths])[0]
        places = pool[kind][path_name]
        mutant = places.pop(pick.randrange(len(places)))
        if is_python(mutant):
            chosen.append(mutant)
        if not places:
            del pool[kind][path_name]
        if not pool[kind]:
            del pool[kind]
    return chosen
