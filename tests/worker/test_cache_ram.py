"""How much host RAM computed prompts may take."""

from __future__ import annotations

import pytest

from inference.options import Options
from inference.worker import replica

MIB = 1 << 20


@pytest.mark.parametrize(
    ("options", "free", "bytes_"),
    [
        (Options(cache_ram=100), 1000 * MIB, 100 * MIB),
        (Options(cache_ram=100), 60 * MIB, 30 * MIB),
        (Options(cache_ram=100), None, 100 * MIB),
        (Options(cache_ram=-1), 60 * MIB, -1),
        (Options(cache_ram=0), 60 * MIB, 0),
        (Options(cache_ram=-1, cache_prompt=False), 60 * MIB, 0),
    ],
)
def test_it_is_what_was_asked_for_and_never_more_than_half_of_what_is_free(
    monkeypatch: pytest.MonkeyPatch, options: Options, free: int | None, bytes_: int
) -> None:
    monkeypatch.setattr(replica, "free", lambda: free)
    assert replica._cache_ram(options) == bytes_
