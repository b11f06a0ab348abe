"""What the words mean under which calls fail, and what to do about each: the gateway's own, and an engine's status."""

from typing import Final

from msgspec import Struct


class Meaning(Struct, frozen=True):
    """One word, explained."""

    what: str
    """Follows "the call failed: "."""
    remedy: str

    @property
    def engines(self) -> bool:
        """Whether an engine failed, so that another might have answered."""
        return self.remedy == _ENGINE


_ENGINE: Final = "See in the engine's log why."
ANOTHER: Final = "Have another replica ready for its calls (--upstream may be repeated)."
"""What else to do where an engine failed and no other replica stood ready."""
AGAIN: Final = (
    "An answer that has begun is never sent to another replica, since the user may have seen it: let the agent make the"
    " call again when its stream breaks off."
)
"""What else to do where an engine failed in mid-answer."""
_CALLER: Final = "Correct what the agent sends: the error that it was answered names the place."
_LATE: Final = "Raise the gateway's limit if such calls are to last so long, else see what keeps the engine busy."

_WORDS: Final[dict[str, Meaning]] = {
    "upstream_connect": Meaning("no connection to the engine was had", "Check that it runs and that its URL is right."),
    "upstream_closed": Meaning("the engine closed the connection before its answer was complete", _ENGINE),
    "upstream_timeout": Meaning("the engine did not begin to answer within --first-byte-seconds", _LATE),
    "upstream_stalled": Meaning("the engine fell silent in mid-answer for --stall-seconds", _LATE),
    "upstream_malformed": Meaning("the engine's answer was no valid HTTP, JSON or event stream", _ENGINE),
    "upstream_truncated": Meaning("the engine ended its stream without a finish_reason", _ENGINE),
    "upstream_oversize": Meaning(
        "the engine's answer was longer than --response-bytes", "Ask for a shorter answer, or raise that limit."
    ),
    "upstream_error_event": Meaning("the engine sent an error in its stream", _ENGINE),
    "no_replica": Meaning(
        "no replica could take it", "See /health of the gateway for the state of each, and start what is down."
    ),
    "unknown_model": Meaning("no replica serves a model of that name", "Ask for one of those that /v1/models lists."),
    "bad_request": Meaning("the gateway could not read the request", _CALLER),
    "body_too_large": Meaning(
        "the request was longer than --body-bytes", "Shorten the history that is sent, or raise that limit."
    ),
    "header_too_large": Meaning("the request's header was too long", _CALLER),
    "request_timeout": Meaning("the request did not arrive in time", "See what holds the caller up while it sends."),
    "not_allowed": Meaning(
        "it came by a name, or from a web page, that this gateway does not serve",
        "Call it by 127.0.0.1 and its port, or start it with --allow-host NAME.",
    ),
    "client_gone": Meaning(
        "the caller left before the answer was complete",
        "See whether the caller's own limit on time is shorter than the answer takes.",
    ),
    "client_stalled": Meaning("the caller stopped reading its answer", "See what holds the caller up while it reads."),
    "shutdown": Meaning("the gateway was stopped", "Nothing, if that was meant; calls get 30 s to end."),
}
_STATUS: Final[dict[str, Meaning]] = {
    "401": Meaning("the engine wants a valid key", "Check the key: the caller's own, or the one of key-env."),
    "403": Meaning("the engine does not allow it with this key", "Check what the key may do, and for which model."),
    "404": Meaning("the engine knows no such model or address", "Check the model's name and the engine's base URL."),
    "413": Meaning("the request is too long for the engine", "Shorten the prompt, or use a model with more context."),
    "429": Meaning(
        "the engine's limit on requests or tokens was reached",
        "Send fewer at a time, wait as long as it says, or ask for a higher limit.",
    ),
    "4": Meaning("the engine refused the request", _CALLER),
    "5": Meaning("the engine failed", _ENGINE),
}


def meaning(error: str) -> Meaning | None:
    """What ``error`` means; ``None``: it is another's word."""
    status = error.removeprefix("http_")
    if status != error:
        return _STATUS.get(status) or _STATUS.get(status[:1])
    return _WORDS.get(error)
