"""What two questions must have in common before one's answer may serve the other, however near their meanings seem.

Embeddings hardly tell "in 2023" from "in 2024", or "with" from "without". So numbers, dates, negations, opposites,
names and what is quoted are compared as they stand. A guard errs on the side of asking again: that costs a call, the
other error costs a wrong answer.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

Guard = Literal["numbers", "dates", "negation", "opposites", "names", "quoted"]

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?"
)
_DATE: Final = re.compile(
    rf"""(?P<y>\d{{4}})\s*[-/.년]\s*(?P<m>\d{{1,2}})(?:\s*[-/.월]\s*(?P<d>\d{{1,2}})일?)?월?
    | \b(?P<month>{_MONTH})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<year>\d{{4}}))?
    | \b(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month2>{_MONTH})\b\.?(?:,?\s+(?P<year2>\d{{4}}))?
    | \b(?P<month3>{_MONTH})\.?,?\s+(?P<year3>\d{{4}})\b
    | (?<!\d)(?P<m4>\d{{1,2}})월(?:\s*(?P<d4>\d{{1,2}})일)?""",
    re.IGNORECASE | re.VERBOSE,
)
_DAYS: Final = re.compile(
    r"\b(?:today|tomorrow|yesterday|tonight|(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"(?:last|this|next|past|previous)\s+(?:day|week|month|quarter|year|spring|summer|autumn|fall|winter))s?\b"
    r"|오늘|내일|어제|모레|[월화수목금토일]요일|지난\s*(?:주|달|해)|이번\s*(?:주|달|해)|다음\s*(?:주|달|해)|작년|올해|내년",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"((?:(?<![\w.])[-+])?\d[\d,]*(?:\.\d+)*)(?:\s*(?:%|percent\b|per cent\b|퍼센트))?")
_COUNTED: Final = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
_WORDS_FOR: Final = {word: str(number) for number, word in enumerate(_COUNTED)} | {
    "once": "1",
    "twice": "2",
    "dozen": "12",
    "hundred": "100",
    "thousand": "1000",
    "million": "1000000",
}
_NEGATION: Final = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|nor|neither|without|except|excluding|unless|cannot|\w+n't)\b"
    r"|없|않|못|(?<![가-힣])안\s|아니|제외|말고",
    re.IGNORECASE,
)
_OPPOSITES: Final = (
    "increase/decrease raise/lower enable/disable enabled/disabled allow/deny allowed/denied open/close opened/closed "
    "start/stop begin/end add/remove install/uninstall import/export buy/sell before/after above/below over/under "
    "more/less most/least more/fewer maximum/minimum max/min best/worst first/last early/late fast/slow "
    "faster/slower high/low higher/lower include/exclude upgrade/downgrade push/pull read/write encode/decode "
    "encrypt/decrypt up/down left/right true/false valid/invalid legal/illegal safe/unsafe advantage/disadvantage "
    "advantages/disadvantages pros/cons win/lose all/any 증가/감소 "
    "최대/최소 장점/단점 이전/이후 켜/꺼 추가/삭제"
)
_SIDES: Final = {side: pair for pair in _OPPOSITES.split() for side in pair.split("/")}
_QUOTED: Final = re.compile(r"\"([^\"]+)\"|“([^”]+)”|`([^`]+)`|(?<!\w)'([^']+)'(?!\w)")
_NAME: Final = re.compile(
    r"[\w.+-]+@[\w-]+\.[\w.]+"  # addresses
    r"|https?://\S+|(?:[\w.-]*/)+[\w.-]+"  # places
    r"|\b\w*(?:[a-z]\w*[A-Z]|[A-Z]\w*\d|[a-z]\w*\d|\w_\w)\w*"  # identifiers
    r"|\b[A-Z][\w'-]*"  # capitalised
)
_SENTENCE: Final = re.compile(r"(?:^|[.!?:;\n]\s+|[\"“(]\s*)$")
_WORD: Final = re.compile(r"[\w']+")


class Marks(Struct, frozen=True, kw_only=True):
    """What of a question has to be met exactly; made once for each question that is kept."""

    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    negations: int
    opposites: frozenset[str]
    names: frozenset[str]
    quoted: frozenset[str]


def marks(question: str) -> Marks:
    """The marks of one question."""
    question = question.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    dates = tuple(sorted(_dates(question)))
    rest = _DATE.sub(" ", question)
    words = _WORD.findall(question.lower())
    return Marks(
        numbers=tuple(sorted(_numbers(rest))),
        dates=dates,
        negations=len(_NEGATION.findall(question)),
        opposites=frozenset(word for word in words if word in _SIDES)
        | frozenset(side for side in _SIDES if not side.isascii() and side in question),
        names=frozenset(name.casefold() for name in _names(rest)),
        quoted=frozenset(next(filter(None, found)) for found in _QUOTED.findall(question)),
    )


def disagreement(one: Marks, other: Marks) -> Guard | None:
    """The first guard that holds two questions apart; ``None``: nothing does."""
    compared: tuple[tuple[Guard, object, object], ...] = (
        ("dates", one.dates, other.dates),
        ("numbers", one.numbers, other.numbers),
        ("negation", one.negations, other.negations),
        ("opposites", one.opposites, other.opposites),
        ("quoted", one.quoted, other.quoted),
        ("names", one.names, other.names),
    )
    return next((guard for guard, its, others in compared if its != others), None)


def _dates(text: str) -> Iterator[str]:
    for match in _DATE.finditer(text):
        parts = {name: value for name, value in match.groupdict().items() if value is not None}
        year = parts.get("y") or parts.get("year") or parts.get("year2") or parts.get("year3") or "-"
        named = parts.get("month") or parts.get("month2") or parts.get("month3")
        month = str(_MONTHS.index(named[:3].lower()) + 1) if named else (parts.get("m") or parts.get("m4") or "-")
        day = parts.get("d") or parts.get("day") or parts.get("day2") or parts.get("d4") or "-"
        yield "/".join(part.lstrip("0") or "0" for part in (year, month, day))
    for match in _DAYS.finditer(text):
        yield re.sub(r"\s+", " ", match[0].lower())


def _numbers(text: str) -> Iterator[str]:
    counted = Counter(_WORD.findall(text.lower()))
    for word, number in _WORDS_FOR.items():
        yield from [number] * counted[word]
    for match in _NUMBER.finditer(text):
        written = match[1]
        unit = "%" if len(written) < len(match[0].rstrip()) else ""
        number = written.replace(",", "").lstrip("+")
        whole, point, fraction = number.partition(".")
        if "." not in fraction:  # 1.50 is 1.5, but no version is another
            fraction = fraction.rstrip("0")
            number = (whole.lstrip("0") or "0") + (point + fraction if fraction else "")
        yield number + unit


def _names(text: str) -> Iterator[str]:
    """Names and identifiers; a capital that only begins a sentence makes no name."""
    for match in _NAME.finditer(text):
        name = match[0]
        plain = name[:1].isupper() and name[1:].islower()
        if not (plain or len(name) == 1) or not _SENTENCE.search(text[: match.start()]):
            yield name.removesuffix("'s")
