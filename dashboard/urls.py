from django.urls import path

from . import chats, export, offline, search, share, turns, views

urlpatterns = [
    path("offline/", offline.page, name="offline"),
    path("sw.js", offline.worker, name="service_worker"),
    path("", views.chat, name="chat"),
    path("chats/", turns.create, name="chats"),
    path("chats/more", chats.more, name="more"),
    path("chats/search", search.search, name="search"),
    path("chats/settings", chats.check_settings, name="check_settings"),
    path("chats/<int:pk>/", views.chat, name="chat"),
    path("chats/<int:pk>/messages", turns.send, name="send"),
    path("chats/<int:pk>/title", chats.rename, name="rename"),
    path("chats/<int:pk>/settings", chats.settings, name="settings"),
    path("chats/<int:pk>/delete", chats.delete, name="delete"),
    path("chats/<int:pk>/restore", chats.restore, name="restore"),
    path("chats/<int:pk>/shares", share.shares, name="shares"),
    path("chats/<int:pk>/chat.md", export.markdown, name="export_markdown"),
    path("chats/<int:pk>/chat.json", export.as_json, name="export_json"),
    path("shares/<int:pk>/revoke", share.revoke, name="revoke"),
    path("s/<str:token>/", share.shared, name="shared"),
    path("messages/<int:pk>/edit", turns.edit, name="edit"),
    path("messages/<int:pk>/regenerate", turns.regenerate, name="regenerate"),
    path("messages/<int:pk>/continue", turns.go_on, name="continue"),
    path("messages/<int:pk>/show", turns.show, name="show"),
    path("generations/<uuid:pk>/stop", turns.stop, name="stop"),
    path("monitor/", views.monitor, name="monitor"),
    *(path(f"monitor/{kind}", views.by_hand, {"kind": kind}, name=kind) for kind in views.FORMS),
]
