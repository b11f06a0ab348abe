"""What callers declare, and what is not believed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.policy.headers import IDENTITY_HEADERS, MAX_NAME, RETRY_HEADER, SESSION_HEADERS, declared, scoped

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
ARABIC_ONE = "\u0661"


@pytest.mark.parametrize(
    "value", [f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00", f"cc-{TRACE}-{SPAN}-01-what-the-future-brings"]
)
def test_a_valid_traceparent_names_task_and_parent(value: str) -> None:
    said = declared({"traceparent": value}, "")
    assert (said.task, said.parent, said.session) == (TRACE, SPAN, None)


@pytest.mark.parametrize(
    "value",
    [
        "",
        TRACE,
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-extra",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-1",
        f" 00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
        f"00-{ARABIC_ONE * 32}-{SPAN}-01",
    ],
)
def test_a_malformed_traceparent_is_not_there(value: str) -> None:
    said = declared({"traceparent": value}, "")
    assert (said.task, said.parent) == (None, None)


@pytest.mark.parametrize("value", ["x", "nightly build", "a" * MAX_NAME])
def test_printable_names_are_kept(value: str) -> None:
    assert declared({"x-headway-task": value}, "").task == value


@pytest.mark.parametrize("value", ["", " ", " x", "x ", "a" * (MAX_NAME + 1), "a\tb", "a\nb", "na\u00efve", "\x7f"])
def test_other_names_count_as_absent(value: str) -> None:
    assert declared({"x-headway-task": value, "x-session-id": value}, "", value) == declared({}, "")


@pytest.mark.parametrize("header", SESSION_HEADERS)
def test_every_known_agents_header_names_the_session(header: str) -> None:
    assert declared({header: "s-1"}, "", "from-the-body").session == "s-1"
    assert header in IDENTITY_HEADERS


def test_the_body_names_the_session_where_no_header_does() -> None:
    assert declared({"x-session-id": "not\nprintable"}, "", "from-the-body").session == "from-the-body"


@pytest.mark.parametrize(
    ("value", "resent"),
    [("1", True), ("12", True), ("0", False), ("00", False), ("", False), ("-1", False), ("x", False)],
)
def test_a_client_says_that_it_sends_a_call_again(value: str, resent: bool) -> None:
    assert declared({RETRY_HEADER: value}, "").resent is resent
    assert RETRY_HEADER in IDENTITY_HEADERS


names = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30)
tenants = st.sampled_from(["", "a", "b", "a@b", "@"])


@given(tenants, names, tenants, names)
def test_scoped_names_meet_only_if_tenant_and_name_are_the_same(a: str, one: str, b: str, two: str) -> None:
    assert (scoped(a, one) == scoped(b, two)) == ((a, one) == (b, two))


@given(tenants, tenants, names)
def test_a_scoped_name_cannot_be_claimed_by_another_tenant(victim: str, thief: str, name: str) -> None:
    if victim != thief:
        assert scoped(thief, scoped(victim, name)) != scoped(victim, name)


@given(tenants, names)
def test_a_task_is_still_found_by_the_name_that_its_caller_chose(tenant: str, name: str) -> None:
    assert scoped(tenant, name).startswith(name)
