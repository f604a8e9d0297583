"""The ZooKeeper engine does what every engine must do, on one server and on three."""

from holdfast.testing import AsyncConformance
from holdfast.testing._async.conformance.outages import AsyncOutageTests
from holdfast.testing._async.conformance.tokens import AsyncTokenTests
from holdfast.testing._async.conformance.verbs import AsyncVerbTests
from holdfast.testing._async.conformance.waiting import AsyncWaitingTests
from holdfast.testing.zookeeper_harness import SharedZooKeeperHarness, ZooKeeperEnsembleHarness


class TestZooKeeper(AsyncConformance):
    """All of it."""

    harness = SharedZooKeeperHarness()


class TestEnsemble(AsyncVerbTests, AsyncWaitingTests, AsyncTokenTests, AsyncOutageTests):
    """The parts that three servers could do differently: they see each other's writes late."""

    harness = ZooKeeperEnsembleHarness()
