"""What one caller may have at once, and all of them: options, keys and people -> the books of admission."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from inference.broker import admission, occupancy
from inference.broker.admission import EVERYBODY, Account, Full
from inference.models import ApiKey, UserLimits
from inference.options import Options
from inference.wire.errors import RequestError

Snapshots = Sequence[dict[str, Any]]
WHOSE = {
    "address": "Without a key, your address",
    "flag": "This API key",
    "key": "This API key",
    "user": "The owner of this API key",
}


def of_address(address: str) -> tuple[Account, ...]:
    """The account of somebody who has no key."""
    return (Account(f"address:{address}", _options().max_per_address),)


def of_key(row: ApiKey) -> tuple[Account, ...]:
    """The accounts of a key of the database: its own and its owner's."""
    own = _options().max_per_key if row.max_concurrent is None else row.max_concurrent
    return (Account(f"key:{row.pk}", own), *(of_user(row.owner) if row.owner else ()))


def of_flag(hash: str) -> tuple[Account, ...]:
    """The account of a key of the operator's flags."""
    return (Account(f"flag:{hash[:16]}", _options().max_per_key),)


def of_user(user: User) -> tuple[Account, ...]:
    """A person's account."""
    own = UserLimits.concurrent(user)
    return (Account(name_of(user), _options().max_per_user if own is None else own),)


def name_of(user: User) -> str:
    """What a person's account is called."""
    return f"user:{user.pk}"


def of_server(snapshots: Snapshots) -> Account:
    """Everybody's account: the slots of the live workers, and the queue."""
    queue = _options().max_queue
    return Account(EVERYBODY, -1 if queue < 0 else queue + sum(len(s["slots"]) for s in snapshots))


async def admit(job_id: str, n: int, accounts: Sequence[Account], snapshots: Snapshots) -> None:
    """Take room for n generations. Raises RequestError: 429 when the caller has as many as it may, 503 when
    the server has, 400 when n alone is too many for ever."""
    try:
        await admission.admit(job_id, n, (*accounts, of_server(snapshots)))
    except Full as full:
        raise _refusal(full, n) from None


def admit_one_sync(job_id: str, user: User) -> None:
    """Take room for a person's generation, in a thread. Raises Full, and RedisError or OSError."""
    snapshots = occupancy.get_all_sync()
    admission.admit_sync(job_id, 1, (*of_user(user), of_server(snapshots)))


def _refusal(full: Full, n: int) -> RequestError:
    name, limit = full.account
    if name == EVERYBODY:
        if n > limit:
            return RequestError(400, "", f"This server has room for {limit} generations, not for {n}.", "n")
        return RequestError(503, "", "The queue of this server is full. Send the request again later.")
    whose = WHOSE[name.partition(":")[0]]
    message = f"{whose} may have {limit} generation{'s'[: limit != 1]} at once"
    if n > limit:
        return RequestError(400, "", f"{message}, not {n}.", "n")
    return RequestError(429, "", f"{message} and has {full.used}: wait until one has ended.")


def _options() -> Options:
    found: Options = settings.BERTH
    return found
