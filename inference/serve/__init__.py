"""Starting Berth: the model file, the embedded Redis, the checks before a start, and the supervisor."""


class CannotStart(Exception):
    """A start that must not go on. The message is one line that says what to do."""
