"""The API does what its description says, whatever is asked of it."""

from __future__ import annotations

from inference.options import VERSION
from inference.wire import openapi

DOCUMENT = openapi.document(VERSION)
