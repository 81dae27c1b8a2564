from django.urls import path

from . import offline, views

urlpatterns = [
    path("offline/", offline.page, name="offline"),
    path("sw.js", offline.worker, name="service_worker"),
    path("", views.chat, name="chat"),
    path("chats/", views.create, name="chats"),
    path("chats/<int:pk>/", views.chat, name="chat"),
    path("chats/<int:pk>/messages", views.send, name="send"),
    path("generations/<uuid:pk>/stop", views.stop, name="stop"),
    path("monitor/", views.monitor, name="monitor"),
    *(path(f"monitor/{kind}", views.by_hand, {"kind": kind}, name=kind) for kind in views.FORMS),
]
