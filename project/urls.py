from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path

from dashboard import sign_in

urlpatterns = [
    path("admin/login/", sign_in.of_admin),
    path("admin/", admin.site.urls),
    path("accounts/login/", sign_in.SignIn.as_view(), name="login"),
    path("accounts/logout/", auth.LogoutView.as_view(), name="logout"),
    path("", include("dashboard.urls")),
]
