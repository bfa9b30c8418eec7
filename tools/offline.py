"""The documentation can be read without a network, also as files: a hook of MkDocs that fails the build otherwise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)")
_IN_STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)")
_NOT_LOADED = re.compile(r"<link\b[^>]*\brel=[\"']?canonical[^>]*>")


def foreign(text: str) -> list[str]:
    """What a page or a style sheet loads from elsewhere; that a reader may follow a link is no loading.

    >>> foreign('<script src="https://example.org/a.js"></script> <a href="https://example.org">there</a>')
    ['https://example.org/a.js']
    >>> foreign("body { background: url(//example.org/b.png) } p { background: url(c.png) }")
    ['//example.org/b.png']
    """
    text = _NOT_LOADED.sub("", text)
    return _LOADED.findall(text) + _IN_STYLE.findall(text)


def on_post_build(config: Any, **_: Any) -> None:
    """Called by MkDocs when the site is there.

    Raises:
      RuntimeError: a page loads something from elsewhere, or the search has no index that files can load.
    """
    site = Path(config.site_dir)
    for path in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        if found := foreign(path.read_text(encoding="utf-8")):
            raise RuntimeError(f"{path.relative_to(site)} loads {', '.join(found)}")
    # The plugin `offline` writes the index as a script once every page is there.
    if "material/offline" not in config.plugins or not (site / "javascripts" / "iframe-worker.js").exists():
        raise RuntimeError("the search would find nothing where pages are opened as files")
