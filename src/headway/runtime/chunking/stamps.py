"""When a line of a log was written, as programs write it at the beginning of their lines."""

import re
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from headway.core.errors import BadInputError
from headway.trace.sources.fields.instants import instant

_READ: Final = 1_000
"""Characters of a line among which its time is looked for."""
_LEAD: Final = r"(?:\S+[ \t]+){0,3}?\S*?"
"""What may stand before: a host, a level, a container's name, brackets."""
_CLOCK: Final = r"(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?"
_ZONE: Final = r"(?:[ ]?(?P<z>Z|[+-]\d\d:?\d\d)(?!\d))?"
_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_MONTH: Final = f"(?P<mo>{'|'.join(_MONTHS)})"
_FORMS: Final = tuple(
    re.compile(form, re.ASCII)
    for form in (
        rf"{_LEAD}(?<!\d)(?P<y>\d{{4}})[-/](?P<mo>\d\d)[-/](?P<d>\d\d)[T ]{_CLOCK}{_ZONE}",  # ISO 8601, nginx, Go
        rf"{_LEAD}(?<!\d)(?P<d>\d\d?)/{_MONTH}/(?P<y>\d{{4}}):{_CLOCK}{_ZONE}",  # access logs of Apache and nginx
        # syslog, and what C's asctime writes
        rf"\[?(?:<\d{{1,3}}>)?(?:[A-Z][a-z]{{2}}[ ])?{_MONTH}[ ]+(?P<d>\d\d?)[ ]{_CLOCK}(?:[ ](?P<y>\d{{4}})\b)?",
        rf"[IWEF](?P<mo>\d\d)(?P<d>\d\d)[ ]+{_CLOCK}[ ]",  # Kubernetes' components (klog)
    )
)
_FIELD: Final = re.compile(
    r"""(?:^|[{,\s])"?(?:@?timestamp|time|ts|asctime|datetime|date)"?\s?[:=]\s?("[^"]{4,40}"|[^\s,}"]{4,40})"""
)
"""In JSON and in logfmt."""
_EPOCH: Final = re.compile(r"\[?(\d{10}(?:\.\d{1,9})?|\d{13}|\d{16}|\d{19})(?![\d.\-/:])")


class Stamps(Struct, frozen=True, kw_only=True):
    """Reads the time at the beginning of a line.

    Known are ISO 8601 with its variants (``2026-11-30 18:00:01,123``, ``2026/11/30 18:00:01``), access logs
    (``[30/Nov/2026:18:00:01 +0000]``), syslog (``Nov 30 18:00:01``), Kubernetes (``I1130 18:00:01.123456``), epoch
    numbers in s, ms, µs or ns, and the fields ``time``, ``ts``, ``timestamp``, ``date`` of JSON and logfmt. Up to three
    words may stand before, such as a host and a level. A line that begins with white space continues the one before.
    """

    year: int | None = None
    """Of times that name none, as syslog's."""
    utc_offset: float = 0.0
    """Seconds that clocks of times without a zone are ahead of UTC."""

    def __call__(self, line: str) -> float | None:
        """Epoch seconds; ``None``: the line names no time, so it belongs to the one before it.

        Raises:
            BadInputError: its time names no year, and none was given.
        """
        line = line[:_READ]
        if not line or line[0].isspace():
            return None
        if line[0] != "{":
            for form in _FORMS:
                if found := form.match(line):
                    return self._moment(found)
            if found := _EPOCH.match(line):
                return _epoch(found[1])
        found = _FIELD.search(line)
        return None if found is None else self._field(found[1].strip('"'))

    def _field(self, text: str) -> float | None:
        for form in _FORMS[:2]:
            if found := form.fullmatch(text):
                return self._moment(found)
        return _epoch(text) if _EPOCH.fullmatch(text) else None

    def _moment(self, found: re.Match[str]) -> float | None:
        parts = found.groupdict()
        year = parts.get("y") or self.year
        if year is None:
            raise BadInputError(
                f"The time in {found[0]!r} names no year.", fix="Give it: by_time(…, stamp=Stamps(year=2026))."
            )
        month = _MONTHS.get(parts["mo"]) or int(parts["mo"])
        try:
            second = datetime(
                int(year), month, int(parts["d"]), int(parts["h"]), int(parts["mi"]), int(parts["s"]), tzinfo=UTC
            ).timestamp()
        except ValueError:  # no such day, or hour
            return None
        return second + float(f"0.{parts['f'] or 0}") - self._ahead(parts.get("z"))

    def _ahead(self, zone: str | None) -> float:
        if zone is None:
            return self.utc_offset
        if zone == "Z":
            return 0.0
        sign = -1 if zone[0] == "-" else 1
        digits = zone[1:].replace(":", "")
        return sign * (int(digits[:2]) * 3600.0 + int(digits[2:]) * 60.0)


def _epoch(digits: str) -> float | None:
    return instant(float(digits) if "." in digits else int(digits))
