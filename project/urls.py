from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path
from django.views.i18n import JavaScriptCatalog

from dashboard import sign_in

urlpatterns = [
    path("admin/login/", sign_in.of_admin),
    path("admin/", admin.site.urls),
    path("accounts/login/", sign_in.SignIn.as_view(), name="login"),
    path("accounts/logout/", auth.LogoutView.as_view(), name="logout"),
    path("words.js", JavaScriptCatalog.as_view(packages=["dashboard"]), name="words"),
    path("", include("dashboard.urls")),
]
