from caching import Rig
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from headway.gateway.caches.figures import Report, Shared, page, together
from headway.gateway.summing import summed
from headway.policy.cache.rules import CacheRule
from headway.policy.cache.shadow import ShadowFigures


def read(report: Report) -> dict[tuple[str, str], float]:
    families = text_string_to_metric_families(page(report).decode())
    return {
        (sample.name.removeprefix("headway_cache_"), ",".join(sorted(sample.labels.values()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_the_page_is_prometheus_and_says_what_was_saved() -> None:
    rig = Rig(CacheRule(name='a "b"'))
    rig.asked_and_answered()
    size = len(rig.ask().given.kept.body)
    rig.answer(rig.ask("other").ticket, finish="length")
    rig.ask("third", fields={b"cache-control": b"no-store"})
    found = read(rig.cache.report())
    rule = 'a "b"'
    assert found["hits_total", f"{rule},memory"] == 1
    assert found["misses_total", rule] == 2
    assert found["not_kept_total", f"{rule},incomplete"] == 1
    assert found["bypassed_total", f"{rule},no-store"] == 1
    assert found["served_bytes_total", rule] == size
    assert found["saved_seconds_total", rule] == 2.0
    assert found["saved_usd_total", rule] == 0.0005
    assert found["entries", ""] == 1
    assert found["worth_seconds", ""] == 2.0


def test_those_of_several_workers_are_told_as_the_pages_sum_is() -> None:
    one, other = Rig(CacheRule(name="a")), Rig(CacheRule(name="a"))
    for rig, times in ((one, 1), (other, 3)):
        rig.asked_and_answered()
        for _ in range(times):
            rig.ask()
    reports = [
        structs.replace(rig.cache.report(), shared=Shared(lookups=2, found=1, troubles=0, turned_away=0, up=up))
        for rig, up in ((one, True), (other, False))
    ]
    whole = together(reports)
    assert whole.rules["a"].hits == {"memory": 4}
    assert whole.rules["a"].misses == 2
    assert (whole.memory.entries, whole.memory.bytes) == (2, 2 * reports[0].memory.bytes)
    assert whole.shared == Shared(lookups=4, found=2, troubles=0, turned_away=0, up=False)
    assert together(reports[:1]) == reports[0]


def test_what_is_not_known_is_not_there() -> None:
    found = read(Rig().cache.report())
    assert not any(name.startswith("shared") or name == "shadow_error_upper" for name, _ in found)


def test_shadow_and_sharing() -> None:
    plain = Rig().cache.report()
    report = Report(
        memory=plain.memory,
        changes=plain.changes,
        rules=plain.rules,
        shadows={"all": ShadowFigures(asked=9, would_serve=5, agreed=3, differed=1)},
        shared=Shared(lookups=8, found=2, troubles=1, turned_away=0, up=True),
    )
    found = read(report)
    assert [found["shadow_total", f"all,{what}"] for what in ("asked", "found", "same", "other")] == [9, 5, 3, 1]
    assert 0.25 < found["shadow_error_upper", "all"] < 1
    assert (found["shared_up", ""], found["shared_lookups_total", ""], found["shared_found_total", ""]) == (1, 8, 2)


def test_of_several_workers_what_is_kept_is_summed_and_of_bounds_the_largest_counts() -> None:
    plain = Rig().cache.report()
    shadows = [ShadowFigures(agreed=3, differed=1), ShadowFigures(agreed=400)]
    pages = [
        page(Report(memory=plain.memory, changes=plain.changes, rules={}, shadows={"all": one}, shared=None))
        for one in shadows
    ]
    lines = summed(pages, b"").decode().splitlines()
    bound = next(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("headway_cache_shadow_error_upper"))
    error = shadows[0].error()
    assert error is not None
    assert bound == error[2]
    assert f"headway_cache_limit_bytes {2 * plain.memory.limit}" in lines
