"""What import-linter cannot see, checked over a monorepo of Python packages.

Run it at the root of a repository that keeps its packages in ``packages/*/src/<import name>`` (and, where it has
one, its meta-package in ``src/<import name>``) and its contracts in ``.importlinter``::

    python tools/architecture.py [ROOT]

It prints one line a violation and exits with 1 when there is any. It stands on the standard library alone and knows
nothing of this repository: another project copies the file as it is. The checks are:

* ``contract``: every package is among the ``root_packages`` and in a ``layers`` contract, every module and wildcard
  that a contract names matches something, in a package or in a folder of programs at the root, and the modules that
  one package offers under one entry-point group are independent of one another by contract;
* ``folders``: no folder that holds Python files lacks ``__init__.py``, and every package carries ``py.typed``;
* ``declared``: every import of a sibling or of a third party is declared by the package that makes it, at the same
  version where it is a sibling; what ``import <package>`` itself imports is a hard dependency, what is imported later
  may be an extra; and a package under ``packages`` declares no sibling that it never imports.

The import name of a distribution is its name with underscores; exceptions are given in the root ``pyproject.toml``::

    [tool.architecture]
    distributions = { sklearn = "scikit-learn" }
"""

from __future__ import annotations

import ast
import configparser
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*([^;]*)")


def normalize(name: str) -> str:
    """The canonical form of a distribution's name.

    >>> normalize("Scikit_Learn")
    'scikit-learn'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True)
class Package:
    """One distribution of the repository, read from its ``pyproject.toml``."""

    root: Path
    name: str
    version: str
    module: str
    required: dict[str, str]
    optional: dict[str, str]
    entry_points: dict[str, list[str]]

    @property
    def source(self) -> Path:
        return self.root / "src" / self.module


@dataclass(frozen=True)
class Import:
    """One imported module, or name in a module: where, and whether the importing module can be loaded without it."""

    line: int
    name: str
    lazy: bool

    @property
    def top(self) -> str:
        return self.name.split(".")[0]


@dataclass
class Contracts:
    """The part of an ``.importlinter`` file that the checks compare with the tree."""

    roots: list[str] = field(default_factory=list)
    layers: set[str] = field(default_factory=set)
    independent: list[list[str]] = field(default_factory=list)
    named: set[str] = field(default_factory=set)


def _requirements(lines: list[str]) -> dict[str, str]:
    found = {}
    for line in lines:
        if match := _REQUIREMENT.match(line):
            found[normalize(match[1])] = match[2].strip()
    return found


def _packages_at(root: Path) -> Iterator[Package]:
    project: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
    extras = [line for lines in project.get("optional-dependencies", {}).values() for line in lines]
    points: dict[str, dict[str, str]] = project.get("entry-points", {})
    for source in sorted((root / "src").glob("*/")):
        if source.name == "__pycache__" or source.name.endswith(".egg-info"):
            continue
        yield Package(
            root=root,
            name=normalize(project["name"]),
            version=project["version"],
            module=source.name,
            required=_requirements(project.get("dependencies", [])),
            optional=_requirements(extras),
            entry_points={
                group: sorted({value.split(":")[0].strip() for value in entries.values()})
                for group, entries in points.items()
            },
        )


def read_packages(root: Path) -> list[Package]:
    """Every package under ``root/packages``, and the one at the root itself where ``root/src`` exists."""
    homes = sorted(path.parent for path in (root / "packages").glob("*/pyproject.toml"))
    if (root / "src").is_dir():
        homes.append(root)
    return [package for home in homes for package in _packages_at(home)]


def read_contracts(path: Path) -> Contracts:
    """The contracts of an ``.importlinter`` file."""
    parser = configparser.ConfigParser()
    parser.read_string(path.read_text(encoding="utf-8"))

    def lines(section: str, option: str) -> list[str]:
        text = parser.get(section, option, fallback="")
        return [entry for line in text.splitlines() if (entry := line.split("#")[0].strip())]

    contracts = Contracts()
    if parser.has_section("importlinter"):
        contracts.roots = lines("importlinter", "root_packages") + lines("importlinter", "root_package")
    for section in parser.sections():
        if not section.startswith("importlinter:contract:"):
            continue
        kind = parser.get(section, "type", fallback="")
        containers = lines(section, "containers")
        for option in ("layers", "modules", "source_modules", "ancestors", "protected_modules"):
            for line in lines(section, option):
                parts = {part.strip(" ()") for part in re.split(r"[|:]", line)} - {""}
                if containers:
                    parts = {f"{container}.{part}" for container in containers for part in parts}
                contracts.named |= parts
                if kind == "layers":
                    contracts.layers |= parts
        if kind == "independence":
            contracts.independent.append(lines(section, "modules"))
    return contracts


def _pattern(expression: str) -> re.Pattern[str]:
    """import-linter's wildcards: ``*`` is one name, ``**`` is one or more."""
    parts = {"*": r"[^.]+", "**": r".+"}
    return re.compile(r"\.".join(parts.get(part, re.escape(part)) for part in expression.split(".")))


def _modules(source: Path) -> dict[str, Path]:
    """Every module in the folder of an import package, by its dotted name."""
    names = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def _apart(modules: list[str], entries: list[str]) -> bool:
    """Whether an independence contract of these entries keeps every two of the modules apart.

    An entry speaks for the modules in a package too, but not of one another.

    >>> _apart(["house.cat.device", "house.dog.device"], ["house.*"])
    True
    >>> _apart(["house.cat", "house.dog"], ["house"])
    False
    """
    patterns = [_pattern(entry) for entry in entries]
    held = set()
    for module in modules:
        parts = module.split(".")
        names = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
        held.add(next((name for name in names if any(pattern.fullmatch(name) for pattern in patterns)), ""))
    return "" not in held and len(held) == len(modules)


def check_contract(root: Path, packages: list[Package]) -> Iterator[str]:
    """Violations of "every package is in the contract, and the contract speaks of what exists"."""
    path = root / ".importlinter"
    if not path.is_file():
        yield f"{path.name}: missing"
        return
    contracts = read_contracts(path)
    known = {name for package in packages for name in _modules(package.source)}
    for name in contracts.roots:  # programs beside the packages, which nobody installs
        if (root / name / "__init__.py").is_file():
            known |= _modules(root / name).keys()
    for package in packages:
        if package.module not in contracts.roots:
            yield f"{path.name}: {package.module} is not among the root_packages"
        if package.module not in contracts.layers:
            yield f"{path.name}: {package.module} is in no layers contract"
    for name in contracts.roots:
        if name not in known:
            yield f"{path.name}: the root package {name} does not exist"
    for expression in sorted(contracts.named):
        pattern = _pattern(expression)
        if not any(pattern.fullmatch(name) for name in known):
            yield f"{path.name}: {expression} matches no module"
    for package in packages:
        for group, modules in package.entry_points.items():
            if len(modules) > 1 and not any(_apart(modules, entries) for entries in contracts.independent):
                yield f"{path.name}: no independence contract holds all of {package.name}'s {group} modules: {modules}"


def check_folders(root: Path, packages: list[Package]) -> Iterator[str]:
    """Violations of "every folder of Python files is a package, and every package is typed"."""
    for package in packages:
        for folder in [package.source, *sorted(path for path in package.source.rglob("*") if path.is_dir())]:
            if folder.name != "__pycache__" and any(folder.rglob("*.py")) and not (folder / "__init__.py").is_file():
                yield f"{folder.relative_to(root)}: no __init__.py, so import-linter does not see it"
        if not (package.source / "py.typed").is_file():
            yield f"{package.source.relative_to(root)}: no py.typed"


def _imported_by_name(node: ast.Call) -> str | None:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called not in ("import_module", "__import__") or not node.args:
        return None
    target = node.args[0]
    return target.value if isinstance(target, ast.Constant) and isinstance(target.value, str) else None


def _for_types(node: ast.AST) -> bool:
    """Whether a statement runs for type checkers only."""
    if not isinstance(node, ast.If):
        return False
    return getattr(node.test, "id", getattr(node.test, "attr", "")) == "TYPE_CHECKING"


_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")  # in the order in which `ast` has them


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements inside of one, and the handlers and cases that hold some: a tenth of the nodes."""
    return (inner for block in _BLOCKS for inner in getattr(node, block, ()))


def imports_of(path: Path, module: str) -> Iterator[Import]:
    """Every import that a module makes, relative ones made absolute, and ``import_module("literal")`` included.

    ``from a import b`` counts as an import of ``a.b``, whether that is a module or a name in one.
    """
    parents = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    text = path.read_text(encoding="utf-8")
    calls = "import_module" in text or "__import__" in text  # such a call may stand in any expression
    inside = ast.iter_child_nodes if calls else _statements
    pending: list[tuple[ast.AST, bool]] = [(ast.parse(text, str(path)), False)]
    while pending:
        node, lazy = pending.pop()
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = parents[: len(parents) - node.level + 1] if node.level else []
            base = [*base, *([node.module] if node.module else [])]
            names = [".".join([*base, alias.name]) for alias in node.names]
        elif isinstance(node, ast.Call) and (target := _imported_by_name(node)) and not target.startswith("."):
            names = [target]
        for name in names:
            yield Import(getattr(node, "lineno", 0), name, lazy)
        deferred = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _for_types(node)
        pending.extend((child, deferred) for child in inside(node))


def _loaded_at_once(module: str, imports: dict[str, list[Import]]) -> set[str]:
    """The modules of a package that importing it loads: what its ``__init__`` imports, and so on."""
    loaded: set[str] = set()
    pending = [module]
    while pending:
        name = pending.pop()
        while name not in imports and "." in name:
            name = name.rpartition(".")[0]
        if name not in imports or name in loaded:
            continue
        loaded.add(name)
        pending.extend(found.name for found in imports[name] if not found.lazy)
        pending.append(name.rpartition(".")[0])
    return loaded


def check_declared(root: Path, packages: list[Package], distributions: dict[str, str]) -> Iterator[str]:
    """Violations of "what a package imports, it declares"."""
    siblings = {package.module: package for package in packages}
    for package in packages:
        paths = _modules(package.source)
        imports = {name: list(imports_of(path, name)) for name, path in paths.items()}
        at_once = _loaded_at_once(package.module, imports)
        imported = set()
        for module, found in ((module, found) for module, all_found in imports.items() for found in all_found):
            if found.top in sys.stdlib_module_names or found.top == package.module:
                continue
            sibling = siblings.get(found.top)
            name = sibling.name if sibling else normalize(distributions.get(found.top, found.top))
            imported.add(name)
            where = f"{paths[module].relative_to(root)}:{found.line}: imports {found.top}"
            if name not in package.required and name not in package.optional:
                yield f"{where}, but {package.name} does not declare {name}"
            elif name not in package.required and not found.lazy and module in at_once:
                yield f"{where} whenever {package.module} is imported, but {name} is only an extra of {package.name}"
        for sibling in siblings.values():
            specifier = package.required.get(sibling.name)
            if specifier is None:
                continue
            if specifier.replace(" ", "") != f"=={sibling.version}":
                yield f"{package.name}: declares {sibling.name}{specifier}, which should be =={sibling.version}"
            if sibling.name not in imported and package.root != root:
                yield f"{package.name}: declares {sibling.name}, but never imports it"


def violations(root: Path) -> list[str]:
    """Every violation under ``root``, in a stable order."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8")).get("tool", {})
    distributions: dict[str, str] = settings.get("architecture", {}).get("distributions", {})
    packages = read_packages(root)
    if not packages:
        return [f"{root}: no packages/*/pyproject.toml"]
    return [
        *check_contract(root, packages),
        *check_folders(root, packages),
        *check_declared(root, packages, distributions),
    ]


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else ".").resolve()
    found = violations(root)
    for line in found:
        print(line)
    print(f"architecture: {len(read_packages(root))} packages, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
