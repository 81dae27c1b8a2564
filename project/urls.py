from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path
from django.views.decorators.http import conditional_page
from django.views.i18n import JavaScriptCatalog, set_language

from dashboard import sign_in
from dashboard.account import reset, sign_up

handler400 = "dashboard.errors.bad_request"
handler403 = "dashboard.errors.forbidden"
handler404 = "dashboard.errors.not_found"
handler500 = "dashboard.errors.broken"
urlpatterns = [
    path("admin/login/", sign_in.of_admin),
    path("admin/password_change/", sign_in.of_admin_password),
    path("admin/", admin.site.urls),
    path("accounts/login/", sign_in.SignIn.as_view(), name="login"),
    path("accounts/logout/", auth.LogoutView.as_view(), name="logout"),
    path("accounts/sign-up/", sign_up.sign_up, name="sign_up"),
    path("accounts/reset/", reset.ask, name="password_reset"),
    path("accounts/reset/asked/", reset.asked, name="password_reset_done"),
    path("accounts/reset/<uidb64>/<token>/", reset.Choose.as_view(), name="password_reset_confirm"),
    path("account/", include("dashboard.account.urls")),
    path("language/", set_language, name="set_language"),
    path("words.js", conditional_page(JavaScriptCatalog.as_view(packages=["dashboard"])), name="words"),
    path("", include("dashboard.urls")),
]
