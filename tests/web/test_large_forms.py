"""A form that is too large, or has too many fields, is refused in words, on every page and in the admin."""

from __future__ import annotations

import asyncio
import http.client
import json

import pytest
from django.conf import settings

from tests.web.conftest import WebServer

pytestmark = pytest.mark.django_db(transaction=True)

FORM = "application/x-www-form-urlencoded"
LARGE = (FORM, b"text=" + b"x" * 3_000_000)
PARTS = (
    "multipart/form-data; boundary=b",
    b'--b\r\nContent-Disposition: form-data; name="text"\r\n\r\n' + b"x" * 3_000_000 + b"\r\n--b--\r\n",
)
MANY = (FORM, b"&".join([b"a=1"] * 1001))
TOKEN = f"{settings.CSRF_COOKIE_NAME}={'x' * 32}"  # without one nothing is read
KEPT = "Nothing of it has been kept."


async def post(server: WebServer, path: str, form: tuple[str, bytes], accept: str) -> tuple[int, str]:
    def ask() -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        headers = {"Content-Type": form[0], "Accept": accept, "Cookie": TOKEN}
        connection.request("POST", path, form[1], headers)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()

    return await asyncio.to_thread(ask)


@pytest.mark.parametrize("path", ["/chats/", "/accounts/login/", "/admin/auth/user/add/"])
@pytest.mark.parametrize(
    ("form", "status"), [(LARGE, 413), (PARTS, 413), (MANY, 400)], ids=["large", "in parts", "many"]
)
async def test_it_says_what_is_wrong(
    server: WebServer, path: str, form: tuple[str, bytes], status: int
) -> None:
    told = "more fields" if form is MANY else "larger than this server takes"
    found, page = await post(server, path, form, "text/html")
    assert (found, told in page, KEPT in page) == (status, True, True)
    assert f'<p class="code">{status}</p>' in page
    found, body = await post(server, path, form, "application/json")
    error = json.loads(body)["error"]
    assert (found, told in error, KEPT in error) == (status, True, True)
