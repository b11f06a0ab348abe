"""Keys and passwords in what a user typed: no title, and so no page, file or archive, repeats them."""

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

MASK: Final = "***"


class _Secret(Struct, frozen=True):
    """How one kind of secret looks. ``signs`` cost a hundredth of ``pattern``, which needs one of them to match."""

    signs: tuple[str, ...]
    """In lower case."""
    pattern: re.Pattern[str]
    instead: str = MASK


_NAMES: Final = (
    "pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|api[-_ ]?key|(?:access|secret|private|auth)[-_ ]?key"
)
_SECRETS: Final = (
    _Secret(
        ("-----begin",),
        re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*-----|$)", re.DOTALL),
        rf"\1{MASK}",
    ),
    _Secret(
        ("bearer", "basic"),
        re.compile(r"\b(bearer|basic)(\s+)(?:(?=[\w.~+/=-]*\d)[\w.~+/=-]{8,}|[\w.~+/=-]{20,})", re.IGNORECASE),
        rf"\1\2{MASK}",
    ),
    _Secret(
        ("pass", "pwd", "secret", "token", "credential", "key"),
        re.compile(
            rf"((?:{_NAMES})[\"']?\s*[=:]\s*)(?!(?:bearer|basic)\b)(?:\"[^\"]*\"?|'[^']*'?|[^\s,;&]+)", re.IGNORECASE
        ),
        rf"\1{MASK}",
    ),
    _Secret(
        ("pass", "pwd", "secret", "token", "credential", "key"),
        re.compile(rf"((?:{_NAMES})\s+(?:is|was)\s+[\"']?)(?=[^\s,;\"']*\d)[^\s,;\"']{{6,}}", re.IGNORECASE),
        rf"\1{MASK}",
    ),
    _Secret(("://",), re.compile(r"(://[^\s/:@]*:)[^\s/@]+@"), rf"\1{MASK}@"),
    _Secret(
        ("sk-", "sk_", "pk-", "pk_", "rk-", "rk_"),
        re.compile(
            r"(?<![A-Za-z0-9])[spr]k[-_](?:(?:ant|proj|or|live|test)[-_][\w-]{4,}|(?=[\w-]*\d)[\w-]{8,}|\w{20,})"
        ),
    ),
    _Secret(("gho_", "ghp_", "ghs_", "ghr_", "ghu_"), re.compile(r"(?<![A-Za-z0-9])gh[oprsu]_\w{8,}")),
    _Secret(
        ("github_pat_", "glpat-", "hf_", "npm_", "whsec_", "xox"),
        re.compile(r"(?<![A-Za-z0-9])(?:github_pat_|glpat-|hf_|npm_|whsec_|xox[a-z]-)[\w-]{8,}"),
    ),
    _Secret(("akia", "asia"), re.compile(r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{8,}")),
    _Secret(("aiza",), re.compile(r"(?<![A-Za-z0-9])AIza[\w-]{8,}")),
    _Secret(("eyj",), re.compile(r"(?<![A-Za-z0-9])eyJ[\w-]{8,}\.[\w.-]*")),
)
"""By what those who hand them out say that they look like, or by what stands before them."""


@lru_cache(maxsize=1024)
def masked(text: str) -> str:
    """The text with a mask in place of each key, token and password that is known for one."""
    lower = text.lower()
    for secret in _SECRETS:
        for sign in secret.signs:
            if sign in lower:
                text = secret.pattern.sub(secret.instead, text)
                break
    return text
