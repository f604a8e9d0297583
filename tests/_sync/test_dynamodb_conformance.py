"""(Generated from _async/test_dynamodb_conformance.py by tools/unasync.py: do not edit.) The DynamoDB engine does what every engine must do, on DynamoDB Local."""

from holdfast.testing import Conformance
from holdfast.testing.dynamodb_harness import DynamoDBHarness


class TestDynamoDB(Conformance):
    """All of it."""

    harness = DynamoDBHarness()
