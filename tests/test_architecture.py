"""Who may import whom, and the other rules that keep src/holdfast readable.

Nothing here runs the package: each module is parsed, and its imports are compared with the
tables below. To add a module, find its layer; to break a rule, change the table and say why.
"""

import ast
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "holdfast"
PAGES = ROOT / "docs" / "engines"
MAX_LINES = 400

# A layer may import itself and those above it in this list. Names are inside holdfast, each
# stands for all below it, the longest one that fits decides; "" is holdfast itself. What holds
# for _async holds for its twin in _sync.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("model", "rules", "errors", "events", "names", "fencing"),
    ("_concurrency", "clocks", "dice"),
    (
        *("lock_table", "memory_state", "sqlite_store", "host_sockets", "filesystems", "scripts"),
        *("redis_link", "redis_record", "redlock_settings", "redlock_tally", "server_clock"),
        *("sorted_queue", "etcd_link", "etcd_record", "etcd_form", "etcd_session"),
        *("zookeeper_link", "zookeeper_record", "postgres_link", "postgres_record"),
        *("dynamodb_link", "dynamodb_record", "dynamodb_draft"),
        "_async",  # engine.py and what engines share
    ),
    ("_async.engines", "_async.wrappers"),
    (
        *("_async.acquire", "_async.keeper", "_async.renewal", "_async.lease"),
        *("_async.chores", "_async.runtime", "_async.tenure"),
    ),
    ("_async.recipes",),
    ("_async.client", "registry", "signals"),
    ("", "aio", "guards", "_async.guards", "observe", "recovery", "postgres"),
    ("doctor", "advice"),
    ("testing", "cli", "bench", "lab", "dashboard", "__main__"),
)

# Stricter than the layers: the left may not import the right.
NEVER = (("_async.recipes", "_async.engines", "recipes build claims and never see an engine"),)

# The left may import, of holdfast, only the right.
ONLY = {
    "guards": (*LAYERS[0], "guards", "_async.guards"),
    "_async.guards": (*LAYERS[0], "guards", "_async.guards"),
    "observe": (*LAYERS[0], "observe"),
}

# All that layer 0 may import from elsewhere: nothing that has a clock, a socket or a thread.
PURE = (
    *("__future__", "abc", "base64", "binascii", "bisect", "collections", "dataclasses"),
    *("datetime.timedelta", "enum", "functools", "hashlib", "heapq", "itertools", "json", "math"),
    *("operator", "re", "string", "struct", "types", "typing", "unicodedata", "urllib.parse"),
)

# Colour-aware modules, and the only places that may import them.
COLOURED = ("asyncio", "threading", "concurrent", "multiprocessing", "_thread")
COLOUR_AWARE = (
    *("_concurrency", "redis_link", "etcd_link", "postgres_link", "dynamodb_link"),
    *("testing", "cli", "bench", "lab"),
)

# The only places that may print: commands, and what a command reports with.
PRINTERS = ("cli", "bench", "testing.simulation")


@dataclass(frozen=True)
class Import:
    """One imported thing: `module.name`, absolute; `typing_only` is under `if TYPE_CHECKING:`."""

    module: str
    name: str | None
    line: int
    typing_only: bool

    @property
    def target(self) -> str:
        return f"{self.module}.{self.name}" if self.name else self.module

    def inside_holdfast(self, names: frozenset[str]) -> str | None:
        """Return the holdfast module that this reaches, None if it leads elsewhere."""
        if not is_in(self.module, "holdfast"):
            return None
        # `name` may be a module or something in one.
        target = self.target.removeprefix("holdfast").lstrip(".")
        return target if target in names else self.module.removeprefix("holdfast").lstrip(".")


@dataclass(frozen=True)
class Module:
    """A module of holdfast, by its name inside the package ("" is the package itself)."""

    name: str
    text: str
    is_package: bool = False

    @property
    def colourless(self) -> str:
        """The name that the tables know: a twin stands where its source stands."""
        return ".".join("_async" if part == "_sync" else part for part in self.name.split("."))

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    def imports(self) -> Iterator[Import]:
        """Yield every import, also those inside functions: late is still a dependency."""
        yield from self._imports_in(self.tree.body, typing_only=False)

    def _imports_in(self, nodes: list[ast.stmt], typing_only: bool) -> Iterator[Import]:
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield Import(alias.name, None, node.lineno, typing_only)
            elif isinstance(node, ast.ImportFrom):
                source = self._absolute(node)
                for alias in node.names:
                    yield Import(source, alias.name, node.lineno, typing_only)
            else:
                guarded = isinstance(node, ast.If) and "TYPE_CHECKING" in (
                    getattr(node.test, "id", None),
                    getattr(node.test, "attr", None),
                )
                for field, value in ast.iter_fields(node):
                    for block in _blocks(value):
                        inside = typing_only or (guarded and field == "body")
                        yield from self._imports_in(block, inside)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        here = ["holdfast", *self.name.split(".")] if self.name else ["holdfast"]
        up = node.level - 1 if self.is_package else node.level
        return ".".join(here[: len(here) - up] + ([node.module] if node.module else []))


def _blocks(value: object) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of statements in a field: a body, or those of handlers and cases."""
    if isinstance(value, list):
        if value and isinstance(value[0], ast.stmt):
            yield value
        for item in value:
            if isinstance(item, ast.ExceptHandler | ast.match_case):
                yield item.body


def read_modules() -> dict[str, Module]:
    """Return all modules of the package by name."""
    modules = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        modules[name] = Module(name, path.read_text(encoding="utf-8"), is_package)
    return modules


MODULES = read_modules()
KNOWN = frozenset(place for places in LAYERS for place in places)


def is_in(name: str, *places: str) -> bool:
    """Tell whether a module is one of these or below one of them."""
    return any(name == place or name.startswith(f"{place}.") for place in places)


def layer(name: str) -> int | None:
    """Return the number of a module's layer: the longest name in the table that fits."""
    fits = [
        (len(place), number)
        for number, places in enumerate(LAYERS)
        for place in places
        if name == place or (place and is_in(name, place))
    ]
    return max(fits)[1] if fits else None


def family(name: str) -> str:
    """Return which engine a module belongs to: redis.py and redis_link.py are one engine."""
    below = name.removeprefix("_async.engines").lstrip(".").split(".")[0]
    return below.split("_")[0]


def import_findings(module: Module, names: frozenset[str]) -> Iterator[str]:
    """Yield a sentence for each import that breaks a rule."""
    own, own_layer = module.colourless, layer(module.colourless)
    if own_layer is None:
        yield f"holdfast.{module.name}: has no layer; give it one in LAYERS"
        return
    for found in module.imports():
        where = f"holdfast.{module.name}:{found.line}: imports {found.target}"
        if is_in(found.target, *COLOURED) and not is_in(own, *COLOUR_AWARE):
            yield f"{where}: only {', '.join(COLOUR_AWARE)} may"
        target_name = found.inside_holdfast(names)
        if target_name is None:
            if own_layer == 0 and not found.typing_only and not is_in(found.target, *PURE):
                yield f"{where}: layer 0 is pure"
            continue
        if {"_async", "_sync"} <= {*module.name.split("."), *target_name.split(".")}:
            yield f"{where}: one colour never imports the other"
        if found.typing_only:
            continue
        target = Module(target_name, "").colourless
        target_layer = layer(target)
        if target_layer is not None and target_layer > own_layer:
            yield f"{where}: layer {own_layer} may not import layer {target_layer}"
        for left, right, why in NEVER:
            if is_in(own, left) and is_in(target, right):
                yield f"{where}: {why}"
        for left, allowed in ONLY.items():
            if is_in(own, left) and not is_in(target, *allowed):
                yield f"{where}: {left} sees only the pure modules"
        engines = is_in(own, "_async.engines") and is_in(target, "_async.engines")
        if engines and family(target) not in ("", family(own)):
            yield f"{where}: engines never import each other"


def print_findings(module: Module) -> Iterator[str]:
    """Yield a sentence for each place that writes to the terminal and should not."""
    if is_in(module.colourless, *PRINTERS):
        return
    for node in ast.walk(module.tree):
        prints = isinstance(node, ast.Call) and getattr(node.func, "id", None) == "print"
        writes = isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.stdout"
        if prints or writes:
            yield f"holdfast.{module.name}:{getattr(node, 'lineno', 0)}: only the cli prints"


def test_imports_follow_the_layers() -> None:
    """No module reaches up, sideways into another engine, or out to a thread or a clock."""
    names = KNOWN | MODULES.keys()
    findings = [line for module in MODULES.values() for line in import_findings(module, names)]
    assert not findings, "\n".join(findings)


def test_only_the_command_line_prints() -> None:
    """A library writes to no one's terminal."""
    findings = [line for module in MODULES.values() for line in print_findings(module)]
    assert not findings, "\n".join(findings)


def test_every_module_says_its_job() -> None:
    """Each module opens with a docstring."""
    silent = [name or "__init__" for name, m in MODULES.items() if not ast.get_docstring(m.tree)]
    assert not silent, f"these have no docstring: {', '.join(silent)}"


def test_no_module_is_too_long() -> None:
    """A file has one noun. (Twins do not count: each is as long as its source.)"""
    sources = {name: m for name, m in MODULES.items() if "_sync" not in name.split(".")}
    counts = {name: module.text.count("\n") for name, module in sources.items()}
    long = [f"{name}: {count}" for name, count in counts.items() if count > MAX_LINES]
    assert not long, f"split what is longer than {MAX_LINES} lines: {', '.join(long)}"


def test_every_engine_has_a_documentation_page() -> None:
    """Each scheme that connect() understands is explained in docs/engines."""
    engines = importlib.import_module("holdfast.registry").ENGINES
    pages = {scheme: PAGES / f"{Path(entry.page).stem}.md" for scheme, entry in engines.items()}
    missing = [f"{scheme}: {page.name}" for scheme, page in pages.items() if not page.is_file()]
    assert engines
    assert not missing, f"write in docs/engines: {', '.join(missing)}"


# What the rules above say about a module that may not exist: (module, its text, the finding).
NAMES = KNOWN | {
    *("_async.engines.redis", "_async.engines.redis_link", "_async.engines.etcd"),
    *("_sync.client", "_sync.engine", "_sync.engines", "_sync.engines.etcd"),
}
REFUSED = [
    ("rules", "import time", "pure"),
    ("rules", "from datetime import datetime", "pure"),
    ("model", "def f():\n    try: ...\n    except OSError:\n        import redis", "pure"),
    ("model", "from holdfast import aio", "layer 0 may not import layer 7"),
    ("model", "from holdfast import LockError", "layer 0 may not import layer 7"),
    ("model", "from . import registry", "layer 0 may not import layer 6"),
    ("_async.engine", "from .client import AsyncClient", "layer 2 may not import layer 6"),
    ("_sync.engine", "from holdfast._sync.client import Client", "layer 2 may not"),
    ("_async.lease", "import holdfast._async.client", "layer 4 may not import layer 6"),
    ("_async.engines.redis", "from holdfast._async.engines.etcd import x", "each other"),
    ("_sync.engines.redis", "from holdfast._sync.engines import etcd", "each other"),
    ("_async.recipes.lock", "from ..engines.redis import AsyncRedis", "never see an engine"),
    ("_async.engine", "import holdfast._sync.engine", "one colour"),
    ("observe.logs", "import holdfast._concurrency", "only the pure"),
    ("guards.sql", "from holdfast import registry", "only the pure"),
    ("_async.client", "import asyncio.locks", "only _concurrency"),
    ("registry", "from concurrent.futures import Future", "only _concurrency"),
    ("somewhere", "import re", "no layer"),
]
ALLOWED = [
    ("rules", "from datetime import timedelta\nfrom collections.abc import Iterator"),
    ("rules", "from holdfast.model import Claim"),
    ("model", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from holdfast import aio"),
    ("_concurrency", "import asyncio, threading, time"),
    ("_async.inbox", "import socket\nfrom holdfast._concurrency import asleep"),
    ("_async.engines.redis", "from .redis_link import AsyncLink\nfrom . import redis_link"),
    ("_async.client", "from holdfast import registry"),
    ("_async.guards.sql", "from holdfast.errors import StaleToken\nimport sqlite3"),
    ("cli.run", "import threading\nimport holdfast"),
    ("", "from holdfast._sync.client import Client"),
]


@pytest.mark.parametrize(("name", "text", "finding"), REFUSED)
def test_rules_bite(name: str, text: str, finding: str) -> None:
    """A module that breaks a rule is reported once, for that rule."""
    findings = list(import_findings(Module(name, text), NAMES))
    assert len(findings) == 1, findings
    assert finding in findings[0]


@pytest.mark.parametrize(("name", "text"), ALLOWED)
def test_rules_let_pass(name: str, text: str) -> None:
    """A module that keeps the rules is not reported."""
    assert not list(import_findings(Module(name, text, is_package=name == ""), NAMES))


@pytest.mark.parametrize("text", ["print(1)", "import sys\nsys.stdout.write('')"])
def test_printing_is_noticed(text: str) -> None:
    """print and sys.stdout are found in a library module, and allowed in the command line."""
    assert list(print_findings(Module("_async.client", text)))
    assert not list(print_findings(Module("cli.show", text)))
