"""(Generated from _async/test_zookeeper_conformance.py by tools/unasync.py: do not edit.) The ZooKeeper engine does what every engine must do, on one server and on three."""

from holdfast.testing import Conformance
from holdfast.testing._sync.conformance.outages import OutageTests
from holdfast.testing._sync.conformance.tokens import TokenTests
from holdfast.testing._sync.conformance.verbs import VerbTests
from holdfast.testing._sync.conformance.waiting import WaitingTests
from holdfast.testing.zookeeper_harness import SharedZooKeeperHarness, ZooKeeperEnsembleHarness


class TestZooKeeper(Conformance):
    """All of it."""

    harness = SharedZooKeeperHarness()


class TestEnsemble(VerbTests, WaitingTests, TokenTests, OutageTests):
    """The parts that three servers could do differently: they see each other's writes late."""

    harness = ZooKeeperEnsembleHarness()
