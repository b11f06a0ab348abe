"""What a call was asked and what came back, without the text: enough to see that two are the same, or nearly."""

from msgspec import Struct


class Part(Struct, frozen=True, gc=False):
    """One message of a prompt or an answer. Equal texts in equal roles have equal digests, in every trace."""

    role: str
    """system, user, assistant or tool."""
    chars: int
    """Length of its text."""
    digest: str
    """16 hex digits over role and text."""
    shape: str
    """16 hex digits over role and text with every time and every id in it masked. Where two parts have equal shapes
    and unequal digests, nothing but times or ids tells them apart."""
