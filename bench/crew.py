"""The processes that run the libraries, as the measuring process holds them."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .checkpoints import KEPT, kept
from .isa import HELD
from .turns import MACHINE

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("absent", "unsupported", "failed")


class WorkerDied(Exception):
    """A worker ended, or took too long; the message says which."""


def sources(root: Path) -> list[str]:
    """The folders of this repository that hold importable packages."""
    return [str(path) for path in (*sorted(root.glob("packages/*/src")), root / "src", root)]


def environment(
    threads: int, cache: Path, extra_path: Path | None = None, tree: Path = ROOT, isa: str = ""
) -> dict[str, str]:
    """What a worker's environment is: that many threads for every library, and all caches on disk under ``cache``.

    Args:
      threads: how many.
      cache: the folder of all caches.
      extra_path: a folder to look for programs in first.
      tree: the checkout whose packages are imported; the bench itself is always this one.
      isa: the instruction set that libraries are held to, of :data:`bench.isa.HELD`; the machine's own if empty.
    """
    env = dict(os.environ)
    for name in ("CACHEDIR", "CACHEDB", "DEBUG", "CCACHE"):
        env.pop(name, None)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "CPU_COUNT", "NUM_CPU_THREADS", "NPROC"):
        env[name] = str(threads)
    env |= {
        "PYTHONPATH": os.pathsep.join([*sources(tree)[:-1], str(ROOT)]),
        # Nothing in the folder that a worker starts in is a module of ours.
        "PYTHONSAFEPATH": "1",
        "PYTHONWARNINGS": "ignore",
        "XDG_CACHE_HOME": str(cache),
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(cache / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "DEV": "CPU",
        KEPT: str(kept(os.environ)),
    } | HELD.get(isa, {})
    if extra_path is not None:
        env["PATH"] = f"{extra_path}{os.pathsep}{env.get('PATH', '')}"
    return env


def clang_folder(scratch: Path) -> Path | None:
    """A folder with a ``clang`` in it, for libraries that ask for that name; None where that changes nothing."""
    if shutil.which("clang"):
        return None
    for major in range(25, 13, -1):
        found = shutil.which(f"clang-{major}")
        if found:
            folder = scratch / "bin"
            folder.mkdir(exist_ok=True)
            link = folder / "clang"
            if not link.exists():
                link.symlink_to(found)
            return folder
    return None


class Member:
    """A worker process.

    Args:
      python: the interpreter that has the library.
      library: its name.
      threads: how many threads and cores it may use.
      env: its environment.
      log: the file that gets what it prints.
    """

    def __init__(self, python: str, library: str, threads: int, env: dict[str, str], log: Path) -> None:
        self.library, self.log = library, log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [python, "-m", "bench.worker", library.partition("@")[0], str(threads)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=env, cwd=tempfile.gettempdir(),
                start_new_session=True,
            )  # fmt: skip
        if hasattr(os, "sched_setaffinity"):
            cores = sorted(os.sched_getaffinity(0))[:threads]
            os.sched_setaffinity(self.process.pid, cores)
        self._rest = b""

    def ask(self, do: str, timeout_s: float = 600.0, **arguments: Any) -> dict[str, Any]:
        """Sends a command and waits for its answer.

        Raises:
          WorkerDied: the worker ended or did not answer in time; it is gone then.
        """
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise WorkerDied(self._end()) from None
        return dict(json.loads(self._line(timeout_s)))

    def _line(self, timeout_s: float) -> bytes:
        assert self.process.stdout is not None
        out = self.process.stdout.fileno()
        end = time.monotonic() + timeout_s
        while b"\n" not in self._rest:
            with selectors.DefaultSelector() as waiting:  # whatever the number of the file, which select() bounds
                waiting.register(out, selectors.EVENT_READ)
                ready = waiting.select(max(0.0, end - time.monotonic()))
            if not ready:
                self.close()
                raise WorkerDied(f"no answer within {timeout_s:.0f} s")
            more = os.read(out, 1 << 16)
            if not more:
                raise WorkerDied(self._end())
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _end(self) -> str:
        status = self.process.wait()
        self.close()
        return f"ended with status {status}{self.last_words()}"

    def last_words(self) -> str:
        """The last line that it printed."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f": {lines[-1][:200]}" if lines else ""

    def cpu_seconds(self) -> float:
        """Processor time it has used; 0 where the system does not say, or once it is gone."""
        try:
            with open(f"/proc/{self.process.pid}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """Ends the process."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass
        try:
            self.process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Crew:
    """One worker for each library, started when it is first wanted and again after it died.

    Args:
      threads: how many threads each library may use.
      peers_python: the interpreter that has the other libraries.
      scratch: a folder for caches and logs.
      trees: for members called ``LIBRARY@NAME``, the checkout of this repository that each imports.
      isa: the instruction set that every member is held to; the machine's own if empty.
    """

    def __init__(
        self, threads: int, peers_python: str, scratch: Path, trees: Mapping[str, Path] | None = None,
        isa: str = "",
    ) -> None:
        self.threads, self.peers_python, self.scratch, self.isa = threads, peers_python, scratch, isa
        self.trees = dict(trees or {})
        self.extra_path = clang_folder(scratch)
        self.members: dict[str, Member] = {}

    def python(self, library: str) -> str:
        """The interpreter for a library."""
        ours = library in ("tinytg", "numpy", MACHINE) or library in self.trees
        return sys.executable if ours else self.peers_python

    def launch(self, library: str, cache: Path, settings: Mapping[str, str] | None = None) -> Member:
        """A new worker with its caches under ``cache``, and with settings in its environment."""
        tree = self.trees.get(library, ROOT)
        env = environment(self.threads, cache, self.extra_path, tree, self.isa) | dict(settings or {})
        log = self.scratch / f"{library}.log"
        return Member(self.python(library), library, self.threads, env, log)

    def member(self, library: str) -> Member:
        """The worker of a library."""
        found = self.members.get(library)
        if found is not None and found.process.poll() is not None:
            found.close()
            found = None
        if found is None:
            found = self.members[library] = self.launch(library, self.scratch / f"cache-{library}")
        return found

    def cpu_seconds(self) -> float:
        """Processor time of all workers that run, and of this process."""
        return sum(member.cpu_seconds() for member in self.members.values()) + time.process_time()

    def close(self) -> None:
        """Ends all workers."""
        for member in self.members.values():
            member.close()
        self.members.clear()
