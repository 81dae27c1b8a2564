"""The API's paths."""

from __future__ import annotations

from django.urls import URLPattern, path, re_path

from inference import consumers, service

_PATHS = {
    consumers.ChatCompletions: ("v1/chat/completions", "chat/completions"),
    consumers.Completions: ("v1/completions",),
    consumers.Completion: ("completion", "completions"),
    consumers.Tokenize: ("tokenize",),
    consumers.Detokenize: ("detokenize",),
    consumers.ApplyTemplate: ("apply-template",),
    service.Health: ("health", "v1/health"),
    service.Models: ("v1/models", "models"),
    service.Model: ("v1/models/<path:model>", "models/<path:model>"),
    service.Slots: ("slots",),
    service.Props: ("props",),
    service.Metrics: ("metrics",),
    service.OpenApi: ("openapi.json",),
}

http_urlpatterns: list[URLPattern] = [
    *(path(route, consumer.as_asgi()) for consumer, routes in _PATHS.items() for route in routes),
    path("slots/<str:slot>", service.Slot.as_asgi()),
    re_path(r"^(?:v1|slots)(?:/|$)", service.Unknown.as_asgi()),
]
