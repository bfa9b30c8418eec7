"""`examples/enforce_architecture`: another repository under our rules, green as it is and red when it breaks one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def shop(repository: Path, tmp_path: Path) -> Path:
    """The sample repository after the steps of its README."""
    copy = tmp_path / "shop"
    sample = repository / "examples" / "enforce_architecture"
    shutil.copytree(sample, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "tools").mkdir(exist_ok=True)
    shutil.copy2(repository / "tools" / "architecture.py", copy / "tools")
    return copy


def lint(run: Run, shop: Path) -> tuple[int, str]:
    """The task ``lint`` of the sample: both programs, as its pyproject.toml lists them."""
    imports = run(shop, "lint-imports", "--no-logo", "--no-cache")
    architecture = run(shop, "python", "tools/architecture.py")
    return imports.returncode | architecture.returncode, imports.stdout + architecture.stdout


def test_the_shop_is_in_order_and_works(shop: Path, run: Run) -> None:
    status, output = lint(run, shop)
    assert status == 0 and "4 kept, 0 broken" in output and "3 packages, 0 violations" in output, output
    program = (
        "from shop_core import Item; from shop_store.stores.sqlite import SqliteStore; from shop_web import price_tag\n"
        "store = SqliteStore(); store.put(Item('tea', 350)); print(price_tag(store, 'tea'))"
    )
    assert run(shop, "python", "-c", program).stdout == "tea: 3.50\n"


@pytest.mark.parametrize(
    ("path", "text", "named"),
    [
        ("shop-core/src/shop_core/item.py", "import shop_web", "shop_core.item -> shop_web"),
        ("shop-core/src/shop_core/item.py", "import sqlite3", "shop_core.item -> sqlite3"),
        (
            "shop-store/src/shop_store/stores/memory.py",
            "import shop_store.stores.sqlite",
            "shop_store.stores.memory -> shop_store.stores.sqlite",
        ),
        ("shop-web/src/shop_web/__init__.py", "import yaml", "imports yaml, but shop-web does not declare pyyaml"),
        (
            "shop-core/src/shop_core/item.py",
            "__import__('shop_store.store')",
            "imports shop_store, but shop-core does not declare shop-store",
        ),
        (
            "shop-core/src/shop_core/item.py",
            "match 1:\n case 1:\n  for _ in ():\n   pass\n  else:\n   try: pass\n   finally:\n    import shop_store",
            "imports shop_store, but shop-core does not declare shop-store",
        ),
        ("shop-store/src/shop_store/drivers/redis.py", "", "shop_store/drivers: no __init__.py"),
    ],
)
def test_a_violation_is_seen(shop: Path, run: Run, path: str, text: str, named: str) -> None:
    target = shop / "packages" / path
    target.parent.mkdir(exist_ok=True)
    with target.open("a", encoding="utf-8") as file:
        file.write(f"\n{text}\n")
    status, output = lint(run, shop)
    assert status == 1 and named in output, output
