from headway.policy.cache.flight import Flights
from headway.policy.cache.keys import CacheKey

KEY, OTHER = CacheKey(b"a"), CacheKey(b"b")


def test_one_leads_and_the_others_get_its_answer_in_the_order_they_came() -> None:
    flights = Flights[str]()
    assert flights.leads(KEY)
    assert not flights.leads(KEY)
    assert flights.leads(OTHER)
    flights.wait(KEY, "second")
    flights.wait(KEY, "third")
    flights.wait(KEY, "gone")
    flights.leave(KEY, "gone")
    flights.leave(KEY, "never there")
    assert flights.land(KEY) == ["second", "third"]
    assert len(flights) == 1


def test_after_a_landing_somebody_else_leads_and_leaving_late_is_nothing() -> None:
    flights = Flights[str]()
    assert flights.leads(KEY)
    assert flights.land(KEY) == []
    flights.leave(KEY, "late")
    assert flights.leads(KEY)
