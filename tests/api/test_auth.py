from __future__ import annotations

import asyncio
from datetime import timedelta
from io import StringIO

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inference import limits
from inference.auth import Caller, _look_up, authenticate
from inference.broker.admission import Account
from inference.models import ApiKey
from inference.wire.errors import RequestError

from .play import create_key, fetch

ANYBODY = Caller("", accounts=(Account("address:", 1000),))
WHO_IS_HERE = ANYBODY._replace(max_priority=-100, is_staff=True)


def bearer(key: str) -> dict[bytes, bytes]:
    return {b"authorization": f"Bearer {key}".encode()}


def who(headers: dict[bytes, bytes] | None = None) -> Caller:
    return asyncio.run(authenticate(headers or {}))


def refused(headers: dict[bytes, bytes] | None = None) -> bool:
    with pytest.raises(RequestError) as caught:
        who(headers)
    return caught.value.status == 401


def test_on_loopback_everybody_is_let_in_while_there_is_no_key(options):
    options(host="127.0.0.1")
    assert who() == WHO_IS_HERE
    assert who(bearer("a key that some client insists on")) == WHO_IS_HERE


def test_on_another_address_nobody_is_let_in_without_a_key(options):
    options(host="0.0.0.0")
    assert refused()


def test_on_another_address_everybody_is_let_in_if_the_operator_says_so(options):
    options(host="0.0.0.0", allow_anonymous=True)
    assert who() == ANYBODY


def test_a_key_of_the_flags_closes_the_api_to_everybody_else(options):
    options(api_keys=("secret", "other"))
    assert refused()
    assert refused(bearer("wrong"))
    assert who(bearer("secret")).key_id is None
    assert who({b"x-api-key": b"other"}).notices


def test_a_key_of_the_database_closes_the_api_to_everybody_else():
    owner = User.objects.create_user("ada")
    key = create_key("laptop", owner)
    row = ApiKey.objects.get()
    assert refused()
    assert refused(bearer("wrong"))
    accounts = (Account(f"key:{row.pk}", 1000), Account(f"user:{owner.pk}", 1000))
    assert who(bearer(key)) == Caller("laptop", row.pk, owner.pk, True, accounts=accounts)


@pytest.mark.parametrize("field", ["revoked_at", "expires_at"])
def test_a_key_that_is_revoked_or_expired_is_refused_and_does_not_open_the_api(field):
    key = create_key("old")
    ApiKey.objects.update(**{field: timezone.now() - timedelta(seconds=1)})
    assert refused(bearer(key))
    assert refused()


def test_the_second_key_is_found_as_well_as_the_first():
    create_key("first")
    assert who(bearer(create_key("second"))).name == "second"


def test_the_last_use_is_written_once_a_minute():
    key = create_key("laptop")
    who(bearer(key))
    first = ApiKey.objects.get().last_used_at
    assert first is not None
    who(bearer(key))
    assert ApiKey.objects.get().last_used_at == first
    ApiKey.objects.update(last_used_at=first - timedelta(minutes=2))
    who(bearer(key))
    assert ApiKey.objects.filter(last_used_at__gte=first).exists()


def test_a_key_costs_one_query():

    key = create_key("laptop")
    ApiKey.objects.update(last_used_at=timezone.now())
    with CaptureQueriesContext(connection) as queries:
        _look_up(key, settings.BERTH)
    assert len(queries) == 1


async def test_a_refusal_has_the_shape_of_its_endpoint(options):
    options(api_keys=("secret",))
    openai = await fetch("POST", "/v1/chat/completions", {})
    llama = await fetch("POST", "/completion", {}, Authorization="Bearer wrong")
    for client in (openai, llama):
        assert (client.status, client.headers["www-authenticate"]) == (401, "Bearer")
    assert openai.json["error"]["code"] == "invalid_api_key"
    assert llama.json["error"]["code"] == 401


def test_the_command_prints_a_key_that_works():
    User.objects.create_user("ada")
    out = StringIO()
    call_command("create_api_key", "--name", "laptop", "--user", "ada", stdout=out)
    assert who(bearer(out.getvalue().strip())).name == "laptop"


def test_the_command_refuses_a_user_that_does_not_exist():
    with pytest.raises(CommandError, match="no user 'bob'"):
        call_command("create_api_key", "--name", "laptop", "--user", "bob")
    assert not ApiKey.objects.exists()


def test_computed_prompts_are_shared_by_a_person_with_all_their_keys_and_by_nobody_else(options):
    ada = User.objects.create_user("ada")
    keys = [create_key(name, owner) for name, owner in (("laptop", ada), ("phone", ada), ("robot", None))]
    laptop, phone, robot = (who(bearer(key)).account for key in keys)
    assert laptop == phone == limits.name_of(ada)
    options(api_keys=("secret", "other"))
    apart = {laptop, robot, *(who(bearer(key)).account for key in ("secret", "other")), ANYBODY.account}
    assert len(apart) == 5
    assert "" not in apart
