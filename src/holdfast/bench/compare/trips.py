"""How many requests one pair needs, counted on the wire."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from ..contestant import host_and_port
from .crew import CrewFailed
from .load import Load
from .sample import Sample
from .stage import Result, Stage

TURNS = 20
WARM = 3


def count_trips(stage: Stage, load: Load, seconds: float) -> list[Result]:
    """Count what clients send to the servers for an uncontended pair, by a proxy before each."""
    from ...testing.servers import Proxy

    results = [Result(kind) for kind in stage.all()]
    with ExitStack() as stack:
        place = stage.ground.place
        proxies = []
        for address in place.addresses:
            proxy = stack.enter_context(Proxy(host_and_port(address)[1]))
            proxies.append(proxy)
            place = place._replace(url=place.url.replace(address, f"127.0.0.1:{proxy.port}"))
        there = tuple(f"127.0.0.1:{proxy.port}" for proxy in proxies)
        place = place._replace(addresses=there)
        counter = _Counter(stage, proxies)
        for result in results:
            try:
                stage.crew.run(result.kind, place, Load(turns=WARM), 0.0)
                for _ in range(2):  # halves
                    before = counter.requests()
                    stage.crew.run(result.kind, place, Load(turns=TURNS), 0.0)
                    requests = (counter.requests() - before) / TURNS
                    result.samples.append(Sample(1.0, [0], extra={"requests/pair": requests}))
            except CrewFailed as failed:
                result.problem = stage.ground.problem() or str(failed)
            result.note = counter.note
        stage.crew.forget()  # connections through proxies that are about to end
    return results


class _Counter:
    """Requests so far: chunks that clients sent, or what the server itself has counted."""

    def __init__(self, stage: Stage, proxies: list[Any]) -> None:
        self._proxies = proxies
        # HTTP/2 sends frames of its own now and then, which are no requests.
        self._etcd: Any = stage.ground.servers[0] if stage.engine == "etcd" else None
        nodes = len(proxies)
        self.note = f"to {nodes} nodes in all" if nodes > 1 else ""

    def requests(self) -> float:
        """Return how many there were."""
        if self._etcd is not None:
            return float(self._etcd.metric("grpc_server_handled_total"))
        return float(sum(proxy.requests for proxy in self._proxies))
