"""Requests to Anthropic's Messages API, as far as Headway acts on them. The body is passed on as it came."""

import re
from typing import Final, Literal

import msgspec
from msgspec import Raw, Struct, field

from headway.core.errors import BadInputError
from headway.wire.bad_request import check_tools, decoded, first_problem
from headway.wire.openai import NULL

_SESSION: Final = re.compile(r"_session_([0-9A-Za-z-]{8,64})$")
"""How Claude Code's older versions put the session into ``metadata.user_id``."""
_CHANGING: Final = "x-anthropic-billing-header:"
"""How a block begins that Claude Code puts before its system prompt; it differs from call to call of a conversation."""
_EARLY: Final = 200
"""Bytes within which it begins."""
_ROLES: Final = "Give every message one of the roles user, assistant and system."
_SHAPE: Final = "Send a Messages object with `model` (string), `max_tokens` (integer) and `messages` (array)."


class MessagesRequest(Struct, frozen=True, kw_only=True):
    """What Headway reads of a request to /v1/messages, or to /v1/messages/count_tokens."""

    model: str
    history: Raw = field(name="messages")
    """As the body has them, without the system prompt."""
    stream: bool | None = None
    system: Raw = NULL
    tools: Raw = NULL
    metadata: Raw = NULL
    output_limit: int | None = field(name="max_tokens", default=None)

    @property
    def messages(self) -> Raw:
        """The messages with the system prompt in front of them, so that conversations differ where prompts do."""
        system = _lasting(self.system)
        if system == NULL:
            return self.history
        return Raw(b'[{"role":"system","content":%b},%b' % (bytes(system), bytes(self.history)[1:]))

    @property
    def choices(self) -> int:
        """The API gives one answer."""
        return 1

    @property
    def session(self) -> str | None:
        """The session that ``metadata.user_id`` tells, as Claude Code writes it; a mere user is no session."""
        if self.metadata == NULL:
            return None
        try:
            user = msgspec.json.decode(self.metadata, type=_Metadata).user_id
            if user.startswith("{"):
                return msgspec.json.decode(user, type=_Device).session_id or None
        except (msgspec.DecodeError, RecursionError):
            return None
        match = _SESSION.search(user)
        return None if match is None else match[1]

    def asking_for_usage(self, body: bytes) -> None:
        """A stream tells its usage unasked."""
        del body


class _Metadata(Struct):
    user_id: str = ""


class _Device(Struct):
    session_id: str = ""


class _Block(Struct):
    text: str


class _Message(Struct, gc=False):
    role: Literal["user", "assistant", "system"]


_decoder: Final = msgspec.json.Decoder(MessagesRequest)
_messages_decoder: Final = msgspec.json.Decoder(list[_Message])


def read_request(body: bytes) -> MessagesRequest:
    """Read a request to /v1/messages.

    Raises:
        BadInputError: the body is not JSON, a field that Headway needs is missing or of the wrong type, there is no
            message, or one has no role that the API knows.
    """
    request = read_count_request(body)
    if request.output_limit is None:
        raise BadInputError("The request has no `max_tokens`.", fix=_SHAPE)
    return request


def read_count_request(body: bytes) -> MessagesRequest:
    """Read a request to /v1/messages/count_tokens, which needs no ``max_tokens``.

    Raises:
        BadInputError: as `read_request`.
    """
    request = decoded(_decoder, body, fix=_SHAPE)
    check_tools(request.tools)
    first_problem(request.history, "messages", _messages_decoder, _Message, fix=_ROLES)
    return request


def _lasting(system: Raw) -> Raw:
    """The system prompt without a first block that is new with every call."""
    if _CHANGING.encode() not in bytes(system)[:_EARLY]:
        return system
    try:
        blocks = msgspec.json.decode(system, type=list[Raw])
        changing = msgspec.json.decode(blocks[0], type=_Block).text.startswith(_CHANGING)
    except (msgspec.DecodeError, RecursionError):
        return system
    lasting = blocks[1:] if changing else blocks
    return Raw(msgspec.json.encode(lasting)) if lasting else NULL
