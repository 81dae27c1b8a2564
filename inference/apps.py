from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class InferenceConfig(AppConfig):
    name = "inference"
    verbose_name = _("Inference")

    def ready(self) -> None:
        from . import shut_out  # noqa: F401 - it listens to what happens to rows
        from .field_names import translate

        translate(self.get_models())
