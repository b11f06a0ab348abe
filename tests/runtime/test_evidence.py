from hypothesis import given
from hypothesis import strategies as st
from unhurried import UNHURRIED

from headway.runtime import Run, task
from headway.runtime.chunking import Origin
from headway.runtime.evidence import Claim, Order, merged, merging, written

ORDERS: list[Order] = ["time", "span", "service"]
CLAIMS = st.lists(
    st.builds(
        Claim,
        text=st.sampled_from(["it fails", "It  fails", "it recovers", ""]),
        sources=st.lists(
            st.builds(Origin, st.sampled_from("ab"), st.integers(1, 3), st.integers(3, 4)), max_size=2
        ).map(tuple),
        at=st.none() | st.sampled_from([0.0, 1.0, 2.5]),
        span=st.none() | st.sampled_from(["s1", "s2"]),
        service=st.none() | st.sampled_from(["web", "db", ""]),
    ),
    max_size=12,
)


def claim(text: str, at: float | None = None, *, service: str | None = None, span: str | None = None) -> Claim:
    return Claim(text=text, sources=(Origin("a.log", 1, 1),), at=at, service=service, span=span)


@UNHURRIED
@given(st.lists(CLAIMS, max_size=5), st.sampled_from(ORDERS))
def test_in_whichever_portions_they_are_merged_the_same_comes_out(parts: list[list[Claim]], order: Order) -> None:
    once = merged(parts, order)
    assert merged([merged(parts[:2], order), merged(parts[2:], order)], order) == once
    assert merged([once], order) == once
    assert merged(reversed(parts), order) == once


@UNHURRIED
@given(st.lists(CLAIMS, max_size=5), st.sampled_from(ORDERS))
def test_no_claim_and_no_source_is_lost(parts: list[list[Claim]], order: Order) -> None:
    given_claims = [claim for part in parts for claim in part]
    out = merged(parts, order)

    def says(claim: Claim) -> tuple[object, ...]:
        return " ".join(claim.text.lower().split()), claim.at, claim.span, claim.service

    assert len(out) == len({says(claim) for claim in out}) == len({says(claim) for claim in given_claims})
    for claim in given_claims:
        (kept,) = [one for one in out if says(one) == says(claim)]
        assert set(claim.sources) <= set(kept.sources)
    assert {source for claim in out for source in claim.sources} == {
        source for claim in given_claims for source in claim.sources
    }


@UNHURRIED
@given(CLAIMS)
def test_what_happened_first_comes_first(claims: list[Claim]) -> None:
    times = [float("inf") if claim.at is None else claim.at for claim in merged([claims])]
    assert times == sorted(times)


def test_one_service_is_told_after_the_other() -> None:
    claims = [claim("web 3", 3, service="web"), claim("db 2", 2, service="db"), claim("web 1", 1, service="web")]
    claims += [claim("whose?", 0), claim("db, when?", service="db")]
    assert [one.text for one in merged([claims], "service")] == ["web 1", "web 3", "db 2", "db, when?", "whose?"]
    assert [one.text for one in merged([claims])] == ["whose?", "web 1", "db 2", "web 3", "db, when?"]


def test_one_span_is_told_after_the_other() -> None:
    claims = [claim("b", 3, span="2"), claim("a", 1, span="2"), claim("c", 2, span="1")]
    assert [one.text for one in merged([claims], "span")] == ["a", "b", "c"]


def test_the_same_at_another_time_is_another_piece_of_evidence() -> None:
    assert len(merged([[claim("refused", 1), claim("refused", 2), claim("Refused ", 2)]])) == 2


def test_a_claim_is_told_with_when_who_and_where() -> None:
    one = Claim(
        text="connection\nrefused",
        sources=(Origin("a.log", 3, 4), Origin("b.log", 7, 7)),
        at=1_796_040_001.25,
        span="ab12",
        service="web",
    )
    assert written([one, claim("so it seems")]) == (
        "- [2026-11-30T12:00:01.250+00:00, web, span ab12] connection refused (a.log, lines 3 to 4; b.log, line 7)\n"
        "- so it seems (a.log, line 1)\n"
    )
    assert claim("far off", 1e20).written == "[1e+20] far off (a.log, line 1)"


async def test_a_run_reduces_evidence() -> None:
    @task()
    async def gathers(run: Run) -> tuple[Claim, ...]:
        found = [(claim(f"at {second}", float(second)), claim("twice", 0.5)) for second in (5, 3, 1, 4)]
        return await run.reduce(merging("time"), found, fan_in=2)

    assert [one.text for one in await gathers.start()] == ["twice", "at 1", "at 3", "at 4", "at 5"]
