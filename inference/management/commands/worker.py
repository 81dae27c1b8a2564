from dataclasses import replace
from typing import Any

from inference.options import Options
from inference.serve import model_files
from inference.serve.command import OwnCommand


class Command(OwnCommand):
    """Start one worker: it owns the model. It needs Redis and the model file."""

    def run(self, options: Options, **_: Any) -> int:
        model = model_files.resolve(options)
        from inference.worker.main import run  # loads llama.cpp

        return run(replace(options, model=str(model)))
