"""What a worker writes down: read up to where it was cut off, wherever that is."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

from hypothesis import given
from hypothesis import strategies as st

from headway.core.access import Caller, Key, KeyId, Tenant, TenantId
from headway.core.limits import CallerLimits, Limit, TaskLimits
from headway.core.task import TaskId
from headway.gateway import intents as module
from headway.gateway.intents import Intents, dead, read
from headway.policy.limits.counter import Counter, Plan
from headway.policy.limits.grant import Grant
from headway.policy.limits.planning import plan_for, terms_for

MONTH, CALLS = "key:k/money/2026-11", "task:t:x/calls/task"


def plan(number: int = 1) -> Plan:
    key = Key(
        id=KeyId("k"),
        tenant=TenantId("t"),
        prefix="",
        created=0.0,
        limits=CallerLimits(money_per_month=Limit(10**9), requests_per_minute=Limit(9)),
        task=TaskLimits(calls=Limit(10**6)),
    )
    counters: dict[str, Counter] = {}
    caller = Caller(key, Tenant(id=TenantId("t")))

    def known(name: str, made: Callable[[], Counter]) -> Counter:
        return counters.setdefault(name, made())

    return plan_for(terms_for(caller, 1_796_040_000.0, known), TaskId("x"), number, known)


def grant(number: int, money: int, of: Plan) -> Grant:
    return Grant(number, of, 5, money, ())


def test_ends_that_the_book_has_are_not_charged_again(tmp_path: Path) -> None:
    written, of = Intents(tmp_path, "w"), plan()
    for number in (1, 2, 3, 4):
        written.begin(grant(number, 100, of))
    written.settle(grant(1, 100, of), 5, 10, settlement=1)
    written.settle(grant(2, 100, of), 5, 20, settlement=2)
    written.release(grant(3, 100, of), settlement=3)
    left = read((tmp_path / "w.intents").read_bytes())
    assert left.charges(settled=0) == {MONTH: 10 + 20 + 100, CALLS: 3}
    assert left.charges(settled=1) == {MONTH: 20 + 100, CALLS: 2}
    assert left.charges(settled=3) == {MONTH: 100, CALLS: 1}
    written.remove()


def test_the_living_are_left_alone(tmp_path: Path) -> None:
    written = Intents(tmp_path, "w")
    assert dead(tmp_path) == []
    written.close()
    (one,) = dead(tmp_path)
    assert one.holder == "w"
    assert dead(tmp_path) == []  # somebody looks after it
    one.bury()
    one.close()
    assert dead(tmp_path) == []


def test_a_file_that_has_grown_is_made_short_and_says_the_same(tmp_path: Path) -> None:
    written, of, late = Intents(tmp_path, "w"), plan(1), plan(2)
    kept = grant(0, 77, of)
    written.begin(kept)
    path, longest = tmp_path / "w.intents", 0
    for number in range(1, 60_000):
        one = grant(number, 100, late)
        written.begin(one)
        written.settle(one, 5, 50, settlement=number)
        if number % 1000 == 0:
            longest = max(longest, path.stat().st_size)
            written.told(number - 10)
    assert path.stat().st_size < longest <= module.COMPACT_BYTES * 1.1
    assert read(path.read_bytes()).charges(settled=59_989) == {MONTH: 77 + 10 * 50, CALLS: 1 + 10}
    assert dead(tmp_path) == [], "the lock went with the old file"
    assert [found.name for found in tmp_path.iterdir()] == ["w.intents"]
    written.close()
    (one,) = dead(tmp_path)
    assert one.read().charges(settled=59_989) == {MONTH: 77 + 10 * 50, CALLS: 1 + 10}
    one.close()


@given(damage=st.data())
def test_a_file_cut_off_or_damaged_anywhere_is_read_up_to_there(damage: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        whole = _data(Path(folder))
    cut = damage.draw(st.integers(0, len(whole)))
    at = damage.draw(st.integers(0, len(whole) - 1))
    flipped = whole[:at] + bytes([whole[at] ^ damage.draw(st.integers(1, 255))]) + whole[at + 1 :]
    for data in (whole[:cut], flipped):
        charges = read(data).charges(0)
        assert charges.keys() <= {MONTH, CALLS}
        assert 0 <= charges.get(MONTH, 0) <= 300
        assert 0 <= charges.get(CALLS, 0) <= 3


def _data(folder: Path) -> bytes:
    written, of = Intents(folder, "w"), plan()
    for number in (1, 2, 3):
        written.begin(grant(number, 100, of))
    for number in (1, 2):
        written.settle(grant(number, 100, of), 5, 40, settlement=number)
    data = (folder / "w.intents").read_bytes()
    written.remove()
    return data


def test_a_file_is_not_taken_for_a_dead_ones_while_it_is_made(tmp_path: Path) -> None:
    done = Event()

    def look() -> None:
        while not done.is_set():
            for one in dead(tmp_path):
                one.bury()
                one.close()

    looking = Thread(target=look)
    looking.start()
    try:
        for number in range(300):
            written = Intents(tmp_path, f"w{number}")
            assert written.path.exists()
            written.remove()
    finally:
        done.set()
        looking.join()
