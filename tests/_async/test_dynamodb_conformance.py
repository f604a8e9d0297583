"""The DynamoDB engine does what every engine must do, on DynamoDB Local."""

from holdfast.testing import AsyncConformance
from holdfast.testing.dynamodb_harness import DynamoDBHarness


class TestDynamoDB(AsyncConformance):
    """All of it."""

    harness = DynamoDBHarness()
