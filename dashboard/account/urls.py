from django.urls import path

from . import export, keys, views

urlpatterns = [
    path("", views.account, name="account"),
    path("keys/", keys.create, name="account_keys"),
    path("keys/<int:pk>/revoke/", keys.revoke, name="account_revoke"),
    path("password/", views.password, name="account_password"),
    path("email/", views.email, name="account_email"),
    path("sessions/", views.sign_out_elsewhere, name="account_sessions"),
    path("export/", export.export, name="account_export"),
    path("delete/", views.delete, name="account_delete"),
    path("deleted/", views.deleted, name="account_deleted"),
]
