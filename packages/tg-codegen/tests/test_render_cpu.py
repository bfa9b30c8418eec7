"""Every conformance case through LLVM and through C, compiled and run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tg_codegen.conformance import Case, cases, thread_case
from tg_codegen.render_c import ClangRenderer
from tg_codegen.render_llvm import LLVMRenderer
from tg_codegen.renderer import Renderer

Compile = Callable[[str, str], Callable[..., None]]
CPU: dict[str, Renderer] = {"llvm": LLVMRenderer(), "clang": ClangRenderer(), "gcc": ClangRenderer()}
WIDE = [pytest.param(b, c, id=f"{b}-{c.name}") for b, r in CPU.items() for c in [*cases(r, lanes=8), thread_case()]]


@pytest.mark.parametrize(("backend", "case"), WIDE)
def test_conformance(backend: str, case: Case, request: pytest.FixtureRequest) -> None:
    build: Compile = request.getfixturevalue(backend)
    launch = build(CPU[backend].render(case.name, case.uops), case.name)
    buffers: list[Any] = case.buffers()
    launch(*buffers, vals=case.vals)
    case.check(buffers)
