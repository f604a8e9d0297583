"""Options of an engine may stand in its URL: what the command line could not say otherwise."""

import pytest

import holdfast
from holdfast.model import Fault

REDIS = "redis://localhost:6379/0"


def option(client: holdfast.Client, name: str) -> object:
    """Return an option of the client's engine, as it has it."""
    return getattr(client.engine, name)


def test_options_in_the_url() -> None:
    """They reach the engine; those of the link stay in the URL."""
    client = holdfast.connect(f"{REDIS}?replicas=2&quarantine=yes&max_ttl=60&db=3")
    assert option(client, "replicas") == 2
    assert client.guarantees.max_ttl == 60
    assert Fault.SERVER_RESTART in client.guarantees.exclusive
    assert client.engine.location.endswith("/3")


def test_options_of_redlock() -> None:
    """The same for several nodes."""
    client = holdfast.connect("redlock://a,b,c?quorum=3&node_timeout=0.2")
    assert option(client, "quorum") == 3


def test_an_argument_wins() -> None:
    """What the code says is stronger than what the URL says."""
    client = holdfast.connect(f"{REDIS}?replicas=2", replicas=1)
    assert option(client, "replicas") == 1


@pytest.mark.parametrize(
    "query",
    ["replicas=two", "quarantine=perhaps", "max_ttl=long", "on_clock_step=dance", "replica=1"],
)
def test_nonsense_is_refused(query: str) -> None:
    """A value or a name that means nothing raises one sentence that shows it."""
    with pytest.raises(ValueError, match=query.split("=")[0]):
        holdfast.connect(f"{REDIS}?{query}")
