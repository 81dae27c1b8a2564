"""Without the server, and without a model: a browser's pages say so, and come back by themselves."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.model]


def test_a_page_that_cannot_be_reached_says_so_in_our_look_and_comes_back_by_itself(sign_in):
    page = sign_in("grace", service_workers="allow")
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    page.context.set_offline(True)
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Berth can't be reached")
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.card')).display") == "grid"
    )  # its own look
    assert "grace" not in page.content()
    page.context.set_offline(False)
    expect(page.get_by_label("Message", exact=True)).to_be_visible()


def test_the_chat_says_when_no_model_is_ready_and_when_one_is_again(sign_in):
    page = sign_in("grace")
    page.route("**/health", lambda route: route.fulfill(status=503, json={}))
    page.goto("/")
    notice = page.get_by_text("The model isn't ready just now.")
    expect(notice).to_be_visible()
    page.unroute("**/health")
    expect(notice).to_be_hidden()


def test_error_pages_are_in_our_look(sign_in):
    page = sign_in("grace")
    for path, status, heading in [
        ("/nothing", 404, "Nothing here"),
        ("/monitor/", 403, "Not for this account"),
        ("/chats/", 405, "This isn't a page"),
    ]:
        reply = page.goto(path)
        assert reply is not None
        assert reply.status == status
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)
        expect(page).to_have_title(re.compile("Berth"))
        page.get_by_role("link", name="Back to the chat").click()
        expect(page.get_by_label("Message", exact=True)).to_be_visible()
