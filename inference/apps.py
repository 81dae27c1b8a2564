from django.apps import AppConfig


class InferenceConfig(AppConfig):
    name = "inference"

    def ready(self) -> None:
        from . import shut_out  # noqa: F401 - it listens to what happens to rows
        from .field_names import translate

        translate(self.get_models())
