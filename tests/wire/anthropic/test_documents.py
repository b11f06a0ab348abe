"""What we say in Anthropic's dialect is read by its own client's types."""

import json

import pytest
from anthropic.types import MessageTokensCount, ModelInfo
from anthropic.types.shared import ErrorResponse
from msgspec import Struct

from headway.wire.anthropic.documents import count_document, error_body, error_event, models_document
from wire import data_of


class Refused(Struct):
    """A refusal."""

    status: int
    message: str = "No replica. Try again."
    error: str = "no_replica"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (408, "timeout_error"),
        (413, "invalid_request_error"),
        (418, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "overloaded_error"),
        (504, "timeout_error"),
    ],
)
def test_errors_by_status(status: int, kind: str) -> None:
    document = json.loads(error_body(Refused(status)))
    assert document["type"] == "error"
    assert document["error"] == {"type": kind, "message": "No replica. Try again.", "code": "no_replica"}
    ErrorResponse.model_validate(document)


def test_an_error_event_is_named_and_holds_the_same() -> None:
    event = error_event(Refused(502))
    assert event.startswith(b"event: error\n")
    assert data_of(event) == [error_body(Refused(502))]


def test_models_and_counts() -> None:
    document = json.loads(models_document(["a", "b"]))
    assert [ModelInfo.model_validate(each).id for each in document["data"]] == ["a", "b"]
    assert (document["first_id"], document["last_id"], document["has_more"]) == ("a", "b", False)
    assert json.loads(models_document([]))["last_id"] is None
    assert MessageTokensCount.model_validate_json(count_document(7)).input_tokens == 7
