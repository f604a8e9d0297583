"""What tests of locks need, awaitable; the blocking twin is generated."""

import pytest

pytest.register_assert_rewrite(f"{__name__}.conformance")  # a failing assert shows its values
