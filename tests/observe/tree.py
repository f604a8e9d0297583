"""A tree of processes that contend for locks and are observed: tree.py URL DATABASE HISTORY PORT.

The parent forks the workers, as gunicorn does, and serves the metrics of all of them. Workers take
locks and write through a guard until a line comes on standard input; each writes down what its own
calls gave, one JSON object per line. The first worker stops itself once (SIGSTOP) between getting
a lock and writing. Standard output: `pid …` of the first worker, `stopped NAME TOKEN`, `done`.
Its end, or the end of standard input, ends all.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import Any

import holdfast
from holdfast.guards import SQLGuard
from holdfast.observe import from_environ

WORKERS = 3
TTL = 3.0  # longer than a busy machine lets anybody stand still by itself
NAMES = ("orders/1001", "orders/1002")


class Worker:
    """One process that takes locks."""

    def __init__(self, number: int, url: str, database: str, history: Path) -> None:
        self._number = number
        self._dice = random.Random(number)
        self._history = (history / f"{number}.jsonl").open("w", buffering=1)
        self._stop = history / "stop"
        self._client = holdfast.connect(url, ttl=TTL)
        self._database = sqlite3.connect(database, timeout=60)
        self._guard = SQLGuard(self._database)
        for observer in from_environ(os.environ):  # the client has them already
            self._guard.listen(observer)

    def run(self) -> None:
        """Work until told to stop."""
        rounds = 0
        while not self._stop.exists():
            rounds += 1
            self._try(pause=self._number == 0 and rounds == 5)
            time.sleep(self._dice.uniform(0.002, 0.02))
        self._client.close()
        self._database.close()
        self._history.close()

    def _note(self, what: str, **more: object) -> None:
        self._history.write(json.dumps({"what": what, **more}) + "\n")

    def _try(self, pause: bool) -> None:
        lock = self._client.lock(NAMES[0] if pause else self._dice.choice(NAMES))
        patience = -1 if pause else self._dice.choice((0, 0.03, 0.5))
        try:
            lease = lock.acquire(timeout=patience)
        except holdfast.EngineUnavailable:
            self._note("error")
            return
        if lease is None:
            self._note("timeout" if patience else "busy")
            return
        self._note("success")
        if pause:
            say("stopped", lease.name, lease.token)
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            with self._guard.transaction(lease.name, lease):
                time.sleep(self._dice.uniform(0.001, 0.01))
            self._note("accepted", name=lease.name, token=lease.token)
        except holdfast.StaleToken:
            self._note("refused", name=lease.name, token=lease.token)
        lease.release()
        self._note("ended")
        if lease.lost_reason is not None:
            self._note("lost", reason=lease.lost_reason)


def say(*words: object) -> None:
    """Tell the test something."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main(url: str, database: str, history: str, port: str) -> None:
    """Fork the workers, serve their numbers, and end after they have."""
    folder = Path(history)
    children = []
    for number in range(WORKERS):
        child = os.fork()
        if child == 0:
            Worker(number, url, database, folder).run()
            os._exit(0)
        children.append(child)
    say("pid", children[0])

    from prometheus_client import CollectorRegistry, multiprocess, start_http_server

    processes: Any = multiprocess
    registry = CollectorRegistry()
    processes.MultiProcessCollector(registry)
    server, serving = start_http_server(int(port), "127.0.0.1", registry)
    threading.Thread(target=stop_when_told, args=[folder / "stop"]).start()
    for child in children:
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        processes.mark_process_dead(child)
    say("done")
    sys.stdin.readline()
    server.shutdown()
    server.server_close()
    serving.join()


def stop_when_told(flag: Path) -> None:
    """Let the workers stop."""
    sys.stdin.readline()
    flag.touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
