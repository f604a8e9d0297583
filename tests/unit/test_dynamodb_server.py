"""DynamoDB Local starts, comes back and stands still as told, and nobody else reaches it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing.servers import DynamoDBServer, ServerMissing, dynamodb_program, need, programs
from holdfast.testing.servers.ports import LOOPBACK
from tests.unit.waiting import PATIENCE, until

pytestmark = pytest.mark.slow

TABLE = {
    "TableName": "things",
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}
LISTENING = "0A"  # in /proc/net/tcp


@pytest.fixture(autouse=True)
def program() -> programs.DynamoDBProgram:
    """DynamoDB Local itself: without it there is nothing to test."""
    return need(dynamodb_program)


def connect(server: DynamoDBServer, read_timeout: float = 20) -> Any:
    boto3, config = pytest.importorskip("boto3"), pytest.importorskip("botocore.config")
    return boto3.client(
        "dynamodb",
        endpoint_url=server.url,
        region_name="local",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=config.Config(read_timeout=read_timeout, retries={"max_attempts": 0}),
    )


def listeners(pid: int | str, port: int) -> list[str]:
    """Return where, in the network of that process, somebody listens on a port: hex addresses."""
    found = []
    for family in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{family}").read_text().splitlines()[1:]:
            address, state = line.split()[1], line.split()[3]
            if state == LISTENING and int(address.rpartition(":")[2], 16) == port:
                found.append(address.rpartition(":")[0])
    return found


def refuses(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), PATIENCE).close()
    except ConnectionRefusedError:
        return True
    return False


def test_reach_and_restart() -> None:
    """It listens on all interfaces, but those are not this machine's: one door on 127.0.0.1 is.

    One that stands still answers later; a restart keeps the port, and the data if told.
    """
    with DynamoDBServer(persist=True) as server:
        port = server.port
        assert os.readlink(f"/proc/{server.pid}/ns/net") != os.readlink("/proc/self/ns/net")
        assert listeners("self", port) == ["0100007F"]
        assert listeners(server.pid, 8000) != []
        assert "java" in Path(f"/proc/{server.pid}/cmdline").read_text()
        connect(server).create_table(**TABLE)
        server.pause()
        with pytest.raises(Exception, match="Read timeout"):
            connect(server, read_timeout=0.2).list_tables()
        server.resume()
        server.restart(keep_data=True)
        assert server.port == port
        assert connect(server).list_tables()["TableNames"] == ["things"]
    until(lambda: refuses(port))


def test_killed_process_takes_it_along() -> None:
    """Server and door die with a process that had no time to stop them."""
    script = (
        "import os, signal\n"
        "from holdfast.testing.servers import DynamoDBServer\n"
        "server = DynamoDBServer().start()\n"
        "print(server.pid, server.port, server.directory, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pid, port, directory = done.stdout.split()
    until(lambda: not Path(f"/proc/{pid}").exists())
    until(lambda: refuses(int(port)))
    subprocess.run(["rm", "-r", directory], check=True)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Java, the jar, a namespace: each is asked for in a sentence that says what to do."""
    with monkeypatch.context() as patch:
        patch.setenv("HOLDFAST_DYNAMODB_LOCAL", str(tmp_path))
        with pytest.raises(ServerMissing, match="run tools/dynamodb-local"):
            dynamodb_program()
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        with pytest.raises(ServerMissing, match="apt-get install default-jre-headless"):
            dynamodb_program()
    with monkeypatch.context() as patch:
        patch.setattr(programs, "_refusal_to_go_apart", lambda: "It gives no namespace.")
        with pytest.raises(
            ServerMissing, match=r"nothing can hide it here: It gives no name.*root"
        ):
            dynamodb_program()
