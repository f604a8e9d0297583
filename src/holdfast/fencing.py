"""The rule of the resource: who may touch it, by the tokens it has seen. Pure; guards apply it.

Rule 1 (S23): a token is judged and recorded when the work begins, in one step with the work or
              before its first read. A guard that looks only when it writes loses updates.
Rule 2 (S23): two floors. Exclusive work needs a token not below both and raises the exclusive one;
              shared work needs one not below the exclusive, raises the shared one, and only reads.
Rule 3 (S22): tokens of different domains are never compared.
Rule 4: equal tokens pass, a holder may come twice; lower ones never.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from .errors import DomainMismatch, NotSupported, StaleToken
from .model import Mode

MOST = 2**63 - 1  # what every store can keep as an integer


class Fence(NamedTuple):
    """What a writer shows to the resource: its token, where that comes from, and what it wants."""

    token: int
    domain: str
    mode: Mode = Mode.EXCLUSIVE


class Floors(NamedTuple):
    """What a resource remembers: the highest token of each kind, all of one domain."""

    domain: str
    exclusive: int = 0
    shared: int = 0

    @property
    def seen(self) -> int:
        """The highest token of either kind."""
        return max(self.exclusive, self.shared)


def judge(resource: str, floors: Floors | None, fence: Fence) -> Floors:
    """Return the floors with this fence recorded; StaleToken or DomainMismatch if it must not in.

    `floors` is None for a resource that nobody has touched yet: it takes the fence's domain.
    """
    if floors is None:
        floors = Floors(fence.domain)
    if not passes(floors, fence):
        refuse(resource, floors, fence)
    if fence.mode is Mode.SHARED:
        return floors._replace(shared=max(floors.shared, fence.token))
    return floors._replace(exclusive=fence.token)


def passes(floors: Floors, fence: Fence) -> bool:
    """Say whether this fence may in."""
    if fence.domain != floors.domain:
        return False
    if fence.mode is Mode.SHARED:
        return fence.token >= floors.exclusive
    return fence.token >= floors.exclusive and fence.token >= floors.shared


def refuse(resource: str, floors: Floors, fence: Fence) -> NoReturn:
    """Raise what tells the writer why it must not in; `floors` are those that refused it."""
    if fence.domain != floors.domain:
        raise DomainMismatch(
            f"{resource!r} is fenced by tokens of {floors.domain!r}, yours is of "
            f"{fence.domain!r}, and the two cannot be compared: nothing was written. If the locks "
            "have moved for good, call adopt() once, while nobody writes.",
            resource=resource,
            seen=floors.seen,
            offered=fence.token,
        )
    shared = fence.mode is Mode.SHARED
    seen = floors.exclusive if shared else floors.seen
    raise StaleToken(
        f"{resource!r} has seen token {seen}, yours is {fence.token}: another holder came after "
        f"you, and nothing was {'read' if shared else 'written'}. Stop, and take the lock again.",
        resource=resource,
        seen=seen,
        offered=fence.token,
    )


def must_write(resource: str, fence: Fence) -> None:
    """Refuse to write with a shared token (S23)."""
    if fence.mode is Mode.SHARED:
        raise NotSupported(
            f"A shared lease may only read {resource!r}: take the lock exclusively to write."
        )


def fence_of(lease: Any) -> Fence:
    """Return what a lease, or a fence, shows to the resource; what cannot fence is refused.

    Raises NotSupported for a semaphore with a limit above 1 (several hold it at once, none is the
    newest) and for a group (each resource has the token of its own lock, `lease.parts[i]`).
    """
    if isinstance(lease, Fence):
        return Fence(check_token(lease.token), check_domain(lease.domain), check_mode(lease.mode))
    try:
        token, domain, mode = lease.token, lease.domain, lease.mode
    except AttributeError:
        raise TypeError(
            f"A guard takes a lease, or a Fence(token, domain), not {type(lease).__name__}."
        ) from None
    if getattr(lease, "limit", 0) > 1:
        raise NotSupported(
            f"The semaphore {lease.name!r} cannot fence: {lease.limit} may hold it at once, so no "
            "token is the newest. Use a lock."
        )
    return Fence(check_token(token), check_domain(domain), check_mode(mode))


def fence_from_environ(environ: Mapping[str, str]) -> Fence:
    """Return the fence of a command that runs under `holdfast run`, from its environment."""
    if "HOLDFAST_TOKEN" not in environ:
        raise LookupError("There is no HOLDFAST_TOKEN here: start this with `holdfast run`.")
    limit = environ.get("HOLDFAST_LIMIT", "0")
    if limit.isdecimal() and int(limit) > 1:
        raise NotSupported(
            f"The semaphore {environ.get('HOLDFAST_NAME', '')!r} cannot fence: {limit} may hold it "
            "at once, so no token is the newest. Use a lock."
        )
    return Fence(
        read_token(environ["HOLDFAST_TOKEN"]),
        check_domain(environ.get("HOLDFAST_DOMAIN", "")),
        read_mode(environ.get("HOLDFAST_MODE", "exclusive")),
    )


def check_token(token: Any) -> int:
    """Return the token if it is one: a positive integer below 2**63, compared as such."""
    if isinstance(token, bool) or not isinstance(token, int):
        raise TypeError(f"A token is an int, not {type(token).__name__} ({token!r}).")
    if not 0 < token <= MOST:
        raise ValueError(f"A token is a positive number below 2**63, not {token}.")
    return token


def read_token(text: str) -> int:
    """Return the token that was written out, as in a header; plain digits and nothing else."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 19):
        raise ValueError(f"A token is written as a positive decimal number, not {text[:40]!r}.")
    return check_token(int(text))


def check_domain(domain: Any) -> str:
    """Return the domain if it can name one."""
    if not isinstance(domain, str):
        raise TypeError(f"A domain is a str, not {type(domain).__name__}.")
    if not domain or len(domain) > 255 or not domain.isprintable():
        raise ValueError(f"A domain is 1 to 255 printable characters, not {domain[:40]!r}.")
    return domain


def check_mode(mode: Any) -> Mode:
    """Return the mode, also of one that is spelled out in its letter."""
    try:
        return Mode(mode)
    except ValueError:
        raise ValueError(f"A mode is Mode.EXCLUSIVE or Mode.SHARED, not {mode!r}.") from None


WORDS = {Mode.EXCLUSIVE: "exclusive", Mode.SHARED: "shared"}


def read_mode(text: str) -> Mode:
    """Return the mode that was written out, as in a header."""
    for mode, word in WORDS.items():
        if text.lower() == word:
            return mode
    raise ValueError(f"A mode is written as exclusive or shared, not {text[:40]!r}.")


def check_resource(resource: Any) -> str:
    """Return the resource's name if it can be one: what stores and headers can all carry."""
    if not isinstance(resource, str):
        raise TypeError(f"A resource is named by a str, not {type(resource).__name__}.")
    if not resource or len(resource.encode("utf-8", "replace")) > 255 or not resource.isprintable():
        raise ValueError(f"A resource's name is 1 to 255 printable bytes, not {resource[:40]!r}.")
    return resource
