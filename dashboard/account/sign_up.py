"""Making an account for oneself, where the operator lets people."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from .forms import SignUpForm
from .views import answer


@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_up(request: HttpRequest) -> HttpResponse:
    """The page, and the account that is made of it. 403 where sign-up is closed."""
    if request.user.is_authenticated:
        return redirect("chat")
    if not settings.BERTH.sign_up:
        return render(request, "registration/sign_up.html", {"is_closed": True}, status=403)
    form = SignUpForm(request, request.POST or None)
    if request.method == "POST" and form.is_valid():
        found = form.cleaned_data
        try:
            user = User.objects.create_user(found["name"], found["email"], found["new_password"])
        except IntegrityError:  # somebody was quicker
            form.add_error("name", SignUpForm.taken)
        else:
            login(request, user)
            return HttpResponseRedirect("/")
    return answer(request, "registration/sign_up.html", form)
