"""The browser's chat, by the addresses that the pages themselves use, with a session."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from .clients import PATIENCE, RETRY, Client
from .http import Cut, Exchange
from .sse import Event
from .tally import Outcome

EVENTS = re.compile(r'data-events="(/generations/([0-9a-f-]{36})/events)"')
STOPPED = "Stopped."


class Session(NamedTuple):
    """Somebody who has signed in."""

    cookies: dict[str, str]
    database: Path

    @classmethod
    async def sign_in(cls, port: int, name: str, password: str, database: Path) -> Session:
        async with await Exchange.open(port, "GET", "/accounts/login/") as page:
            await page.read()
            cookies = dict(page.cookies)
        form = {"username": name, "password": password, "csrfmiddlewaretoken": _token(cookies)}
        headers = {"Cookie": _cookie(cookies), "Content-Type": "application/x-www-form-urlencoded"}
        body = urlencode(form).encode()
        async with await Exchange.open(port, "POST", "/accounts/login/", body, headers) as answer:
            if answer.status != 302:
                raise RuntimeError(f"{name} could not sign in: {answer.status}")
            return cls(cookies | answer.cookies, database)

    async def get(self, port: int, path: str, **headers: str) -> Exchange:
        """Raises Cut."""
        return await Exchange.open(port, "GET", path, headers={"Cookie": _cookie(self.cookies), **headers})

    async def post(self, port: int, path: str, **form: str) -> Exchange:
        """Raises Cut."""
        headers = {
            "Cookie": _cookie(self.cookies),
            "X-CSRFToken": _token(self.cookies),
            "Content-Type": "application/x-www-form-urlencoded",
        }
        return await Exchange.open(port, "POST", path, urlencode(form).encode(), headers)

    def generation(self, chat: str) -> str:
        """The id, as addresses have it, of the one generation of the chat at this address; "" if none."""
        pk = int(chat.rstrip("/").rpartition("/")[2])
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=20) as connection:
            found = connection.execute(
                "SELECT g.id FROM inference_generation g JOIN inference_message m ON g.message_id = m.id"
                " WHERE m.chat_id = ?",
                (pk,),
            ).fetchone()
        return re.sub(r"(.{8})(.{4})(.{4})(.{4})(.{12})", r"\1-\2-\3-\4-\5", found[0]) if found else ""


def _cookie(cookies: dict[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


def _token(cookies: dict[str, str]) -> str:
    return next(value for name, value in cookies.items() if "csrf" in name)


class PageClient(Client):
    """A person with a browser: a new chat, its stream, and the page again after a cut or a reload."""

    session: Session

    async def go(self) -> Outcome:
        chat = await self._ask()
        if isinstance(chat, Outcome):
            return chat
        self.generation = await self._find(chat)
        if not self.generation:
            return self.outcome("lost", f"the chat {chat} has no generation")
        return await self.follow()

    async def _ask(self) -> str | Outcome:
        """Begin a chat: its address, or why there is none."""
        prompt = self.request.question.prompt
        found = await self.answered(lambda: self.session.post(self.port, "/chats/", text=prompt), 201)
        return found if isinstance(found, Outcome) else str(json.loads(found)["url"])

    async def _find(self, chat: str) -> str:
        """The chat's generation, from its page. A page that comes when all is over no longer names it."""
        while True:
            try:
                async with await self.session.get(self.port, chat) as page:
                    found = EVENTS.search((await page.read()).decode())
                    if found:
                        return found[2]
                    if page.status == 200:
                        return self.session.generation(chat)
            except Cut:
                pass
            await asyncio.sleep(RETRY)

    async def connect(self) -> Exchange:
        last = {"Last-Event-ID": self.parser.last_id} if self.parser.last_id else {}
        return await self.session.get(self.port, f"/generations/{self.generation}/events", **last)

    async def refusal(self, exchange: Exchange) -> Outcome | None:
        """The page comes back to a stream after any error but "there is no such answer"."""
        if self.generation and exchange.status != 404:
            return None
        return await super().refusal(exchange)

    def take(self, event: Event) -> Outcome | None:
        data = json.loads(event.data)
        if event.kind == "token":
            self.texts[0] += data
            self.n_read += 1
        elif event.kind == "text":  # the whole, from the row
            self.texts[0] = data
        elif event.kind == "preempted":
            self.tally.parks += 1
        elif event.kind == "failed":
            return self.outcome("failed", str(data["note"]))
        elif event.kind == "finished":
            if self.request.manner == "stops" and data["note"] == STOPPED:
                return self.outcome("cancelled")
            self.texts[0] += data.get("text", "")
            return self.whole()
        return None

    async def act(self) -> Outcome | None:
        if self.request.manner == "reloads":
            self.parser.last_id, self.texts = "", [""]
            return None
        if self.request.manner == "leaves":
            return self.outcome("identical")  # as far as it knows; `again` looks later
        if self.request.manner == "stops":
            await self._stop()
            return None
        return await super().act()

    async def _stop(self) -> None:
        while True:
            try:
                async with await self.session.post(
                    self.port, f"/generations/{self.generation}/stop"
                ) as answer:
                    await answer.read()
                    if answer.status < 500:
                        return
            except Cut:
                pass
            await asyncio.sleep(RETRY)

    async def again(self) -> Outcome:
        """The same answer as somebody finds it who comes back when all is over."""
        self.parser.last_id, self.texts, self.acted = "", [""], True
        try:
            async with asyncio.timeout(PATIENCE):
                return await self.follow()
        except TimeoutError:
            return self.outcome("lost", "the page does not have it")
