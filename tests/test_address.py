"""Whose address is believed."""

from __future__ import annotations

import pytest

from inference.address import client_address, of_scope


@pytest.mark.parametrize(
    ("peer", "forwarded", "found"),
    [
        ("192.0.2.1", "", "192.0.2.1"),
        ("192.0.2.1", "203.0.113.5", "192.0.2.1"),  # anybody can say so
        ("10.1.2.3", "203.0.113.5", "203.0.113.5"),
        ("10.1.2.3", "1.1.1.1, 203.0.113.5", "203.0.113.5"),
        ("10.1.2.3", "203.0.113.5, 10.9.9.9", "203.0.113.5"),  # two proxies
        ("10.1.2.3", "10.9.9.9", "10.9.9.9"),
        ("10.1.2.3", "", "10.1.2.3"),
        ("10.1.2.3", ", ,", "10.1.2.3"),
        ("10.1.2.3", "nonsense here", "unknown"),
        ("2001:db8:1:2:3::9", "", "2001:db8:1:2::"),
        ("::ffff:192.0.2.1", "", "192.0.2.1"),
        ("fe80::1%eth0", "", "fe80::"),
        ("", "", "unknown"),
    ],
)
def test_a_proxy_is_believed_if_it_is_trusted(peer, forwarded, found, settings):
    settings.TRUSTED_PROXIES = ["10.0.0.0/8"]
    assert client_address(peer, forwarded) == found


def test_a_scope_without_a_client_has_no_address():
    assert of_scope({"headers": [(b"x-forwarded-for", b"192.0.2.1")], "client": None}) == "unknown"
    scope = {"headers": [], "client": ["192.0.2.1", 9]}
    assert of_scope(scope) == "192.0.2.1"
