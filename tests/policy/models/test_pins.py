import pytest

from headway.core.errors import BadInputError, NotFoundError
from headway.policy.models.pins import Pin, Pins


def pin(to: str, *, until: float = 10.0, **about: str) -> Pin:
    return Pin(to=to, by="k1", reason="because", since=0.0, until=until, **about)


def test_the_most_particular_wins() -> None:
    pins = Pins()
    for one in (
        pin("all"),
        pin("t", tenant="T"),
        pin("m", model="M"),
        pin("tm", tenant="T", model="M"),
        pin("k", task="K"),
    ):
        assert pins.put(one) is None

    def found(tenant: str, task: str, model: str) -> str | None:
        hit = pins.find(tenant=tenant, task=task, model=model, now=1.0)
        return hit and hit.to

    assert found("", "", "x") == "all"
    assert found("T", "", "x") == "t"
    assert found("U", "", "M") == "m"
    assert found("T", "", "M") == "tm"
    assert found("T", "K", "M") == "k"
    assert found("T", "L", "M") == "tm"


def test_it_holds_from_its_beginning_to_its_end_and_is_replaced_by_another_about_the_same() -> None:
    pins = Pins()
    pins.put(Pin(to="a", by="k", reason="r", since=5.0, until=10.0))
    assert [bool(pins.find(tenant="", task="", model="m", now=now)) for now in (4.9, 5.0, 9.9)] == [False, True, True]
    replaced = pins.put(pin("b", until=20.0))
    assert replaced is not None
    assert replaced.to == "a"
    assert [one.to for one in pins.holding(9.0)] == ["b"]
    assert pins.find(tenant="", task="", model="m", now=20.0) is None
    assert pins.holding(0.0) == ()


def test_a_pin_taken_away_holds_no_more() -> None:
    pins = Pins()
    pins.put(pin("a", tenant="T"))
    assert pins.take(tenant="T").to == "a"
    with pytest.raises(NotFoundError):
        pins.take(tenant="T")


@pytest.mark.parametrize("bad", [{"reason": " "}, {"until": 0.0}, {"until": float("nan")}])
def test_a_pin_without_a_reason_or_an_end(bad: dict[str, object]) -> None:
    fields: dict[str, object] = {"to": "a", "by": "k", "reason": "r", "since": 0.0, "until": 1.0}
    with pytest.raises(BadInputError):
        Pin(**(fields | bad))  # type: ignore[arg-type] - the fields are bad on purpose
