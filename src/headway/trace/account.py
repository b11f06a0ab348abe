"""The account of one task: its anatomy, what is wrong with it, what would change it, and how far to trust that."""

from collections.abc import Sequence

from msgspec import Struct, structs

from headway.core.span import Span
from headway.trace.anatomy import Anatomy, dissect
from headway.trace.findings import Finding, findings
from headway.trace.levers import Lever, rank
from headway.trace.prices import PriceOf, price_for
from headway.trace.sources.verdict import Verdict, judge, told_by_price
from headway.trace.study import study


class TaskAccount(Struct, frozen=True, kw_only=True):
    """All that is to be said of one task."""

    title: str | None
    """The first words of what the user asked; unknown where the record does not say."""
    anatomy: Anatomy
    levers: tuple[Lever, ...]
    """Best first; none where the record keeps no times."""
    findings: tuple[Finding, ...]
    """The dearest first."""
    verdict: Verdict


def account_of(
    spans: Sequence[Span], verdict: Verdict, title: str | None = None, *, prices: PriceOf = price_for
) -> TaskAccount:
    """The account of one task.

    Args:
        spans: all its spans, in any order and any state.
        verdict: what they can be trusted for.
        title: the first words of what the user asked.
        prices: what tokens cost, where no cost was recorded.
    """
    case = study(spans)
    anatomy = dissect(case, prices=prices, timed=verdict.timed)
    return TaskAccount(
        title=title,
        anatomy=anatomy,
        levers=rank(case, prices=prices) if verdict.timed else (),
        findings=findings(case, verdict, anatomy=anatomy, prices=prices),
        verdict=structs.replace(verdict, aspects=told_by_price(verdict.aspects, anatomy.spent.cost)),
    )


def recorded(spans: Sequence[Span], *, prices: PriceOf = price_for) -> TaskAccount:
    """The account of a task that Headway recorded itself."""
    return account_of(spans, judge(spans, "Headway's gateway", "spans"), prices=prices)
