"""Every Python example in the README and in docs/ runs as it stands, and so do the examples."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.testing.servers import (
    DynamoDBServer,
    EtcdServer,
    PostgresServer,
    RedisServer,
    ZooKeeperServer,
    dynamodb_program,
    etcd_program,
    need,
    postgres_program,
    redis_program,
    zookeeper_program,
)

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
REDIS = re.compile(r"\b([a-z][\w.-]*):6379\b")  # a host that an example names
DYNAMODB = "http://localhost:8000"  # where an example finds DynamoDB Local
ZOOKEEPER = "localhost:2181"
ETCD = "localhost:2379"
POSTGRES = "localhost:5432"
AWS = {
    "AWS_ACCESS_KEY_ID": "any",
    "AWS_SECRET_ACCESS_KEY": "any",
    "AWS_DEFAULT_REGION": "local",
}
BLOCKS = [
    pytest.param(page, block, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize(("page", "block"), BLOCKS)
def test_example_in_document_runs(page: Path, block: str, tmp_path: Path) -> None:
    """A reader who copies the example gets what the page says; the servers it names are real."""
    with ExitStack() as stack:
        servers = {
            host: stack.enter_context(RedisServer(need(redis_program)))
            for host in sorted(set(REDIS.findall(block)))
        }
        text = REDIS.sub(lambda found: f"127.0.0.1:{servers[found[1]].port}", block)
        if DYNAMODB in text:
            local = stack.enter_context(DynamoDBServer(need(dynamodb_program)))
            text = text.replace(DYNAMODB, local.url)
        if ZOOKEEPER in text:
            keeper = ZooKeeperServer(need(zookeeper_program), options={"minSessionTimeout": 4000})
            text = text.replace(ZOOKEEPER, f"127.0.0.1:{stack.enter_context(keeper).port}")
        if ETCD in text:
            single = stack.enter_context(EtcdServer(need(etcd_program)))
            text = text.replace(ETCD, f"127.0.0.1:{single.port}")
        if POSTGRES in text:
            database = stack.enter_context(PostgresServer(need(postgres_program)))
            text = text.replace(POSTGRES, f"127.0.0.1:{database.port}")
        run_example(text, tmp_path / "example.py")


def run_example(block: str, script: Path) -> None:
    """Run an example in a process of its own, which must succeed."""
    script.write_text(block, encoding="utf-8")
    command = ["-W", "error"]
    if "def test_" in block or "class Test" in block:
        command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"]
        if "Conformance" in block:  # the suite has test files of its own
            command.append("--collect-only")
    done = subprocess.run(
        [sys.executable, *command, str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **AWS},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_pitfall_is_shown_wrong_and_then_right() -> None:
    """Each part of the page has code that fails as it says, asserted, and code that does not."""
    page = (ROOT / "docs" / "pitfalls.md").read_text(encoding="utf-8")
    parts = page.split("\n## ")[1:]
    assert len(parts) == 10
    for part in parts:
        blocks = BLOCK.findall(part)
        assert [block.split("\n")[0] for block in blocks] == ["# wrong", "# right"], part[:40]
        assert all("assert " in block for block in blocks), part[:40]


def test_demo_takes_turns_with_rising_tokens() -> None:
    """What `make demo` runs: six turns, nobody twice at a time, tokens rising."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [ROOT / "examples" / "taking_turns"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, done.stderr
    tokens = [int(token) for token in re.findall(r"token (\d+)", done.stdout)]
    assert len(tokens) == 6
    assert tokens == sorted(set(tokens))


def test_links_between_documents_lead_somewhere() -> None:
    """A relative link in any page points to a file or folder that exists."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def anchors(page: Path) -> set[str]:
    """Return what a link into a page may name: its headings, as they become part of an address."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_into_documents_name_a_heading() -> None:
    """A link to a part of a page leads to a heading that is there."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]*)\)", text):
            other = page.parent / target if target else page
            assert anchor in anchors(other), f"{page.name} links to {target}#{anchor}"
