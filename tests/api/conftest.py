from __future__ import annotations

from dataclasses import replace

import pytest

from inference.broker.connect import sync_client


@pytest.fixture(autouse=True)
def empty_redis(transactional_db) -> None:
    """No jobs, workers or commands of another test."""
    sync_client().flushall()


@pytest.fixture
def options(settings):
    """Change the operator's options: `options(metrics=True)`."""

    def change(**values: object) -> None:
        settings.BERTH = replace(settings.BERTH, **values)

    return change
