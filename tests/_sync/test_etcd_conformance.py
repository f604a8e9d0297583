"""(Generated from _async/test_etcd_conformance.py by tools/unasync.py: do not edit.) The etcd engine does what every engine must do, on a single server and on a cluster."""

import pytest

from holdfast.testing import Conformance
from holdfast.testing._sync.conformance.outages import OutageTests
from holdfast.testing._sync.conformance.tokens import TokenTests
from holdfast.testing._sync.conformance.verbs import VerbTests
from holdfast.testing._sync.conformance.waiting import WaitingTests
from holdfast.testing.etcd_harness import EtcdClusterHarness, EtcdHarness


class TestEtcd(Conformance):
    """All of it."""

    harness = EtcdHarness()


@pytest.mark.slow
class TestEtcdCluster(VerbTests, TokenTests, WaitingTests, OutageTests):
    """What could differ where a majority decides, and where a client may go on with another."""

    harness = EtcdClusterHarness()
