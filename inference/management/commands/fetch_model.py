from argparse import ArgumentParser
from typing import Any

from inference.options import Options
from inference.serve import model_files
from inference.serve.command import OwnCommand


class Command(OwnCommand):
    """Fetch a model by name into the data directory, or check a GGUF file."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", nargs="?", default=model_files.DEFAULT)

    def run(self, options: Options, **arguments: Any) -> int:
        print(model_files.obtain(arguments["model"], options.data_dir / "models"))
        return 0
