"""The same question has the same key; anything that could change the answer, or whose it is, changes the key."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headway.policy.cache.keys import CacheKey, exact_key, fields_of

BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0}'
ROUTE = "/v1/chat/completions m"


def key_of(tenant: str, route: str, body: bytes) -> CacheKey | None:
    fields = fields_of(body)
    return None if fields is None else exact_key(tenant, route, fields)


def test_the_order_of_fields_and_who_asks_do_not_matter() -> None:
    same = b'{"user":"u1","temperature":0,"messages":[{"role":"user","content":"hi"}],"model":"m","metadata":{"a":"b"}}'
    assert key_of("t", ROUTE, same) == key_of("t", ROUTE, BODY)


def test_another_temperature_tool_or_stream_is_another_question() -> None:
    keys = {
        key_of("t", ROUTE, BODY),
        key_of("t", ROUTE, BODY.replace(b":0", b":1")),
        key_of("t", ROUTE, BODY.replace(b'"hi"', b'"hi "')),
        key_of("t", ROUTE, BODY[:-1] + b',"stream":true}'),
        key_of("t", ROUTE, BODY[:-1] + b',"tools":[]}'),
    }
    assert len(keys) == 5


def test_tenant_and_route_are_part_of_it_and_cannot_run_into_each_other() -> None:
    assert len({key_of("ab", "c", BODY), key_of("a", "bc", BODY), key_of("abc", "", BODY)}) == 3


def test_what_is_no_object_has_no_key() -> None:
    assert [key_of("t", ROUTE, body) for body in (b"", b"[]", b"{", b'"x"', b"\xff")] == [None] * 5


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5), lambda x: st.lists(x, max_size=3)
)
OBJECTS = st.dictionaries(st.text(max_size=4), JSON, max_size=5)


@given(OBJECTS, OBJECTS, st.text(max_size=4), st.text(max_size=4))
def test_keys_are_equal_exactly_where_questions_are(
    one: dict[str, object], other: dict[str, object], tenant: str, rival: str
) -> None:
    neutral = {"user", "metadata", "store"}
    asked = {name: value for name, value in one.items() if name not in neutral}
    shuffled = dict(reversed(list(asked.items()))) | {"user": "someone"}
    key = key_of(tenant, ROUTE, msgspec.json.encode(asked))
    assert key_of(tenant, ROUTE, msgspec.json.encode(shuffled)) == key
    rivals = key_of(rival, ROUTE, msgspec.json.encode(other))
    assert (rivals == key) == (
        tenant == rival and msgspec.json.encode(asked, order="sorted") == msgspec.json.encode(other, order="sorted")
    )
