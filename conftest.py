"""Test configuration shared by every package: examples in Markdown, a cache of the run's own, the ledger of skips, the
cases of grids that a run of the whole suite draws, and that no plan of a kernel fails unnoticed. Ctrl-C works in tests
wherever they run.

Python blocks of a Markdown file run as one program from top to bottom, in the order in which a reader meets them;
a block marked ``python no-test`` is left out. A block of another kind right after one of them is what it prints, where
``...`` stands for anything.
"""

from __future__ import annotations

import atexit
import contextlib
import doctest
import gc
import importlib
import importlib.util
import io
import os
import random
import re
import signal
import sys
import tempfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import pytest
from _pytest.doctest import DoctestModule
from _pytest.pathlib import CouldNotResolvePathError, resolve_pkg_root_and_module_name

# What is frozen after each file does not count as old, so that the collector would go through everything again and
# again: an eighth of the time of small tests.
gc.set_threshold(5_000, 20, 50)

_BYTECODE = "tinytg-bytecode-"
_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
if "PYTEST_XDIST_WORKER" not in os.environ:
    # Before any of our packages is imported, which the next conftest does, and for the workers and the programs that
    # tests start as well.
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="tinytg-cache-", ignore_cleanup_errors=True))
    os.environ["CACHEDIR"] = _FOLDERS[-1].name
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):  # the programs that tests start would compile every module
        _FOLDERS.append(tempfile.TemporaryDirectory(prefix=_BYTECODE, ignore_cleanup_errors=True))
        os.environ["PYTHONPYCACHEPREFIX"] = _FOLDERS[-1].name
    os.environ["FALLBACK"] = "0"  # a plan that fails is an error here, in the programs that tests start as well
if Path(os.environ.get("PYTHONPYCACHEPREFIX", "")).name.startswith(_BYTECODE):
    # Rewriting the assertions of all files takes each worker longer than importing the files: it is done once, not in
    # each run. Programs that tests start keep to the run's own folder, as they also compile what is in copies.
    sys.pycache_prefix = str(Path(__file__).parent / ".pytest_cache" / "bytecode")
    sys.dont_write_bytecode = False

import hypothesis  # noqa: E402 - whose modules have assertions, too

# How long an example takes, or to draw one, says something of the machine and what else runs there.
_quick = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("quick", _quick)
hypothesis.settings.register_profile("ci", _quick, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("explore", _quick, derandomize=False, print_blob=True)

_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```(?!python|sh\b)\w+\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
_PRINTED = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


Value = TypeVar("Value")


class Block(NamedTuple):
    """A Python block of a Markdown file.

    Attributes:
      line: the lines of the file before it.
      code: the program.
      printed: what it prints; None where the page does not show that.
    """

    line: int
    code: str
    printed: str | None


class MarkdownProgram(pytest.Item):
    """The Python blocks of one file, at the lines where they stand."""

    def __init__(self, *, blocks: list[Block], **arguments: object) -> None:
        super().__init__(**arguments)  # type: ignore[arg-type]
        self.blocks = blocks

    def runtest(self) -> None:
        device = self._drawn_device()
        if not device:
            self._run()
            return
        from tinytg import Context

        try:
            with Context(DEV=device):
                self._run()
        except Exception as error:
            error.add_note(f"(the page was run on the device {device}, as DEV={device} does)")
            raise

    def _drawn_device(self) -> str:
        """A device for a page of the reference, whose examples are the same on each: a run of the whole suite draws
        one, as of other tests that have nothing but the backend that they run on. Empty for the one in force."""
        seed = self.config.option.draw
        if seed is None or self.path.parent != Path(__file__).parent / "docs" / "reference":
            return ""
        return random.Random(f"{seed} {self.path.name}").choice(["CPU", "NUMPY"])

    def _run(self) -> None:
        names: dict[str, object] = {"__name__": "__main__"}
        for block in self.blocks:
            program = compile("\n" * block.line + block.code, str(self.path), "exec")
            printed = io.StringIO()
            try:
                with contextlib.redirect_stdout(printed):
                    exec(program, names)
            finally:
                print(printed.getvalue(), end="")
            if block.printed is not None:
                self._compare(block, printed.getvalue())

    def _compare(self, block: Block, printed: str) -> None:
        checker, shown = doctest.OutputChecker(), block.printed or ""
        if not checker.check_output(shown, printed, _PRINTED):
            example = doctest.Example(block.code, shown)
            difference = checker.output_difference(example, printed, _PRINTED | doctest.REPORT_UDIFF)
            pytest.fail(f"{self.path.name}:{block.line}: the block prints something else\n{difference}", pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name}: Python blocks"


class MarkdownFile(pytest.File):
    def collect(self) -> Iterator[MarkdownProgram]:
        text = self.path.read_text(encoding="utf-8")
        blocks = [Block(text.count("\n", 0, found.start(1)), found[1], found[2]) for found in _BLOCK.finditer(text)]
        if blocks:
            yield MarkdownProgram.from_parent(self, name="python", blocks=blocks)


class WithoutExamples(pytest.Module):
    """A module with no examples to run: that it can be imported is all that there is to see."""

    def collect(self) -> list[pytest.Item]:
        _ = self.obj
        return []


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    explores = config.getoption("--explore")
    hypothesis.settings.load_profile("explore" if explores else "ci" if os.environ.get("CI") else "quick")
    for folder in _FOLDERS:
        config.add_cleanup(folder.cleanup)
    config.option.draw = config.workerinput["draw"] if hasattr(config, "workerinput") else _seed(config)
    config.addinivalue_line("markers", "fallbacks: plans of kernels fail in this test on purpose")
    config.addinivalue_line("markers", "drawn(n): a run of the whole suite draws n of this test's cases")
    config.addinivalue_line("markers", "alike: of a file's classes that say so, such a run draws one for each test")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["draw"] = node.config.option.draw


def _fallbacks() -> tuple[int, str]:
    """How many plans of kernels have failed in this process, and the last of them."""
    module = sys.modules.get("tg_codegen.fallback")  # not there where a package under the code generator is tested
    if module is None:
        return 0, ""
    return module.fallbacks.count, str(next(iter(reversed(module.fallbacks.latest)), ""))


def _no_fallbacks(item: pytest.Item) -> Generator[None, object, object]:
    """Fails an item in which the plan of a kernel failed, whoever caught the error."""
    before, _ = _fallbacks()
    result = yield
    after, last = _fallbacks()
    if after != before and item.get_closest_marker("fallbacks") is None:
        pytest.fail(f"{after - before} plans of kernels failed; the last: {last}", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    for key, setting in _declared().items():
        if key not in _settings:
            _settings[key] = setting.value
    return (yield from _no_fallbacks(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _no_fallbacks(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    result = yield from _no_fallbacks(item)
    if nextitem is None or nextitem.path != item.path:
        _settings_as_before()
        _no_trace_at_exit()
        _anomalies_forgotten()
        _keep_what_there_is()
    return result


_settings: dict[str, object] = {}


def _declared() -> dict[str, Any]:
    """The settings of the packages that are imported."""
    module = sys.modules.get("tg_lazy.settings.context")
    return {} if module is None else dict(module.ContextVar.registry)


def _settings_as_before() -> None:
    """Fails the last item of a file that left a setting changed: what other files then see depends on their order."""
    found = {key: setting.value for key, setting in _declared().items()}
    changed = [f"{key} is {value!r}" for key, value in found.items() if _settings.setdefault(key, value) != value]
    _settings.update(found)
    if changed:
        pytest.fail(f"tests of this file leave settings changed: {', '.join(changed)}", pytrace=False)


def _no_trace_at_exit() -> None:
    """Fails the last item of a file that recorded spans outside of ``profile(path)``: a process that did so leaves a
    trace in the folder for temporary files when it ends."""
    profiler: Any = sys.modules.get("tg_runtime.telemetry.profiler")
    if profiler is not None and profiler._written_at_exit:
        atexit.unregister(profiler._write)
        profiler._written_at_exit = False
        pytest.fail("tests of this file record spans outside of profile(path)", pytrace=False)


def _anomalies_forgotten() -> None:
    """Nodes of other files do not record which method made them because a test of this one looked for anomalies: where
    that is asked for once it is done ever after, and is a walk over the whole stack for each node."""
    nodes, setting = sys.modules.get("tg_lazy.graph.lazybuffer"), _declared().get("ANOMALY")
    if nodes is not None and setting is not None and not setting.value:
        vars(nodes)["caller"] = vars(sys.modules["tg_lazy.graph.origin"])["caller"]
        setting.__class__ = sys.modules["tg_lazy.settings.context"].ContextVar  # as if nobody had overridden it yet


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Generator[None, list[Any], list[Any]]:
    """Looks for examples in modules that have some, for blocks in Markdown, and for tests where pytest would."""
    found = yield
    if file_path.suffix == ".md":
        return [*found, MarkdownFile.from_parent(parent, path=file_path)]
    examples = [collector for collector in found if isinstance(collector, DoctestModule)]
    if examples:
        _package_imported(file_path)
    if not examples or ">>> " in file_path.read_text(encoding="utf-8"):
        return found
    rest = [collector for collector in found if collector not in examples]
    return rest or [WithoutExamples.from_parent(parent, path=file_path)]


def _package_imported(path: Path) -> None:
    """Imports the package that a module is in, as its users do.

    pytest imports the packages around a module first, and then runs the module, though the package has imported it:
    twice, then, where the file is named alone.
    """
    try:
        root, module = resolve_pkg_root_and_module_name(path)
    except CouldNotResolvePathError:
        return
    package = module.rpartition(".")[0]
    with contextlib.suppress(Exception):  # pytest meets it, too, and tells it
        spec = importlib.util.find_spec(package.partition(".")[0])
        if spec is not None and spec.origin is not None and Path(spec.origin).parent.parent == root:  # no other copy
            importlib.import_module(package)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--allowed-skips",
        action="append",
        metavar="FILE",
        help="fail the run when a test is skipped for a reason that no line (a regular expression) of FILE matches",
    )
    parser.addoption(
        "--explore",
        action="store_true",
        help="only property tests, with new examples; --hypothesis-seed=N repeats them",
    )
    parser.addoption(
        "--sample",
        type=int,
        default=1,
        metavar="N",
        help="one test in N of each file, one at the least, always the same ones: their names choose them",
    )
    parser.addoption("--whole", action="store_true", help="every case, where a run of the whole suite draws some")
    parser.addoption("--draw", type=int, metavar="SEED", help="the cases that a run with this seed drew")


def _seed(config: pytest.Config) -> int | None:
    """What draws cases of grids; None where every case runs: somebody chose files or names, or wants them all."""
    chosen = config.args_source is not pytest.Config.ArgsSource.TESTPATHS or config.option.keyword
    if chosen or config.option.whole or config.option.explore or config.option.sample > 1:
        return None
    given: int | None = config.option.draw
    return random.SystemRandom().randrange(1 << 32) if given is None else given


@pytest.hookimpl(trylast=True)  # after what is left out by its marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--explore"):
        ordinary = [item for item in items if not hasattr(getattr(item, "obj", None), "hypothesis")]
        config.hook.pytest_deselected(items=ordinary)
        items[:] = [item for item in items if item not in set(ordinary)]
    if (one_in := config.getoption("--sample")) > 1:
        sample = _sampled(items, one_in)
        config.hook.pytest_deselected(items=[item for item in items if item not in sample])
        items[:] = [item for item in items if item in sample]
    if (seed := config.option.draw) is not None:
        drawn = {item for cases in _by_test(_of_one_class(items, seed)) for item in _drawn(cases, seed)}
        config.hook.pytest_deselected(items=[item for item in items if item not in drawn])
        items[:] = [item for item in items if item in drawn]


def _of_one_class(items: list[pytest.Item], seed: int) -> list[pytest.Item]:
    """Without the tests of classes that are alike, such as a device's for each architecture, but in one of these."""
    classes: dict[tuple[Path, str], list[str]] = {}
    places = {item: item.nodeid.rpartition("::")[::2] for item in items if item.get_closest_marker("alike")}
    for item, (of, name) in places.items():
        classes.setdefault((item.path, name), []).append(of)
    kept = {key: random.Random(f"{seed} {key[1]}").choice(found) for key, found in classes.items()}
    return [item for item in items if item not in places or kept[item.path, places[item][1]] == places[item][0]]


def _by_test(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    """The cases of each test."""
    found: dict[str, list[pytest.Item]] = {}
    for item in items:
        found.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return list(found.values())


def _drawn(cases: list[pytest.Item], seed: int) -> list[pytest.Item]:
    """Those of a test's cases that a run of the whole suite draws.

    Of a grid, each value of each parameter (a method, a dtype, a device) comes at least once, with any values of the
    others. Of a test that says ``drawn(n)``, n of its cases, and of one with nothing but the ``backend`` that it runs
    on, one. Of any other, and where ``dense`` asks for each, all.
    """
    first = cases[0]
    mark, order = first.get_closest_marker("drawn"), random.Random(f"{seed} {first.nodeid.partition('[')[0]}")
    shuffled = order.sample(cases, len(cases))
    if mark is not None:
        return shuffled[: mark.args[0]]
    if first.get_closest_marker("dense") is not None:
        return cases
    values = {case: _values(case) for case in cases}
    if all(len(own) == 1 and next(iter(own))[0] == _BACKEND for own in values.values()):
        return shuffled[:1]
    width = max(map(len, values.values()))
    if width < 2:
        return cases
    seen, drawn = set[tuple[object, ...]](), list[pytest.Item]()
    for most in range(width, 0, -1):  # those with the most values that are new
        for case in shuffled:
            if len(new := values[case] - seen) >= most:
                seen |= new
                drawn.append(case)
    return drawn


_BACKEND = "backend"


def _values(case: pytest.Item) -> set[tuple[object, ...]]:
    """A value for each dimension of the grid: what one ``parametrize`` or one fixture gives."""
    callspec = getattr(case, "callspec", None)
    if callspec is None:
        return set()
    dimension = {name: name for name in callspec.params}
    for mark in case.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs["argnames"]
        together = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        dimension |= dict.fromkeys(together, together[0])
    found: dict[str, list[object]] = {}
    for name, value in callspec.params.items():
        plain = isinstance(value, (bool, int, float, str, bytes, type(None)))
        found.setdefault(dimension[name], []).append((type(value), value) if plain else id(value))
    return {(name, *parts) for name, parts in found.items()}


def _sampled(items: list[pytest.Item], one_in: int) -> set[pytest.Item]:
    """One test in ``one_in`` of each file, one at the least: no module is without a test that looks into it."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    by_name = (sorted(own, key=lambda item: (zlib.crc32(item.nodeid.encode()), item.nodeid)) for own in files.values())
    return {item for own in by_name for item in own[: -(-len(own) // one_in)]}


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    _keep_what_there_is()


def _keep_what_there_is() -> None:
    """Hundreds of thousands of objects, tests and what caches hold, live to the end: no collection of garbage that a
    test asks for, or that comes by itself, need walk over those that were there before the test's file."""
    gc.collect()
    gc.freeze()


class Drawn(Protocol):
    """What the fixture ``drawn`` gives."""

    def __call__(self, values: Sequence[Value], most: int) -> tuple[Value, ...]: ...


@pytest.fixture
def drawn(request: pytest.FixtureRequest) -> Drawn:
    """``drawn(values, n)``: n of the values that a test goes through by itself, in their order, where a run of the
    whole suite draws; each of them elsewhere."""
    order = random.Random(f"{request.config.option.draw} {request.node.nodeid}")

    def draw(values: Sequence[Value], most: int) -> tuple[Value, ...]:
        if request.config.option.draw is None:
            return tuple(values)
        return tuple(values[n] for n in sorted(order.sample(range(len(values)), min(most, len(values)))))

    return draw


@pytest.fixture
def some_dtypes(request: pytest.FixtureRequest, drawn: Drawn) -> None:
    """For conformance classes of devices that compile or execute slowly: float32 and three other dtypes of theirs,
    drawn for each test. NUMPY and CPU go through every one in each run."""
    every = request.instance.dtypes
    chosen = drawn([dtype for dtype in every if dtype.name != "float32"], 3)
    request.instance.dtypes = tuple(dtype for dtype in every if dtype.name == "float32" or dtype in chosen)


@pytest.fixture
def collected() -> None:
    """What earlier tests left behind is collected now, so that none of it goes while the test counts memory."""
    gc.collect()


def _skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in _skips_not_allowed(terminalreporter, config):
        terminalreporter.write_line(line, red=True)
    if config.option.draw is not None:
        terminalreporter.write_line(f"cases of grids were drawn: --draw {config.option.draw}; all of them: --whole")
    if _listings is not None:
        for line in (*_listings.differences, _listings.line):
            terminalreporter.write_line(line, red=bool(_listings.differences))


def _skips_not_allowed(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> list[str]:
    files = config.getoption("--allowed-skips")
    if not files:
        return []
    lines = [line for file in files for line in Path(file).read_text(encoding="utf-8").splitlines()]
    ledger = " and ".join(files)
    allowed = [re.compile(line) for line in lines if line.strip() and not line.startswith("#")]
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if not hasattr(report, "wasxfail")]
    return [
        f"a skip that {ledger} does not allow: {report.nodeid}: {_skip_reason(report)}"
        for report in skipped
        if not any(pattern.search(_skip_reason(report)) for pattern in allowed)
    ]


_listings: Any = None


def _amd_listings() -> Any:
    """What came of comparing each of AMD's code objects that the run compiled, in whatever process, with LLVM's
    listings of them. Where the software cards' decoder is not installed (packages by themselves), nothing did."""
    if not _FOLDERS or importlib.util.find_spec("tg_hcq") is None or importlib.util.find_spec("tools") is None:
        return None
    from tools import amd_listings

    found = amd_listings.code_objects(Path(_FOLDERS[0].name)) if amd_listings.available() else {}
    return amd_listings.compared([found[key] for key in sorted(found)]) if found else None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    global _listings
    _listings = _amd_listings()
    if session.exitstatus == 0 and _listings is not None and _listings.differences:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.exitstatus == 0 and reporter and _skips_not_allowed(reporter, session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
