"""All dialects that can be asked, by their paths and names."""

from typing import Final

from headway.wire.anthropic.messages import AnthropicCountTokens, AnthropicMessages
from headway.wire.dialect import Dialect
from headway.wire.embeddings import OpenAIEmbeddings
from headway.wire.openai_chat import OpenAIChat
from headway.wire.responses.responses import OpenAIResponses

CHAT: Final[Dialect] = OpenAIChat()
RESPONSES: Final[Dialect] = OpenAIResponses()
EMBEDDINGS: Final[Dialect] = OpenAIEmbeddings()
MESSAGES: Final[Dialect] = AnthropicMessages()
COUNT_TOKENS: Final[Dialect] = AnthropicCountTokens()

ALL: Final = (CHAT, RESPONSES, EMBEDDINGS, MESSAGES, COUNT_TOKENS)
BY_PATH: Final = {b"/v1" + dialect.path: dialect for dialect in ALL}
"""What a caller's path, without its query, is asked in."""
BY_NAME: Final = {dialect.name: dialect for dialect in ALL}
