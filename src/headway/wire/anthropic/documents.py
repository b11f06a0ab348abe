"""What Headway itself says in Anthropic's dialect: errors, the list of models, a count of tokens."""

from typing import Any, Final

import msgspec

from headway.wire.dialect import Refusal

_KINDS: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_SERVER_ERROR: Final = 500


def kind(status: int) -> str:
    """The API's word for what a status means, of those that its client's types know."""
    return _KINDS.get(status) or ("api_error" if status >= _SERVER_ERROR else "invalid_request_error")


def error_body(refusal: Refusal) -> bytes:
    """An error as the API shapes it; Headway's own word for it goes beside the message."""
    return msgspec.json.encode(_error(refusal))


def error_event(refusal: Refusal) -> bytes:
    """The same as an event, after which clients read no further."""
    return b"event: error\ndata: %b\n\n" % error_body(refusal)


def models_document(names: list[str]) -> bytes:
    """The list of models. When each was made is not known; the API's own word for that is the epoch."""
    data = [
        {
            "type": "model",
            "id": name,
            "display_name": name,
            "created_at": "1970-01-01T00:00:00Z",
            "lifecycle": "active",
        }
        for name in names
    ]
    return msgspec.json.encode(
        {
            "data": data,
            "has_more": False,
            "first_id": names[0] if names else None,
            "last_id": names[-1] if names else None,
        }
    )


def count_document(input_tokens: int) -> bytes:
    """The answer to count_tokens."""
    return msgspec.json.encode({"input_tokens": input_tokens})


def _error(refusal: Refusal) -> dict[str, Any]:
    detail = {"type": kind(refusal.status), "message": refusal.message, "code": refusal.error}
    return {"type": "error", "error": detail, "request_id": None}
