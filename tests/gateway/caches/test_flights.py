"""One call for many that ask the same: who leads, who waits, and that nobody waits for ever."""

from caching import Caller, Rig, said
from hypothesis import given
from hypothesis import strategies as st

from headway.gateway.caches.outcomes import Given, Ticket, Wait
from headway.policy.cache.labels import Drop
from headway.policy.cache.rules import CacheRule


def test_those_who_ask_while_it_is_answered_get_that_answer() -> None:
    rig = Rig()
    leader, second, third = rig.ask(), rig.ask(), rig.ask()
    assert (second.told, third.told) == ([], [])
    rig.answer(leader.ticket, "because")
    assert (said(second.given), said(third.given)) == ("because", "because")
    assert rig.cache.report().memory.waiting == 0
    assert rig.cache.report().rules["all"].misses == 1


def test_a_leader_that_fails_hands_over_to_the_next_and_the_others_go_on_waiting() -> None:
    rig = Rig()
    leader, second, third = rig.ask(), rig.ask(), rig.ask()
    rig.cache.failed(leader.ticket)
    assert third.told == []
    rig.answer(second.ticket, "second's")
    assert said(third.given) == "second's"


def test_one_that_left_is_told_nothing_and_leads_nothing() -> None:
    rig = Rig()
    leader, second, third = rig.ask(), rig.ask(), rig.ask()
    second.wait.leave()
    second.wait.leave()
    rig.cache.failed(leader.ticket)
    assert second.told == []
    assert isinstance(third.told[0], Ticket)


def test_an_answer_for_its_caller_alone_lets_all_others_go_at_once() -> None:
    rig = Rig()
    leader, second, third = rig.ask(), rig.ask(), rig.ask()
    rig.answer(leader.ticket, finish="length")
    rig.answer(second.ticket, finish="length")
    rig.answer(third.ticket, "third's")
    assert said(rig.ask().given) == "third's"


def test_one_that_has_waited_long_enough_makes_its_own_call() -> None:
    rig = Rig(CacheRule(name="all", wait=30.0))
    leader, early = rig.ask(), rig.ask()
    rig.clock.advance(20.0)
    late = rig.ask()
    rig.clock.advance(10.5)
    rig.deadlines.sweep()
    assert isinstance(early.told[0], Ticket)
    assert late.told == []
    rig.answer(leader.ticket, "leader's")
    assert (said(late.given), len(early.told)) == ("leader's", 1)
    rig.answer(early.ticket, "its own")
    assert said(rig.ask().given) == "its own"


def test_a_thousand_that_all_fail_are_told_in_turn_and_not_within_each_other() -> None:
    rig, order = Rig(), list[Caller]()

    def fails(caller: Caller) -> None:
        order.append(caller)
        rig.cache.failed(caller.ticket)

    leader = rig.ask()
    waiting = [rig.ask(caller=Caller(fails)) for _ in range(1500)]
    rig.cache.failed(leader.ticket)
    assert order == waiting
    assert rig.cache.report().memory.waiting == 0


def test_a_fault_in_one_call_is_no_others() -> None:
    rig = Rig()

    def breaks(_: Caller) -> None:
        raise RuntimeError("the fault of one call")

    leader, broken, third = rig.ask(), rig.ask(caller=Caller(breaks)), rig.ask()
    rig.cache.failed(leader.ticket)
    assert len(broken.told) == 1
    assert isinstance(third.told[0], Ticket)


def test_one_that_asks_while_it_is_told_is_served() -> None:
    rig, again = Rig(), list[Caller]()
    leader = rig.ask()
    rig.ask(caller=Caller(lambda _: again.append(rig.ask())))
    rig.answer(leader.ticket, "because")
    assert said(again[0].given) == "because"


class Story:
    """Two tenants that ask the same, and whatever may happen to their calls."""

    def __init__(self) -> None:
        self.rig = Rig(CacheRule(name="all", ttl=9.0, stale=9.0, wait=5.0))
        self.callers: list[tuple[str, Caller]] = []
        self.left = set[int]()
        self.tickets: dict[Ticket, str] = {}
        """Those that are not used up, and whose they are."""

    def happens(self, kind: str, number: int) -> None:
        tenant, rig = "ab"[number % 2], self.rig
        match kind:
            case "ask":
                self.callers.append((tenant, rig.ask(tenant=tenant)))
            case "anew":
                self.callers.append((tenant, rig.ask(tenant=tenant, fields={b"cache-control": b"no-cache"})))
            case "leave" if self.callers:
                at = number % len(self.callers)
                if isinstance(self.callers[at][1].outcome, Wait):
                    self.callers[at][1].wait.leave()
                    self.left.add(at)
            case "pass":
                rig.clock.advance(number % 7)
                rig.deadlines.sweep()
            case "drop":
                rig.cache.drop(Drop(tenant=tenant))
            case _ if self.tickets:
                self.ends(kind, list(self.tickets)[number % len(self.tickets)])
            case _:
                pass
        self.look()

    def ends(self, kind: str, ticket: Ticket) -> None:
        tenant = self.tickets.pop(ticket)
        if kind == "fail":
            self.rig.cache.failed(ticket)
        else:
            self.rig.answer(ticket, tenant, finish="stop" if kind == "answer" else "length")

    def look(self) -> None:
        for tenant, caller in self.callers:
            assert len(caller.told) <= 1
            for outcome in (caller.outcome, *caller.told):
                if isinstance(outcome, Given):
                    assert said(outcome) == tenant
                ticket = outcome.refresh if isinstance(outcome, Given) else outcome
                if isinstance(ticket, Ticket) and not ticket.ended:
                    self.tickets[ticket] = tenant

    def ends_well(self) -> None:
        while self.tickets:
            self.ends("fail", next(iter(self.tickets)))
            self.look()
        for at, (_, caller) in enumerate(self.callers):
            assert at in self.left or not isinstance(caller.outcome, Wait) or len(caller.told) == 1
        assert self.rig.cache.report().memory.waiting == 0


KINDS = st.sampled_from(["ask", "anew", "answer", "cut", "fail", "leave", "pass", "drop"])


@given(st.lists(st.tuples(KINDS, st.integers(0, 1 << 16)), max_size=60))
def test_whatever_happens_everybody_is_told_once_and_only_what_its_tenant_was_answered(
    steps: list[tuple[str, int]],
) -> None:
    story = Story()
    for step in steps:
        story.happens(*step)
    story.ends_well()
