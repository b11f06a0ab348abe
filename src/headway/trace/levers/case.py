"""One task, ready for its what-ifs."""

from msgspec import Struct

from headway.core.span import ModelCall, Span, ToolUse
from headway.core.task import SpanId
from headway.trace.change import Share, inner, shares_of
from headway.trace.charges import charges_of, of_parts, spent_by
from headway.trace.phases import Phase
from headway.trace.prices import PriceOf
from headway.trace.study import Study, Task, study


class Case(Struct, frozen=True, kw_only=True):
    """One task, ready for its what-ifs."""

    study: Study
    shares: dict[Phase, list[Share]]
    """What each phase has in every gap and tail."""
    children: dict[int, list[int]]
    """What each holder holds."""
    issued: dict[SpanId, list[int]]
    """Tools by the call whose response asked for them, in order of start."""
    prices: PriceOf
    """Those that hold for some of a call's tokens."""
    paid: int
    """Micro-USD that all calls cost as far as is known: no change saves more."""

    def call(self, i: int) -> tuple[Span, ModelCall]:
        """The span and the call of one of the study's calls."""
        span = self.study.tree.spans[i]
        if not isinstance(span.work, ModelCall):
            msg = f"span {span.id} is no model call"
            raise TypeError(msg)
        return span, span.work


def case_of(task: Task, prices: PriceOf) -> Case:
    """Derive it from all spans of one task, or from its study."""
    studied = study(task)
    spans = [studied.tree.spans[i] for i in studied.held.calls]
    made = [(span.work, span.start) for span in spans if isinstance(span.work, ModelCall)]
    return Case(
        study=studied,
        shares=shares_of(studied),
        children=inner(studied),
        issued=_issued(studied),
        prices=of_parts(prices),
        paid=spent_by(charges_of(made, prices)).cost.total,
    )


def _issued(case: Study) -> dict[SpanId, list[int]]:
    issued: dict[SpanId, list[int]] = {}
    latest: dict[str, SpanId] = {}  # by the tool call's id; some engines use one again, so the last one counts
    for i in sorted(case.held.nodes, key=case.held.lo.__getitem__):
        span = case.tree.spans[i]
        match span.work:
            case ModelCall(tool_calls=refs):
                latest.update((ref.id, span.id) for ref in refs)
            case ToolUse(issued_by=issuer, call_id=call_id):
                issuer = issuer or (latest.get(call_id) if call_id else None)
                if issuer is not None:
                    issued.setdefault(issuer, []).append(i)
            case _:
                pass
    return issued
