"""The same names as `holdfast.postgres`, awaitable."""

from .._async.transaction_lock import transaction_lock
from ..postgres_record import TransactionLock

__all__ = ["TransactionLock", "transaction_lock"]
