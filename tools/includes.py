"""Files of the repository as pages of the documentation: a hook of MkDocs.

A line ``--8<-- "FILE"`` of a page stands for a file, whose links are meant where it lies: those into ``docs`` are
written anew for the page.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

_LINE = re.compile(r'^--8<-- "([^"]+)"$', re.MULTILINE)
_LINK = re.compile(r"\]\((?!\w+:|[/#])([^)#\s]+)")


def moved(text: str, file: str, page: str) -> str:
    """The text of ``file`` with its links into ``docs`` as they are written in ``page``, a path in ``docs``.

    >>> moved("[memory](docs/memory.md#views), [MIT](LICENSE), [top](#top)", "CHANGELOG.md", "changelog.md")
    '[memory](memory.md#views), [MIT](LICENSE), [top](#top)'
    >>> moved("[devices](../../docs/devices.md)", "packages/tg-hcq/README.md", "packages/tg-hcq.md")
    '[devices](../devices.md)'
    """

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), found[1]))
        if not target.startswith("docs/"):
            return found[0]
        return f"]({posixpath.relpath(target, posixpath.dirname(f'docs/{page}'))}"

    return _LINK.sub(link, text)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by MkDocs with the text of each page."""
    return _LINE.sub(
        lambda line: moved(Path(line[1]).read_text(encoding="utf-8"), line[1], page.file.src_uri).rstrip(), markdown
    )
