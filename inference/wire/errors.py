"""The one error of this package: a request that is refused, whatever API it came through."""

from __future__ import annotations

from typing import Any

from inference.messages import Failed

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    501: "not_supported_error",
    503: "unavailable_error",
}


class RequestError(Exception):
    """A refusal: the HTTP status, llama-server's name for the kind of error, and a sentence for its reader.

    `type` "" means the usual one of that status; `param` is the field at fault; `extra` holds further fields
    of the error's body, such as n_prompt_tokens and n_ctx.
    """

    def __init__(
        self,
        status: int,
        type: str,
        message: str,
        param: str | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.type = type or TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
        self.message = message
        self.param = param
        self.extra = extra or {}

    @classmethod
    def from_failed(cls, failed: Failed) -> RequestError:
        """What a generation's last event tells, as an error."""
        return cls(failed.status, failed.type, failed.message, extra=failed.extra)


def invalid(param: str | None, message: str) -> RequestError:
    """A field that is not as it must be: 400, naming the field."""
    return RequestError(400, "", message, param)
