"""Where requests carry a secret, and which headers must not go where it is nobody's business."""

from typing import Final

KEY_FIELDS: Final = frozenset({b"authorization", b"x-api-key", b"api-key"})
"""Headers that may hold a secret of the caller's."""
_BEARER: Final = b"bearer "


def secret_of(fields: dict[bytes, bytes]) -> bytes | None:
    """The secret in a request's headers: ``Authorization: Bearer``, ``x-api-key`` or ``api-key``; ``None``: none."""
    authorization = fields.get(b"authorization")
    if authorization is not None and authorization[: len(_BEARER)].lower() == _BEARER:
        return authorization[len(_BEARER) :].strip() or None
    return fields.get(b"x-api-key") or fields.get(b"api-key") or None
