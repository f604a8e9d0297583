"""A real Prometheus, which scrapes and judges as often as a test can wait for."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from .ports import LOOPBACK
from .process import ServerProcess
from .programs import prometheus_program

_SCRAPE = "1s"  # a busy machine answers within that
_JUDGE = "200ms"


class PrometheusServer(ServerProcess):
    """A Prometheus that scrapes these ports of this machine, and evaluates these rule files."""

    name = "prometheus"
    start_timeout = 60.0

    def __init__(self, targets: Sequence[int], rules: Sequence[Path] = ()) -> None:
        super().__init__()
        self._targets = [f"{LOOPBACK}:{port}" for port in targets]
        self._rules = [str(path.absolute()) for path in rules]

    def query(self, expression: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Return what an expression is now: value by labels, without the metric's name."""
        result = self._get(f"/api/v1/query?{urlencode({'query': expression})}")["result"]
        return {
            tuple(sorted((k, v) for k, v in one["metric"].items() if k != "__name__")): float(
                one["value"][1]
            )
            for one in result
        }

    def firing(self) -> list[dict[str, str]]:
        """Return the labels of every alert that fires now."""
        alerts = self._get("/api/v1/alerts")["alerts"]
        return [alert["labels"] for alert in alerts if alert["state"] == "firing"]

    def until(self, met: Callable[[], bool], timeout: float = 60.0) -> None:
        """Wait until something is so; fail with the log if it does not come."""
        end = time.monotonic() + timeout
        while not met():
            if time.monotonic() > end:
                raise self._failure(f"showed in vain for {timeout:g} s")
            time.sleep(0.1)

    def _get(self, path: str) -> Any:
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=30)
        try:
            connection.request("GET", path)
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        if answer["status"] != "success":
            raise self._failure(f"refused {path}: {answer.get('error')}")
        return answer["data"]

    # --- What it says to ServerProcess. ---

    def prepare(self) -> None:
        """Write its configuration: JSON, which is YAML too."""
        configuration = {
            "global": {"scrape_interval": _SCRAPE, "evaluation_interval": _JUDGE},
            "rule_files": self._rules,
            "scrape_configs": [
                {
                    "job_name": "holdfast",
                    "scrape_timeout": _SCRAPE,
                    "static_configs": [{"targets": self._targets}],
                }
            ],
        }
        (self.directory / "prometheus.yml").write_text(json.dumps(configuration))

    def command_line(self) -> list[str]:
        """Return the program and its arguments."""
        return [
            prometheus_program(),
            f"--config.file={self.directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.directory / 'data'}",
            f"--web.listen-address={LOOPBACK}:{self.port}",
        ]

    def is_ready(self) -> bool:
        """Say whether it serves."""
        return "Server is ready to receive web requests" in self.log()
