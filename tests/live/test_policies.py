"""The content policy in a real browser: it stands in the way of an attack, and of nothing of ours."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.e2e.stack import Stack

pytestmark = [pytest.mark.browser, pytest.mark.model]

ADMIN_PAGES = [
    "/admin/",
    "/admin/auth/user/",
    "/admin/auth/user/add/",
    "/admin/auth/user/1/change/",
    "/admin/inference/apikey/",
    "/admin/inference/apikey/add/",
    "/admin/inference/chat/",
    "/admin/inference/generation/",
    "/admin/inference/message/",
    "/admin/inference/preemption/",
    "/admin/password_change/",
]


def watch(page: Page) -> list[str]:
    """What the browser refuses from here on."""
    refused: list[str] = []
    page.on("console", lambda m: refused.append(m.text) if "Content Security Policy" in m.text else None)
    return refused


def test_no_page_needs_what_the_policy_forbids(sign_in: Any, stack: Stack) -> None:
    page = sign_in("ada")
    refused = watch(page)
    for path in ["/", "/monitor/", "/nothing", *ADMIN_PAGES]:
        page.goto(path, wait_until="load")
        assert refused == [], path
    page.goto("/admin/inference/apikey/add/")
    page.locator(".select2-selection").first.click()  # the script that makes most of its markup itself
    page.locator(".select2-results__option").first.wait_for()
    page.keyboard.press("Escape")
    page.locator(".datetimeshortcuts a").nth(1).click()
    assert refused == []


INJECT = """() => {
  window.say = (what) => { window.did = what; };
  const script = (about) => document.body.append(Object.assign(document.createElement("script"), about));
  const tries = {
    inline() { script({ textContent: "say('inline')" }); },
    handler() { document.body.setAttribute("onclick", "say('handler')"); document.body.click(); },
    html() { document.body.innerHTML += "<img src=x onerror=say('html')>"; },
    foreign() { script({ src: "http://127.0.0.1:9/x.js" }); },
  };
  const thrown = [];
  for (const [name, attempt] of Object.entries(tries)) try { attempt(); } catch { thrown.push(name); }
  return thrown;
}"""
FRAME = """() => {
  const frame = document.body.appendChild(document.createElement("iframe"));
  frame.src = "/";
  return new Promise((done) => { frame.onload = () => done(frame.contentDocument === null); });
}"""


def test_what_is_injected_into_a_page_does_not_run(sign_in: Any, stack: Stack) -> None:
    page = sign_in("grace")
    thrown = page.evaluate(INJECT)
    assert "html" in thrown  # Trusted Types: not even the markup comes to be
    assert not page.evaluate("window.did")


def test_no_page_can_be_framed(sign_in: Any, stack: Stack) -> None:
    page = sign_in("grace")
    assert page.evaluate(FRAME)  # the browser shows its own error in it, which no script may look into
