"""Who may use the API: a key of the operator's flags, a key of the database, or, on a machine's own
loopback address and while there is no key at all, anybody."""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import DatabaseError
from django.db.models import Q
from django.utils import timezone

from inference import limits, origins
from inference.broker.admission import Account
from inference.messages import HIGHEST, NORMAL, priority_name
from inference.models import ApiKey
from inference.options import Options
from inference.revocation import Grant
from inference.wire.errors import RequestError

USED_EVERY = timedelta(minutes=1)  # how exact `last_used_at` is


class Caller(NamedTuple):
    """Who asks. `name` is for operators."""

    name: str
    key_id: int | None = None
    user_id: int | None = None
    notices: bool = True
    max_priority: int = NORMAL  # the most urgent that it may ask for: the lowest number
    is_staff: bool = False
    accounts: tuple[Account, ...] = ()  # in which its generations are counted
    max_output: int | None = None  # tokens of an answer; None: what the server allows

    @property
    def is_anonymous(self) -> bool:
        """It gave no key that counts, and needs none."""
        return self.key_id is None and not self.name

    @property
    def account(self) -> str:
        """Whose it is: a person, with all his keys, or else a key, or else an address."""
        return self.accounts[-1].name if self.accounts else ""

    @property
    def grant(self) -> Grant | None:
        """What its running streams depend on."""
        return None if self.key_id is None else Grant("key", self.key_id)

    def longest(self, server: int) -> int:
        """Tokens of an answer, at most, where the server allows so many; -1: any number."""
        if self.max_output is None:
            return server
        return self.max_output if server == -1 else min(server, self.max_output)

    @property
    def priority(self) -> int:
        """Of a request that does not say."""
        return max(NORMAL, self.max_priority)

    def check_priority(self, priority: int) -> None:
        """Raises RequestError (403) for one above the ceiling."""
        if priority < self.max_priority:
            name, ceiling = priority_name(priority), priority_name(self.max_priority)
            whose = "a request without a key" if self.is_anonymous else "this key"
            message = f'The priority "{name}" is above the ceiling of {whose}, which is "{ceiling}".'
            raise RequestError(403, "", message, "priority")


def given_key(headers: Mapping[bytes, bytes]) -> str:
    """The key in `Authorization: Bearer …` or `X-Api-Key`; "" for none."""
    scheme, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        return key.strip()
    return headers.get(b"x-api-key", b"").decode("latin-1").strip()


async def authenticate(headers: Mapping[bytes, bytes], address: str = "") -> Caller:
    """Who sent these headers from this address. Raises RequestError: 401 without a valid key, 403 for a page
    of another site without one, 503 while the database is away.

    A key of the flags is checked without the database; anything else costs one query, off the event loop.
    """
    options: Options = settings.BERTH
    key = given_key(headers)
    # Every key is compared, so that the time taken tells nothing.
    if sum(hmac.compare_digest(key.encode(), known.encode()) for known in options.api_keys):
        return Caller("key of the command line", accounts=limits.of_flag(ApiKey.hash_of(key)))
    try:
        caller: Caller = await _from_database(key, options)
    except DatabaseError:
        raise RequestError(503, "", "API keys can't be checked: the database is away.") from None
    if not caller.is_anonymous:
        return caller
    if not options.allow_anonymous and not origins.may_go_without_key(headers):
        message = "A page of another site needs an API key here. See --allow-anonymous."
        raise RequestError(403, "", message)
    return caller._replace(accounts=limits.of_address(address))


def _look_up(key: str, options: Options) -> Caller:
    any_row = ApiKey.objects.order_by("pk").values("pk")[:1]
    keys = ApiKey.objects.select_related("owner__limits")
    rows = list(keys.filter(Q(hash=ApiKey.hash_of(key)) | Q(pk__in=any_row)))
    for row in rows:
        if row.hash == ApiKey.hash_of(key) and row.is_usable:
            _mark_used(row)
            owner = row.owner
            return Caller(
                row.name,
                row.pk,
                row.owner_id,
                row.notices,
                row.ceiling,
                is_staff=owner is not None and owner.is_staff,
                accounts=limits.of_key(row),
                max_output=row.max_output,
            )
    is_open = options.is_loopback or options.allow_anonymous
    if is_open and not options.api_keys and not rows:
        # On loopback that is the person at this machine, who may do everything.
        return Caller("", max_priority=HIGHEST, is_staff=True) if options.is_loopback else Caller("")
    raise RequestError(401, "", "Invalid API key." if key else "An API key is needed.")


def _mark_used(row: ApiKey) -> None:
    now = timezone.now()
    if row.last_used_at is None or now - row.last_used_at > USED_EVERY:
        with contextlib.suppress(DatabaseError):  # who could be read may be let in, also while none can write
            ApiKey.objects.filter(pk=row.pk).update(last_used_at=now)


# Not in the one thread of Django's views, or a slow page would hold up the API.
_from_database = database_sync_to_async(_look_up, thread_sensitive=False)
