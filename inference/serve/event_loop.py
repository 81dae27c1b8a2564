"""Installs Twisted's reactor on our event loop. Imported before anything that could install another."""

from __future__ import annotations

from twisted.internet import asyncioreactor

from inference.loop import new_event_loop

asyncioreactor.install(new_event_loop())
