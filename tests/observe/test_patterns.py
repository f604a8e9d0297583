"""Labels never explode: what names are counted as, and how many patterns there can be."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

import holdfast
from holdfast.observe import OTHER, pattern_of, prometheus
from holdfast.observe.patterns import Patterns

NAMES = 100_000


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("orders/99999", "orders/*"),
        ("orders/99999/lines/7", "orders/*/lines/*"),
        ("orders", "orders"),
        ("report/hourly", "report/hourly"),
        ("user:1234:cart", "user:*:cart"),
        ("order-4711", "order-*"),
        ("report/2026-11-16", "report/*"),
        ("job.7f3c9e1a", "job.*"),
        ("cart/550e8400-e29b-41d4-a716-446655440000", "cart/*"),
        ("mail/alice@example.com", "mail/*.com"),
        ("s3/oauth2/v1", "s3/oauth2/v1"),
        ("42", "*"),
        (f"token/{'a' * 41}", "token/*"),
        ("größe/bücher", "größe/bücher"),
    ],
)
def test_ids_become_stars(name: str, pattern: str) -> None:
    """A segment that looks like an id is a star, one that somebody has thought of stays."""
    assert pattern_of(name) == pattern


def test_globs_come_before_the_rule() -> None:
    """The first glob that fits is the pattern; else the rule that is built in decides."""
    patterns = Patterns(["users/*/cart", "users/*"])
    assert patterns("users/alice/cart") == "users/*/cart"
    assert patterns("users/bob") == "users/*"
    assert patterns("orders/12") == "orders/*"
    assert Patterns("users/*")("users/eve") == "users/*"


def test_rule_may_be_a_function() -> None:
    """A function of the user's decides alone."""
    assert Patterns(lambda name: name.split("/")[0])("orders/99/x") == "orders"


@pytest.mark.parametrize("rule", [lambda name: 1 / 0, lambda name: None])
def test_failing_rule_loses_no_event(rule: Any, caplog: pytest.LogCaptureFixture) -> None:
    """What the rule fails for counts as the rest; that is said once."""
    patterns = Patterns(rule)
    assert {patterns(f"orders/{n}") for n in range(5)} == {OTHER}
    assert len([one for one in caplog.records if "pattern rule" in one.getMessage()]) == 1


@pytest.mark.parametrize("most", [0, -1, True, 2.5])
def test_cap_must_be_a_number(most: Any) -> None:
    """A cap that is none is refused at once."""
    with pytest.raises(ValueError, match="most"):
        prometheus(most=most)


@pytest.mark.parametrize("rule", [5, [1]])
def test_rule_must_be_one(rule: Any) -> None:
    """What is neither a function nor globs is refused at once."""
    with pytest.raises(TypeError):
        prometheus(pattern=rule)


def series(registry: CollectorRegistry) -> dict[str, set[str]]:
    """Return the resources of every family."""
    return {
        metric.name: {sample.labels["resource"] for sample in metric.samples}
        for metric in registry.collect()
        if metric.samples and "resource" in metric.samples[0].labels
    }


def test_a_hundred_thousand_names_are_one_pattern() -> None:
    """Locks on 100,000 orders make one series of each kind, and every one of them is counted."""
    registry = CollectorRegistry()
    with holdfast.connect("memory://many") as client:
        client.listen(prometheus(registry=registry))
        for number in range(NAMES // 20):
            with client.lock(f"orders/{number}"):
                pass
    assert {frozenset(found) for found in series(registry).values()} == {frozenset({"orders/*"})}
    counted = registry.get_sample_value(
        "distributed_lock_acquisitions_total", {"resource": "orders/*", "result": "success"}
    )
    assert counted == NAMES // 20


def test_a_hundred_thousand_words_stay_below_the_cap() -> None:
    """Names without any pattern: so many are kept, all others are one, from several threads."""
    registry = CollectorRegistry()
    meter: Any = prometheus(registry=registry, most=50)
    words = [f"users/{_word(number)}" for number in range(NAMES)]

    def tell(part: list[str]) -> None:
        for word in part:
            meter(
                holdfast.events.Acquired(
                    name=word,
                    engine="memory://",
                    namespace="",
                    token=1,
                    owner=word,
                    label="",
                    mode=holdfast.Mode.EXCLUSIVE,
                    ttl=30,
                    waited=0,
                )
            )

    threads = [threading.Thread(target=tell, args=(words[at::4],)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, found in series(registry).items():
        assert len(found) <= 51, name
        assert OTHER in found
    counted = [
        sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "distributed_lock_acquisitions_total"
    ]
    assert sum(counted) == NAMES
    assert len(meter._rows) <= 4096  # what is remembered stays bounded too


def _word(number: int) -> str:
    """Return a different word for every number, without a digit."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))
