"""Prometheus metrics by the names of OpenTelemetry's GenAI conventions, counted many calls at a time.

Labels are bounded: a model gets its own label once a replica has been sent a call for it, and only the first `MODELS`
of them; all others share `OTHER`. So a client cannot make the page grow by inventing names.
"""

import os
import resource
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import structs

from headway.core.fleet import FleetView
from headway.core.span import ModelCall, Span
from headway.gateway.exposition import Histogram, braces, family, head, histograms
from headway.gateway.tenant_figures import TenantFigures

MODELS: Final = 100
"""Distinct models with a label of their own."""
OTHER: Final = "other"
_LABEL_CHARS: Final = 128
_AT_ONCE: Final = 64
"""Calls that are counted together, in about half of the time that it takes one by one, and never at a call's expense
for longer than some 0.2 ms."""

# Bounds in seconds: the conventions' advice, carried on to the long prefills that small machines have.
_DURATION: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84)
_TTFT: Final = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60)
_TPOT: Final = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5)
_GAP: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_OVERHEAD: Final = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1)
_TOKENS: Final = tuple(4**power for power in range(14))


class _Series:
    """Everything that is counted for one model on one replica."""

    __slots__ = (
        "cached", "duration", "gap_count", "gap_total", "inputs", "longest_gap", "outputs", "overhead", "requests",
        "tpot", "ttft",
    )  # fmt: skip

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.duration = Histogram(_DURATION)
        self.ttft = Histogram(_TTFT)
        self.tpot = Histogram(_TPOT)
        self.overhead = Histogram(_OVERHEAD)
        self.longest_gap = Histogram(_GAP)
        self.gap_count = 0
        self.gap_total = 0.0
        self.inputs = Histogram(_TOKENS)
        self.outputs = Histogram(_TOKENS)
        self.cached = 0

    def observe(self, spans: Sequence[Span], calls: Sequence[ModelCall]) -> None:
        """Count ``calls``, whose spans are ``spans``: one kind of figure after the other, which is quicker."""
        self.requests.update([span.error or "ok" for span in spans])
        self.duration.observe([span.end - span.start for span in spans if span.end is not None])
        self.overhead.observe(
            [
                call.sent - span.start - (call.queued or 0.0)
                for span, call in zip(spans, calls, strict=True)
                if call.sent is not None
            ]
        )
        usages = [call.usage for call in calls if call.given_again is None and call.sent is not None]
        self.inputs.observe([usage.input_tokens for usage in usages if usage.input_tokens is not None])
        self.outputs.observe([usage.output_tokens for usage in usages if usage.output_tokens is not None])
        self.cached += sum([usage.cache_read for usage in usages if usage.cache_read is not None])
        for call in calls:
            if call.first_token is not None:
                self._observe_stream(call, call.first_token)

    def _observe_stream(self, call: ModelCall, first: float) -> None:
        output, last, itl = call.usage.output_tokens, call.last_token, call.itl
        if call.sent is not None:
            self.ttft.observe((first - call.sent,))
        if output is not None and output > 1 and last is not None:
            self.tpot.observe(((last - first) / (output - 1),))
        if itl is not None and itl.count:
            self.gap_count += itl.count
            self.gap_total += itl.mean * itl.count
            self.longest_gap.observe((itl.max,))


class Metrics:
    """Counters and histograms of the calls that the gateway served; for one thread."""

    def __init__(self) -> None:
        self._fresh: list[Span] = []
        """Not counted yet; without their texts, which may be long."""
        self._series: dict[tuple[str, str | None], _Series] = {}
        self._models: set[str] = set()
        self._evidence: Counter[str] = Counter()
        self._tasks = 0
        self._away: Counter[str] = Counter()
        self._tenants = TenantFigures()

    def observe_call(self, span: Span) -> None:
        """Count one finished model call; a span of other work is passed over."""
        fresh = self._fresh
        fresh.append(span if span.text is None else structs.replace(span, text=None))
        if len(fresh) == _AT_ONCE:
            self._fold()

    def turned_away(self, error: str) -> None:
        """Count a request that nobody is known to have sent, by the word for why it was turned away."""
        self._away[error] += 1

    def render(self, view: FleetView, *, spans_recorded: int, spans_dropped: int, spans_lost: int) -> bytes:
        """The page for ``GET /metrics``, in Prometheus' text format, version 0.0.4."""
        self._fold()
        lines = [
            *self._calls(),
            *self._tokens(),
            *family("headway_tasks_total", "counter", "Tasks that were opened.", [({}, self._tasks)]),
            *family(
                "headway_task_identity_total",
                "counter",
                "Calls by the evidence that assigned them to their task.",
                [({"evidence": evidence}, count) for evidence, count in self._evidence.items()],
            ),
            *family(
                "headway_turned_away_total",
                "counter",
                "Requests without a key that is known; of these nothing is recorded.",
                [({"error_type": error}, count) for error, count in self._away.items()],
            ),
            *self._tenants.families(),
            *_replicas(view),
            *family(
                "headway_spans_recorded_total",
                "counter",
                "Spans written to the store; those lost with it later are among them.",
                [({}, spans_recorded)],
            ),
            *family(
                "headway_spans_dropped_total",
                "counter",
                "Spans never written: the buffer was full, or the store or the span could not be written.",
                [({}, spans_dropped)],
            ),
            *family(
                "headway_spans_lost_total",
                "counter",
                "Spans that were written and are gone, because the store's file was removed or replaced.",
                [({}, spans_lost)],
            ),
            *process_figures(),
        ]
        return ("\n".join(lines) + "\n").encode(errors="replace")

    def _fold(self) -> None:
        fresh, self._fresh = self._fresh, []
        groups: dict[tuple[str, str | None], tuple[list[Span], list[ModelCall]]] = {}
        for span in fresh:
            call = span.work
            if isinstance(call, ModelCall):
                spans, calls = groups.setdefault((call.model, call.replica), ([], []))
                spans.append(span)
                calls.append(call)
        for (model, replica), (spans, calls) in groups.items():
            label = model if (model, replica) in self._series or self._has_label(calls[0]) else OTHER
            self._series.setdefault((label, replica), _Series()).observe(spans, calls)
            self._tenants.observe(label, spans, calls)
            identities = [call.identity for call in calls if call.identity is not None]
            self._evidence.update([identity.evidence for identity in identities])
            self._tasks += sum([identity.opens_task for identity in identities])

    def _has_label(self, call: ModelCall) -> bool:
        if call.model in self._models:
            return True
        if call.replica is None or len(self._models) >= MODELS or len(call.model) > _LABEL_CHARS:
            return False
        self._models.add(call.model)
        return True

    def _labelled(self) -> list[tuple[dict[str, str], _Series]]:
        return [
            ({"gen_ai_request_model": model, "replica": replica or ""}, series)
            for (model, replica), series in self._series.items()
        ]

    def _calls(self) -> Iterator[str]:
        all_series = self._labelled()
        yield from family(
            "headway_requests_total",
            "counter",
            "Model calls by how they ended: ok, or the type of the error.",
            [
                ({**labels, "status": status}, count)
                for labels, series in all_series
                for status, count in series.requests.items()
            ],
        )
        errors: dict[str, int] = {}
        for _, series in all_series:
            for status, count in series.requests.items():
                if status != "ok":
                    errors[status] = errors.get(status, 0) + count
        yield from family(
            "headway_errors_total",
            "counter",
            "Failed calls by the type of the error.",
            [({"error_type": error}, count) for error, count in errors.items()],
        )
        for name, what, pick in (
            ("gen_ai_server_request_duration_seconds", "From the request to the end of its answer.", "duration"),
            ("gen_ai_server_time_to_first_token_seconds", "From handing the call to the engine on.", "ttft"),
            ("gen_ai_server_time_per_output_token_seconds", "Per token after the first.", "tpot"),
            ("headway_overhead_seconds", "Spent in the gateway, queueing apart, before the call was sent.", "overhead"),
            ("headway_longest_gap_seconds", "Longest pause between two chunks of each stream.", "longest_gap"),
        ):
            yield from histograms(name, what, [(labels, getattr(series, pick)) for labels, series in all_series])
        gaps = "headway_inter_chunk_seconds"
        yield from head(gaps, "summary", "Gaps between the chunks of streamed answers.")
        for labels, series in all_series:
            yield f"{gaps}_sum{braces(labels)} {series.gap_total!r}"
            yield f"{gaps}_count{braces(labels)} {series.gap_count}"

    def _tokens(self) -> Iterator[str]:
        all_series = self._labelled()
        yield from histograms(
            "gen_ai_client_token_usage",
            "Tokens per call, where the engine reported them; input includes cached.",
            [({**labels, "gen_ai_token_type": "input"}, series.inputs) for labels, series in all_series]
            + [({**labels, "gen_ai_token_type": "output"}, series.outputs) for labels, series in all_series],
        )
        yield from family(
            "headway_cached_tokens_total",
            "counter",
            "Input tokens that the engine took from its prefix cache.",
            [(labels, series.cached) for labels, series in all_series],
        )


def _replicas(view: FleetView) -> Iterator[str]:
    loads = [({"replica": load.replica.id}, load) for load in view.loads]
    yield from family(
        "headway_replica_up",
        "gauge",
        "1: the replica is thought healthy.",
        [(labels, int(load.healthy)) for labels, load in loads],
    )
    yield from family(
        "headway_replica_in_flight",
        "gauge",
        "Calls sent to the replica whose answer has not ended.",
        [(labels, load.in_flight) for labels, load in loads],
    )


def process_figures() -> Iterator[str]:
    """This process' own cost; what an operating system does not tell is left out."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    yield from family("process_cpu_seconds_total", "counter", "CPU time of the gateway.", [({}, cpu)])
    statm, descriptors = Path("/proc/self/statm"), Path("/proc/self/fd")
    if statm.exists():
        resident = int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        yield from family("process_resident_memory_bytes", "gauge", "Memory of the gateway.", [({}, resident)])
        count = sum(1 for _ in descriptors.iterdir())
        yield from family("process_open_fds", "gauge", "Open files and sockets of the gateway.", [({}, count)])
