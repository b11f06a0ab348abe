from sets import imported

from headway.app.slowest import Slowest
from headway.trace.filed import put_away


def test_the_five_slowest_are_kept_whole_and_of_equals_the_first() -> None:
    slowest = Slowest()
    tasks = [imported(number, turns) for number, turns in enumerate((2, 9, 1, 7, 7, 2, 5, 7))]
    for one in tasks:
        slowest.offer(put_away(one))
    assert slowest.kept() == tuple(tasks[number] for number in (1, 3, 4, 7, 6))


def test_equals_do_not_push_each_other_out_and_untimed_ones_do_not_count() -> None:
    slowest = Slowest()
    slowest.offer(put_away(imported(99, 9, timing="none")))
    for number in range(9):
        slowest.offer(put_away(imported(number, 1)))
    assert [one.task for one in slowest.kept()] == [f"task-{number}" for number in range(5)]
