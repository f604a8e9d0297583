"""What both colours do with botocore: a client without retries, time-outs per call, clear errors.

Rule 1 (S1): a request is sent once. A connection that saw a time-out is closed by urllib3.
Rule 2: a time-out is that of the call, not of the client: what is left of it when the request goes
        out counts for connecting and reading together.
Rule 3: an error of DynamoDB's own means that nothing happened; a status of 500 and more, or no
        answer, may mean both, if something was to be written.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import botocore.exceptions as errors  # type: ignore[import-untyped]
import botocore.session  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from urllib3.util import Timeout

from ..errors import EngineUnavailable, LockError, OutcomeUnknown
from .settings import Settings

LEAST = 0.02  # seconds: less than that is no time to answer
READS = ("get_item", "query", "describe_table")


class Refused(Exception):
    """The condition of a request did not hold; `item` is as it was, {} if there is none."""

    def __init__(self, item: dict[str, Any]) -> None:
        super().__init__("the condition did not hold")
        self.item = item


class NoTable(Exception):
    """There is no such table, or not yet."""


class _CallTimeout(Timeout):
    """As long as the call of the thread that asks may still take."""

    def __init__(self) -> None:
        super().__init__(total=5.0)
        self._of_thread = threading.local()

    def begin(self, end: float) -> None:
        """Let the next request of this thread end at that instant."""
        self._of_thread.end = end

    def clone(self) -> Timeout:
        """Return what is left: urllib3 asks for each request."""
        return Timeout(total=max(LEAST, self._of_thread.end - time.monotonic()))


class Caller:
    """One client of botocore, made when first needed; any thread may call."""

    def __init__(self, settings: Settings, connections: int) -> None:
        self._settings = settings
        self._connections = connections
        self._mutex = threading.Lock()
        self._timeout = _CallTimeout()
        self._client: Any = None
        self._closed = False

    def call(self, method: str, arguments: dict[str, Any], end: float, timeout: float) -> Any:
        """Make one request; raise what it means if it fails."""
        settings = self._settings
        if time.monotonic() >= end:
            raise EngineUnavailable(
                f"{settings.location} was not asked: all connections were busy for {timeout:.3g} "
                "s; raise connections=….",
                engine=settings.location,
            )
        client = None
        try:
            client = self._client or self._connect()
            self._timeout.begin(end)
            return getattr(client, method)(**arguments)
        except errors.ClientError as error:
            raise translate(settings, method, error) from error
        except (errors.BotoCoreError, errors.HTTPClientError) as error:
            raise unanswered(settings, method, error, timeout) from error
        finally:
            if self._closed and client is not None:
                client.close()  # once more: this call may have opened something since

    def _connect(self) -> Any:
        with self._mutex:
            if self._closed:
                where = self._settings.location
                raise EngineUnavailable("The client was closed.", engine=where)
            if self._client is None:
                client = _make_client(self._settings, self._connections)
                session = client._endpoint.http_session
                session._timeout = self._timeout
                session._manager.connection_pool_kw["timeout"] = self._timeout
                self._client = client
            return self._client

    def close(self) -> None:
        """Close all connections, and make no more."""
        with self._mutex:
            self._closed = True
            client, self._client = self._client, None
        if client is not None:
            client.close()


# What reads botocore's models, which takes long: all clients of a process share it.
_models = botocore.session.Session().get_component("data_loader")


def _make_client(settings: Settings, connections: int) -> Any:
    session = botocore.session.Session()
    session.register_component("data_loader", _models)
    config = Config(
        retries={"total_max_attempts": 1},
        max_pool_connections=connections,
        tcp_keepalive=True,
        user_agent="holdfast",  # the long one takes a tenth of a call to put together
        parameter_validation=False,  # all requests are made by us
    )
    options: dict[str, Any] = {}
    if settings.client is not None:
        given = settings.client
        config = given.meta.config.merge(config)
        session._credentials = given._request_signer._credentials
        options["verify"] = given._endpoint.http_session._verify
    elif settings.keys is not None:
        options["aws_access_key_id"], options["aws_secret_access_key"] = settings.keys
    return session.create_client(
        "dynamodb",
        region_name=settings.region,
        endpoint_url=settings.endpoint,
        config=config,
        **options,
    )


# --- Errors, as sentences that say what to do. ---

_THROTTLED = "it is asked more often than the capacity of the table allows; try again soon"
_LOGIN = "it does not accept the credentials; see that they are those of the right account"
_CONFLICT = "others write the same item at the same time; try again"
_REFUSALS = {
    "ProvisionedThroughputExceededException": _THROTTLED,
    "ThrottlingException": _THROTTLED,
    "RequestLimitExceeded": _THROTTLED,
    "LimitExceededException": "a limit of the account is reached; try again soon",
    "AccessDeniedException": "the credentials lack a right (see 'IAM policy' in "
    "docs/engines/dynamodb.md)",
    "UnrecognizedClientException": _LOGIN,
    "InvalidSignatureException": "it does not accept the signature; check the secret key and the "
    "clock of this machine",
    "IncompleteSignatureException": _LOGIN,
    "MissingAuthenticationTokenException": _LOGIN,
    "ExpiredTokenException": "the credentials are over; get new ones",
    "TransactionConflictException": _CONFLICT,
    "ReplicatedWriteConflictException": _CONFLICT,
    "ResourceInUseException": "the table is being changed; try again soon",
    "ItemCollectionSizeLimitExceededException": "the table has an index that locks must not have",
}
_TOO_LARGE = "more wait for this lock than its item can hold (400 KB); let fewer wait at once"
_NOT_SENT = (
    errors.EndpointConnectionError,
    errors.ConnectTimeoutError,
    errors.ProxyConnectionError,
    errors.SSLError,
    errors.NoCredentialsError,
    errors.PartialCredentialsError,
    errors.CredentialRetrievalError,
    errors.NoRegionError,
    errors.TokenRetrievalError,
    errors.UnauthorizedSSOTokenError,
)


def translate(settings: Settings, method: str, error: Any) -> Exception:
    """Return what to raise for an answer that is an error."""
    response, where = error.response, settings.location
    code = str(response.get("Error", {}).get("Code", ""))
    text = str(response.get("Error", {}).get("Message", "")).rstrip(".")
    if code == "ConditionalCheckFailedException":
        return Refused(response.get("Item", {}))
    if code == "ResourceNotFoundException":
        return NoTable(text)
    remedy = _REFUSALS.get(code)
    if "Item size" in text:
        remedy = _TOO_LARGE
    if remedy is not None:
        return EngineUnavailable(f"{where} refused: {remedy} ({code}: {text}).", engine=where)
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500))
    if status >= 500:
        return _silent(settings, method, f"it failed with {status} {code}: {text}")
    return EngineUnavailable(f"{where} refused: {code}: {text}.", engine=where)


def unanswered(settings: Settings, method: str, error: Exception, timeout: float) -> Exception:
    """Return what to raise for a request without an answer."""
    text = str(error).rstrip(".")
    if isinstance(error, errors.ReadTimeoutError):
        return _silent(settings, method, f"there was none within {timeout:.3g} s")
    if isinstance(error, _NOT_SENT):
        where = settings.location
        hint = "check the region, the endpoint and the way there"
        if "redentials" in text or "oken" in text:
            hint = "give AWS credentials to this process, as for any other use of boto3"
        elif "region" in text:
            hint = "write it into the URL: dynamodb://region/table"
        return EngineUnavailable(f"{where} cannot be used ({text}); {hint}.", engine=where)
    return _silent(settings, method, text)


def _silent(settings: Settings, method: str, why: str) -> LockError:
    where = settings.location
    kind = EngineUnavailable if method in READS else OutcomeUnknown
    return kind(f"{where} gave no answer: {why}.", engine=where)
