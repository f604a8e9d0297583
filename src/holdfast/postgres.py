"""Locks in one's own PostgreSQL transactions. `holdfast.aio.postgres` is awaitable."""

from ._sync.transaction_lock import transaction_lock
from .postgres_record import TransactionLock

__all__ = ["TransactionLock", "transaction_lock"]
