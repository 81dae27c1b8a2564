"""Who is shut out: a browser that is signed in, and a stream that has begun."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client as Browser

from inference.broker.connect import sync_client
from inference.broker.keys import BELL
from inference.messages import Accepted, Event, Started, Token
from tests.e2e.api import until


def signed_in(user: User) -> Browser:
    browser = Browser()
    browser.force_login(user)
    return browser


def cookies(browser: Browser) -> str:
    return "; ".join(f"{name}={morsel.value}" for name, morsel in browser.cookies.items())


BEGUN: tuple[Event, ...] = (Accepted(3, 1, 9), Started(0), Token(1, "once"))


async def the_bell_can_be_heard() -> None:
    def is_heard() -> bool:
        return bool(sync_client().pubsub_numsub(BELL)[0][1])

    await sync_to_async(until, thread_sensitive=False)(is_heard)
