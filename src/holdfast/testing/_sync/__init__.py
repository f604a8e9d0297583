"""(Generated from _async/__init__.py by tools/unasync.py: do not edit.) What tests of locks need, awaitable; the blocking twin is generated."""

import pytest

pytest.register_assert_rewrite(f"{__name__}.conformance")  # a failing assert shows its values
