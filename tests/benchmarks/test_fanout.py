"""What is read off fan-outs on a real engine."""

from fanout import LEADER, NOTHING, PRIMED, Fan, table


def fan(how: str, seconds: float, computed: int) -> Fan:
    return Fan(how=how, seconds=seconds, ttft=[seconds / 2] * 4, computed=computed, asked=4000)


def test_each_way_is_held_against_doing_nothing_in_the_same_round() -> None:
    # Primed to nothing: 2/10 and 6/20; half way between .2 and .3.
    fans = [
        *[fan(NOTHING, 10.0, 4000), fan(LEADER, 10.0, 4000), fan(PRIMED, 2.0, 1000)],
        *[fan(PRIMED, 6.0, 1200), fan(NOTHING, 20.0, 4000), fan(LEADER, 10.0, 3000)],
    ]

    nothing, leader, primed = table(fans).splitlines()[1:]

    assert nothing.split() == ["nothing", "15.00", "(10.00..20.00)", "7.50", "4,000", "4,000", "1.00x"]
    assert leader.split() == ["leader", "only", "10.00", "(10.00..10.00)", "5.00", "3,500", "4,000", "0.75x"]
    assert primed.split() == ["slots", "primed", "4.00", "(2.00..6.00)", "2.00", "1,100", "4,000", "0.25x"]
