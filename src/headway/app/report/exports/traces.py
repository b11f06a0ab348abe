"""Tasks as they are read, to trace files of other tools: one at a time, so that a set of any size goes through."""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Final

from headway.app.report.exports.target import whole_file
from headway.app.report.figures import EARLIEST, plural
from headway.core.errors import BadInputError
from headway.core.span import Span
from headway.trace.anatomy import dissect
from headway.trace.export.otlp import to_otlp
from headway.trace.export.perfetto import HEAD, TAIL, encoded, events
from headway.trace.prices import PriceOf
from headway.trace.skew import shifted
from headway.trace.sources.intake import Imported

_DAY: Final = 86_400.0


class TraceFiles:
    """Open trace files; each task goes into all of them.

    Args:
        perfetto: takes trace events.
        otlp: takes a message a line.
        prices: what tokens cost.
    """

    def __init__(self, perfetto: IO[bytes] | None, otlp: IO[bytes] | None, prices: PriceOf) -> None:
        self._perfetto = perfetto
        self._otlp = otlp
        self._prices = prices
        self._comma = b""
        self.written = 0
        """Tasks."""
        self.untimed = 0
        """Tasks that cannot be in a trace, for their source does not say when things happened."""

    def take(self, one: Imported) -> None:
        """One more task."""
        if not one.verdict.timed:
            self.untimed += 1
            return
        self.written += 1
        if self._otlp is not None:
            self._otlp.write(to_otlp(_dated(one.spans)) + b"\n")
        if self._perfetto is not None:
            for event in encoded(events(dissect(one.spans, prices=self._prices), self.written, one.title)):
                self._perfetto.write(self._comma + event)
                self._comma = b",\n"

    def said(self) -> str:
        """How much was written."""
        left = f"; {plural(self.untimed, 'task')} without times left out" if self.untimed else ""
        return plural(self.written, "task") + left


def _dated(spans: Sequence[Span]) -> Sequence[Span]:
    """The spans a day later where they count from a start of their own: what begins at 0 has no time in OTLP."""
    relative = min((span.start for span in spans), default=EARLIEST) < EARLIEST
    return [shifted(span, _DAY) for span in spans] if relative else spans


@contextmanager
def trace_files(perfetto: Path | None, otlp: Path | None, prices: PriceOf) -> Generator[TraceFiles]:
    """Files to take tasks, there when all has gone well.

    Raises:
        BadInputError: a file cannot be written, or none of the tasks has times.
    """
    with ExitStack() as stack:
        events_file = None if perfetto is None else stack.enter_context(whole_file(perfetto, "--perfetto"))
        otlp_file = None if otlp is None else stack.enter_context(whole_file(otlp, "--otlp"))
        if events_file is not None:
            events_file.write(HEAD)
        files = TraceFiles(events_file, otlp_file, prices)
        yield files
        if files.untimed and not files.written and (perfetto or otlp):
            raise BadInputError(
                "This record does not say when things happened, so it makes no trace.",
                fix="Leave --perfetto and --otlp out, or record spans with start and end.",
            )
        if events_file is not None:
            events_file.write(TAIL)
