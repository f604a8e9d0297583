"""The etcd engine does what every engine must do, on a single server and on a cluster."""

import pytest

from holdfast.testing import AsyncConformance
from holdfast.testing._async.conformance.outages import AsyncOutageTests
from holdfast.testing._async.conformance.tokens import AsyncTokenTests
from holdfast.testing._async.conformance.verbs import AsyncVerbTests
from holdfast.testing._async.conformance.waiting import AsyncWaitingTests
from holdfast.testing.etcd_harness import EtcdClusterHarness, EtcdHarness


class TestEtcd(AsyncConformance):
    """All of it."""

    harness = EtcdHarness()


@pytest.mark.slow
class TestEtcdCluster(AsyncVerbTests, AsyncTokenTests, AsyncWaitingTests, AsyncOutageTests):
    """What could differ where a majority decides, and where a client may go on with another."""

    harness = EtcdClusterHarness()
