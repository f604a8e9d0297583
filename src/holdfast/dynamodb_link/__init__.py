"""The link to DynamoDB: botocore in both colours, without its retries and with our time-outs.

Not generated: threads call botocore themselves, tasks let a few threads do so, and that is all the
difference there is between the colours of the engine on top.
"""

from __future__ import annotations

from .blocking import Link
from .settings import Settings, from_client, from_url
from .tasks import AsyncLink
from .wire import NoTable, Refused

__all__ = ["AsyncLink", "Link", "NoTable", "Refused", "Settings", "from_client", "from_url"]
