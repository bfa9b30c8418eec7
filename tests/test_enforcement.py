"""Every rule of the repository is seen to fail: each test plants one violation in a copy of the tree."""

from __future__ import annotations

import configparser
import contextlib
import io
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tools.architecture
from tools.architecture import Import

Run = Callable[..., subprocess.CompletedProcess[str]]
Copied = Callable[[], Path]
Check = Callable[[Path], subprocess.CompletedProcess[str]]


def home(tree: Path, package: str) -> Path:
    """The folder of a package's modules in the copied tree."""
    return tree / "bench" if package == "bench" else tree / "packages" / package / "src" / package.replace("-", "_")


def plant(tree: Path, package: str, module: str, text: str) -> Path:
    """Write ``text`` to a new module of a package of the copied tree."""
    path = home(tree, package) / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def lint_imports(run: Run, tree: Path) -> subprocess.CompletedProcess[str]:
    return run(tree, "lint-imports", "--no-logo", "--no-cache")


def test_a_clean_tree_passes(tree: Path, run: Run) -> None:
    imports = lint_imports(run, tree)
    assert imports.returncode == 0, imports.stdout
    architecture = run(tree, "python", "-m", "tools.architecture")
    assert architecture.returncode == 0, architecture.stdout
    version = run(tree, "python", "-m", "tools.version")
    assert version.returncode == 0, version.stdout


@pytest.fixture(scope="module")
def architecture() -> Iterator[Check]:
    """What ``tools.architecture`` says of a tree and whether it finds nothing, in this process: the thousand modules
    that all copies of the tree have in common are parsed once."""
    kept: dict[tuple[str, str, str], list[Import]] = {}

    def imports_of(path: Path, module: str) -> Iterator[Import]:
        key = module, path.name, path.read_text(encoding="utf-8")
        if key not in kept:
            kept[key] = list(parsed(path, module))
        yield from kept[key]

    def check(tree: Path) -> subprocess.CompletedProcess[str]:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status = tools.architecture.main([str(tree)])
        return subprocess.CompletedProcess([], status, said.getvalue())

    parsed = tools.architecture.imports_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tools.architecture, "imports_of", imports_of)
        yield check


PLANTED = [
    ("layers", "tg-shape", "one.py", "import tg_lazy", "tg_shape.one -> tg_lazy"),
    ("layers", "tg-runtime", "late.py", "def late():\n    import tg_hcq", "tg_runtime.late -> tg_hcq"),
    (
        "layers",
        "tg-dtype",
        "typed.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import tg_codegen",
        "tg_dtype.typed -> tg_codegen",
    ),
    ("layers", "tg-dtype", "measured.py", "import bench.case", "tg_dtype.measured -> bench.case"),
    ("standard-library", "tg-codegen", "arrays.py", "import numpy", "tg_codegen.arrays -> numpy"),
    ("standard-library", "tg-lazy", "compiled.py", "import llvmlite.ir", "tg_lazy.compiled -> llvmlite"),
    (
        "devices",
        "tg-runtime",
        "backends/opencl/planted.py",
        "import tg_runtime.backends.cpu.pool",
        "tg_runtime.backends.opencl.planted -> tg_runtime.backends.cpu.pool",
    ),
    (
        "devices",
        "tg-runtime",
        "backends/null/device.py",
        "import tg_runtime.backends.disk.device",
        "tg_runtime.backends.null.device -> tg_runtime.backends.disk.device",
    ),
    (
        "runtime",
        "tg-runtime",
        "memory/planted.py",
        "from ..execution.engine import realize",
        "tg_runtime.memory.planted -> tg_runtime.execution.engine",
    ),
    (
        "ptx",
        "tg-runtime",
        "emulators/ptx/bits.py",
        "from .sums import Sums",
        "tg_runtime.emulators.ptx.bits -> tg_runtime.emulators.ptx.sums",
    ),
    (
        "rooms",
        "tg-codegen",
        "ir/planted.py",
        "from ..plan.actions import parse",
        "tg_codegen.ir.planted -> tg_codegen.plan.actions",
    ),
    (
        "rooms",
        "tg-codegen",
        "plan/planted.py",
        "from ..emit.access import Access",
        "tg_codegen.plan.planted -> tg_codegen.emit.access",
    ),
    (
        "plan",
        "tg-codegen",
        "plan/gpu/planted.py",
        "from ..cpu.registers import best_tile",
        "tg_codegen.plan.gpu.planted -> tg_codegen.plan.cpu.registers",
    ),
    ("emit", "tg-codegen", "emit/values.py", "from .stages import Stages", "emit.values -> tg_codegen.emit.stages"),
    (
        "languages",
        "tg-codegen",
        "render/wgsl/planted.py",
        "from ..c.terms import CStyleTerms",
        "tg_codegen.render.wgsl.planted -> tg_codegen.render.c.terms",
    ),
    (
        "uops",
        "tg-codegen",
        "render/planted.py",
        "from ..nest.nest import Nest",
        "tg_codegen.render.planted -> tg_codegen.nest.nest",
    ),
    ("dtypes", "tg-dtype", "floats.py", "from .catalog import dtypes", "tg_dtype.floats -> tg_dtype.catalog"),
    (
        "shapes",
        "tg-shape",
        "rules/planted.py",
        "from ..shapetracker import ShapeTracker",
        "tg_shape.rules.planted -> tg_shape.shapetracker",
    ),
    (
        "lazy",
        "tg-lazy",
        "graph/planted.py",
        "from ..fusion.step import Step",
        "tg_lazy.graph.planted -> tg_lazy.fusion.step",
    ),
    (
        "lazy",
        "tg-lazy",
        "order/planted.py",
        "from ..kernel.frames import frames_of",
        "tg_lazy.order.planted -> tg_lazy.kernel.frames",
    ),
    (
        "hcq",
        "tg-hcq",
        "core/planted.py",
        "from ..hostq.memory import HostMemory",
        "tg_hcq.core.planted -> tg_hcq.hostq.memory",
    ),
    ("numpy", "tg-hcq", "arrays.py", "import numpy", "tg_hcq.arrays -> numpy"),
    ("llvmlite", "tg-frontend", "compiled.py", "import llvmlite", "tg_frontend.compiled -> llvmlite"),
    (
        "bench",
        "bench",
        "libraries/base.py",
        "from ..workload import Workload",
        "bench.libraries.base -> bench.workload",
    ),
    ("acyclic", "tg-dtype", "chicken.py", "from . import egg", "chicken"),
    ("acyclic", "tg-dtype", "egg.py", "def lay():\n    from . import chicken", "egg"),
    ("dtypes", "tg-dtype", "nowhere.py", "", "tg_dtype.nowhere"),
    ("shapes", "tg-shape", "nowhere.py", "", "tg_shape.nowhere"),
    ("lazy", "tg-lazy", "nowhere.py", "", "tg_lazy.nowhere"),
    ("rooms", "tg-codegen", "nowhere.py", "", "tg_codegen.nowhere"),
    ("runtime", "tg-runtime", "nowhere.py", "", "tg_runtime.nowhere"),
    ("hcq", "tg-hcq", "nowhere.py", "", "tg_hcq.nowhere"),
    ("frontend", "tg-frontend", "nowhere.py", "", "tg_frontend.nowhere"),
]
"""A contract, a module of a package, what stands at its end, and what the linter says of it: an import in the wrong
direction, a part that imports what it should ask for, a cycle, a module in no room."""


@pytest.fixture(scope="module")
def broken(copied: Copied, run: Run) -> dict[str, str]:
    """What the linter says of each contract that is broken, by the contract: of a tree with every violation at once."""
    tree = copied()
    for _, package, module, text, _ in PLANTED:
        path = home(tree, package) / module
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n{text}\n")
    done = lint_imports(run, tree)
    assert done.returncode == 1, done.stdout
    contracts = configparser.ConfigParser()
    contracts.read(tree / ".importlinter", encoding="utf-8")
    names = {contracts[section].get("name"): section.rpartition(":")[2] for section in contracts.sections()}
    _, *told = re.split(r"^(.+)\n-{3,}\n", done.stdout, flags=re.MULTILINE)  # titles, each with what is under it
    return {names[title]: text for title, text in zip(told[::2], told[1::2], strict=True) if title in names}


@pytest.mark.parametrize(("contract", "package", "module", "text", "named"), PLANTED)
def test_a_module_that_breaks_a_contract(
    broken: dict[str, str], contract: str, package: str, module: str, text: str, named: str
) -> None:
    assert named in broken[contract], broken[contract]


UNSEEN = [
    ("tg-dtype", "read.py", "import yaml\n", "read.py:1: imports yaml, but tg-dtype does not declare yaml"),
    ("tg-shape", "up.py", "import tg_lazy\n", "imports tg_lazy, but tg-shape does not declare tg-lazy"),
    (
        "tg-lazy",
        "late.py",
        "import importlib\n\nimportlib.import_module('tg_runtime.device')\n",
        "late.py:3: imports tg_runtime, but tg-lazy does not declare tg-runtime",
    ),
    ("tg-codegen", "nested/planted.py", "", "nested: no __init__.py"),
]
"""A module of a package, its text, and what is said of it."""


@pytest.fixture(scope="module")
def told(copied: Copied, architecture: Check) -> str:
    """What is said of a tree with all of these modules."""
    tree = copied()
    for package, module, text, _ in UNSEEN:
        plant(tree, package, module, text)
    done = architecture(tree)
    assert done.returncode == 1, done.stdout
    return done.stdout


@pytest.mark.parametrize("named", [row[-1] for row in UNSEEN])
def test_what_the_linter_does_not_see(told: str, named: str) -> None:
    assert named in told, told


def test_an_extra_that_the_package_cannot_be_imported_without(tree: Path, architecture: Check) -> None:
    plant(tree, "tg-runtime", "planted.py", "import numpy\n")
    start = plant(tree, "tg-runtime", "__init__.py", "def later():\n    from . import planted\n")
    named = "imports numpy whenever tg_runtime is imported, but numpy is only an extra of tg-runtime"
    assert named not in architecture(tree).stdout
    start.write_text("from .planted import numpy\n", encoding="utf-8")
    done = architecture(tree)
    assert done.returncode == 1 and named in done.stdout, done.stdout


def test_a_package_outside_the_contract(tree: Path, architecture: Check) -> None:
    home = tree / "packages" / "tg-extra"
    (home / "src" / "tg_extra").mkdir(parents=True)
    (home / "src" / "tg_extra" / "__init__.py").touch()
    (home / "pyproject.toml").write_text('[project]\nname = "tg-extra"\nversion = "0.1.0"\n', encoding="utf-8")
    done = architecture(tree)
    assert done.returncode == 1
    assert "tg_extra is not among the root_packages" in done.stdout
    assert "tg_extra is in no layers contract" in done.stdout
    assert "packages/tg-extra/src/tg_extra: no py.typed" in done.stdout


def test_a_contract_about_nothing(tree: Path, architecture: Check) -> None:
    edit(tree / ".importlinter", "    tg_runtime.backends.*\n", "    tg_runtime.apparatus.*\n")
    done = architecture(tree)
    assert done.returncode == 1
    assert "tg_runtime.apparatus.* matches no module" in done.stdout
    assert "no independence contract holds all of tg-runtime's tg.devices modules" in done.stdout


def test_a_sibling_that_is_declared_and_not_used(tree: Path, architecture: Check) -> None:
    edit(tree / "packages/tg-dtype/pyproject.toml", "dependencies = []", 'dependencies = ["tg-shape==9.9.9"]')
    done = architecture(tree)
    assert done.returncode == 1
    assert "tg-dtype: declares tg-shape, but never imports it" in done.stdout
    assert "tg-dtype: declares tg-shape==9.9.9, which should be ==" in done.stdout


def test_versions_that_differ(tree: Path, run: Run) -> None:
    edit(tree / "packages/tg-hcq/pyproject.toml", 'version = "', 'version = "9.')
    done = run(tree, "python", "-m", "tools.version")
    assert done.returncode == 1 and "packages/tg-hcq/pyproject.toml: 9." in done.stdout, done.stdout


def test_one_command_changes_every_version(tree: Path, run: Run, architecture: Check) -> None:
    done = run(tree, "python", "-m", "tools.version", "3.2.1rc1")
    assert done.returncode == 0 and done.stdout == "3.2.1rc1\n", done.stdout
    assert architecture(tree).returncode == 0
    assert run(tree, "python", "-m", "tools.version", "latest").returncode == 1


def test_a_lint(tree: Path, run: Run) -> None:
    plant(tree, "tg-dtype", "planted.py", "import os\n")
    done = run(tree, "ruff", "check", "--no-cache", "packages/tg-dtype")
    assert done.returncode == 1 and "F401" in done.stdout, done.stdout


def test_a_type_error(tree: Path, run: Run) -> None:
    planted = plant(tree, "tg-dtype", "planted.py", "def bits(name) -> int:\n    return str(name)\n")
    done = run(tree, "mypy", "--cache-dir", tree / "cache", planted)
    assert done.returncode == 1 and "[no-untyped-def]" in done.stdout and "[return-value]" in done.stdout, done.stdout


def test_a_wrong_example(tree: Path, run: Run) -> None:
    planted = plant(tree, "tg-dtype", "planted.py", '"""Arithmetic.\n\n>>> 1 + 1\n3\n"""\n')
    done = run(tree, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", planted)
    assert done.returncode == 1 and "1 failed" in done.stdout, done.stdout


def test_a_module_without_examples_that_cannot_be_imported(tree: Path, run: Run) -> None:
    planted = plant(tree, "tg-dtype", "planted.py", '"""Nothing."""\n\nimport no_such_module\n')
    done = run(tree, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", planted)
    assert done.returncode == 2 and "No module named 'no_such_module'" in done.stdout, done.stdout


def test_a_module_named_alone_runs_once(repository: Path, run: Run) -> None:
    """Though its package imports it: it declares a setting, which is an error the second time."""
    for module, status in (("device/dev.py", 0), ("cache/folder.py", 5)):  # 5: there are no examples in it
        path = repository / "packages/tg-runtime/src/tg_runtime" / module
        done = run(repository, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", path)
        assert done.returncode == status, done.stdout


def test_a_wrong_readme(tree: Path, run: Run) -> None:
    readme = tree / "packages/tg-dtype/README.md"
    readme.write_text("# Title\n\n```python\nx = 1\n```\n\nand so\n\n```python\nassert x == 2\n```\n", encoding="utf-8")
    done = run(tree, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", readme)
    assert done.returncode == 1 and "README.md:10" in done.stdout, done.stdout


def test_a_warning_is_an_error(tree: Path, run: Run) -> None:
    test = tree / "packages/tg-dtype/tests/test_planted.py"
    test.write_text("import warnings\n\ndef test_it():\n    warnings.warn('old')\n", encoding="utf-8")
    done = run(tree, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", test)
    assert done.returncode == 1 and "UserWarning: old" in done.stdout, done.stdout


@pytest.mark.parametrize(("allowed", "status"), [("# nothing\n", 1), ("^Skipped: no GPU", 0)])
def test_a_skip_that_grew(tree: Path, run: Run, allowed: str, status: int) -> None:
    test = tree / "packages/tg-dtype/tests/test_planted.py"
    test.write_text("import pytest\n\ndef test_it():\n    pytest.skip('no GPU here')\n", encoding="utf-8")
    (tree / "skips").write_text(allowed, encoding="utf-8")
    done = run(tree, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--allowed-skips", "skips", test)
    assert done.returncode == status, done.stdout
    assert ("does not allow" in done.stdout) == bool(status)


def test_exploring_runs_property_tests_alone_with_other_examples(tree: Path, run: Run) -> None:
    test = tree / "packages/tg-dtype/tests/test_planted.py"
    test.write_text(
        "from hypothesis import given, settings, strategies as some\n\n"
        "@settings(max_examples=5)\n@given(x=some.integers(0, 10**9))\ndef test_it(x):\n    print('drawn', x)\n\n"
        "def test_plain():\n    assert False\n",
        encoding="utf-8",
    )
    drawn = []
    for seed in ("1", "2", "1"):
        options = ("-q", "-rP", "-p", "no:cacheprovider", "--explore", f"--hypothesis-seed={seed}")
        done = run(tree, "python", "-m", "pytest", *options, test)
        assert done.returncode == 0 and "1 passed, 1 deselected" in done.stdout, done.stdout
        drawn.append([line for line in done.stdout.splitlines() if line.startswith("drawn")])
    assert drawn[0] == drawn[2] != drawn[1]


GRIDS = """
import pytest

@pytest.fixture(params=["interpreted", "compiled"])
def backend(request):
    return request.param

@pytest.mark.parametrize("name, axes", [("sum", 1), ("max", 1), ("cat", 2)])
@pytest.mark.parametrize("dtype", [int, float, bool])
def test_grid(name, axes, dtype, backend):
    pass

@pytest.mark.drawn(2)
@pytest.mark.parametrize("seed", range(9))
def test_seeds(seed):
    pass

@pytest.mark.parametrize("case", range(9))
def test_list(case):
    pass

def test_device(backend):
    pass

class Conforms:
    def test_sums(self):
        pass

    def test_copies(self):
        pass

@pytest.mark.alike
class TestOld(Conforms):
    pass

@pytest.mark.alike
class TestNew(Conforms):
    pass
"""


def test_a_run_of_the_whole_suite_draws_cases_of_grids(tmp_path: Path, run: Run, repository: Path) -> None:
    (tmp_path / "test_planted.py").write_text(GRIDS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = test_planted.py\n", encoding="utf-8")
    shutil.copy(repository / "conftest.py", tmp_path)

    def cases(*options: str) -> list[str]:
        done = run(tmp_path, "python", "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", *options)
        return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]

    drawn, again, other = cases("--draw", "1"), cases("--draw", "1"), cases("--draw", "2")
    assert drawn == again != other
    for found in (drawn, other):
        grid = [case for case in found if case.startswith("test_grid")]
        assert 3 <= len(grid) < 9
        for value in ("interpreted", "compiled", "sum-1", "max-1", "cat-2", "int", "float", "bool"):
            assert any(value in case for case in grid), value
        assert sum(case.startswith("test_seeds") for case in found) == 2
        assert sum(case.startswith("test_list") for case in found) == 9
        assert sum(case.startswith("test_device") for case in found) == 1
        assert sorted(case.partition("::")[2] for case in found if "::" in case) == ["test_copies", "test_sums"]
    assert len(cases("--whole")) == len(cases("-k", "test_")) == 18 + 9 + 9 + 2 + 4


def test_a_test_draws_of_what_it_goes_through(
    drawn: Callable[[range, int], tuple[int, ...]], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request.config.option, "draw", None)
    assert drawn(range(9), 2) == tuple(range(9))
    monkeypatch.setattr(request.config.option, "draw", 1)
    found = [drawn(range(9), 2) for _ in range(200)]
    assert all(first < second for first, second in found) and {n for pair in found for n in pair} == set(range(9))
    assert drawn(range(2), 5) == (0, 1)


@pytest.mark.slow
def test_an_import_from_above_in_an_isolated_environment(tree: Path, run: Run) -> None:
    test = tree / "packages/tg-shape/tests/test_planted.py"
    test.write_text("def test_it():\n    import tg_runtime\n", encoding="utf-8")
    done = run(tree, "hatch", "run", "+package=shape", "isolated:test", "-k", "planted")
    assert done.returncode != 0 and "No module named 'tg_runtime'" in done.stdout, done.stdout


@pytest.mark.slow
def test_a_wheel_that_needs_what_dist_does_not_hold(tree: Path, run: Run) -> None:
    edit(tree / "packages/tg-lazy/pyproject.toml", "tg-shape==0", "tg-shape==99")
    done = run(tree, "python", "-m", "tools.wheels")
    assert done.returncode != 0 and "tg-shape==99" in done.stdout, done.stdout


@pytest.mark.slow
def test_a_broken_link_in_the_docs(tree: Path, run: Run) -> None:
    index = tree / "docs" / "index.md"
    index.write_text(index.read_text(encoding="utf-8") + "\n[nowhere](nowhere.md)\n", encoding="utf-8")
    done = run(tree, "hatch", "run", "docs")
    assert done.returncode != 0 and "nowhere.md" in done.stdout, done.stdout
