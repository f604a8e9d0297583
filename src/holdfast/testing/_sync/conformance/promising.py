"""(Generated from _async/conformance/promising.py by tools/unasync.py: do not edit.) What an engine says of itself, what a client is given, and what both refuse: no I/O needed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import holdfast

from .base import Base

YES_NO = ("fencing", "fair", "push", "crash_detection", "at_least")


class PromisingTests(Base):
    """guarantees, domain, options."""

    def test_guarantees_are_static(self) -> None:
        """They can be read before anything was sent, and are complete."""
        guarantees = self.connect().guarantees
        assert guarantees.engine == self.client.engine.family
        for name in YES_NO:
            assert type(getattr(guarantees, name)) is bool
        assert all(isinstance(fault, holdfast.Fault) for fault in guarantees.exclusive)
        assert guarantees.expiry in ("lease", "session")
        assert 0 < guarantees.min_ttl <= self.ttl <= guarantees.max_ttl

    def test_require_agrees_with_what_is_declared(self) -> None:
        """require() passes what is promised and refuses the rest, in one sentence."""
        guarantees = self.client.guarantees
        declared = {name: bool(getattr(guarantees, name)) for name in YES_NO}
        declared |= {str(fault): fault in guarantees.exclusive for fault in holdfast.Fault}
        for name, promised in declared.items():
            if promised:
                guarantees.require(name)
                continue
            with pytest.raises(holdfast.NotSupported) as caught:
                guarantees.require(name)
            assert name in str(caught.value)
            assert str(caught.value).endswith(".")
            assert caught.value.engine == guarantees.engine
        guarantees.require(*(name for name, promised in declared.items() if promised))
        with pytest.raises(ValueError, match="nonsense"):
            guarantees.require("nonsense")

    def test_domain_names_the_origin_of_tokens(self) -> None:
        """By default engine family and namespace; the user's own where given."""
        with self.client.lock("x") as lease:
            assert lease.domain == f"{self.client.engine.family}:{self.namespace}"
        with self.connect(domain="billing").lock("x") as lease:
            assert lease.domain == "billing"

    def test_ttl_comes_from_lock_then_client(self) -> None:
        """The lock's own TTL counts, else the client's; a timedelta is as good as a number."""
        client = self.connect(ttl=timedelta(seconds=20))
        with client.lock("a") as one, client.lock("b", ttl=timedelta(seconds=12)) as two:
            assert (one.ttl, two.ttl) == (20, 12)

    @pytest.mark.parametrize("ttl", [0, -1, 1e-6, 301, float("nan"), float("inf"), "5", True, [1]])
    def test_nonsense_ttl_is_refused(self, ttl: Any) -> None:
        """What is no TTL, or more or less than is kept here, is refused wherever it is given."""
        for make in (
            lambda: self.client.lock("x", ttl=ttl),
            lambda: self.client.rwlock("x", ttl=ttl).read(),
            lambda: self.client.semaphore("x", 2, ttl=ttl),
            lambda: self.connect(ttl=ttl),
        ):
            with pytest.raises((ValueError, TypeError), match="ttl"):
                make()

    def test_max_ttl_can_be_raised(self) -> None:
        """A client with a larger max_ttl takes longer leases."""
        client = self.connect(max_ttl=1000)
        if client.guarantees.max_ttl < 1000:
            return  # the engine's own limit
        with client.lock("x", ttl=900) as lease:
            assert lease.remaining() > 800

    @pytest.mark.parametrize(
        "option", [{"label": "x" * 513}, {"label": 5}, {"label": "\ud800"}, {"unknown": 1}]
    )
    def test_nonsense_option_is_refused(self, option: dict[str, Any]) -> None:
        """A label that cannot be stored, or an option that does not exist, is an error at once."""
        with pytest.raises((ValueError, TypeError)):
            self.client.lock("x", **option)

    @pytest.mark.parametrize("value", ["x" * 513, 5, "\ud800", None])
    def test_nonsense_value_is_refused(self, value: Any) -> None:
        """What a leader announces must be text that every engine can store."""
        with pytest.raises((ValueError, TypeError), match="value"):
            self.client.election("x", value)

    @pytest.mark.parametrize("connect_timeout", [0, -1, float("nan"), "5"])
    def test_nonsense_connect_timeout_is_refused(self, connect_timeout: Any) -> None:
        """How long to wait for the engine must be more than nothing."""
        with pytest.raises((ValueError, TypeError), match="connect_timeout"):
            self.connect(connect_timeout=connect_timeout)

    def test_descriptions_show_no_secret_and_name_the_lock(self) -> None:
        """repr of client, lock and lease says what it is, for logs."""
        assert self.namespace in repr(self.client)
        lock = self.client.lock("the name")
        assert "the name" in repr(lock)
        with lock as lease:
            assert "the name" in repr(lease)
            assert str(lease.token) in repr(lease)
        assert "released" in repr(lease)
