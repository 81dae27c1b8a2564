"""What the pages follow over long-lived connections; the rest of dashboard/ is in urls.py."""

from channels.auth import AuthMiddlewareStack
from django.urls import path

from .consumers import ChatFeed, GenerationEvents, Monitor

http_urlpatterns = [
    path("generations/<uuid:pk>/events", AuthMiddlewareStack(GenerationEvents.as_asgi())),
]
websocket_urlpatterns = [
    path("ws/chats/", AuthMiddlewareStack(ChatFeed.as_asgi())),
    path("ws/monitor/", AuthMiddlewareStack(Monitor.as_asgi())),
]
