from pathlib import Path

import pytest
from loads import NOTHING, PROMPT
from msgspec import structs

from headway.bench.endpoint import endpoint
from headway.bench.report import Report, encode, read
from headway.bench.statement import Statement, differences
from headway.core.errors import BadInputError

STATEMENT = Statement(
    url="http://127.0.0.1:1/v1",
    model="m",
    workload="single: …",
    workload_digest="00",
    arrivals="closed 1",
    stop="5 sessions",
    warm_up=0,
    stream=True,
    exact=False,
    texts="never sent before",
    headway="1",
    python="3",
    system="s",
    machine="m",
)
REPORT = Report(
    statement=STATEMENT,
    figures=NOTHING,
    troubles=("late",),
    slos=("task 1s",),
    interrupted=False,
    cpu_share=0.5,
    calibration=PROMPT,
)


def test_a_report_that_was_kept_is_the_same_again(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(encode(REPORT))
    assert read(path) == REPORT
    assert not read(path).valid


def test_what_is_no_report_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    with pytest.raises(BadInputError, match="No such file"):
        read(path)
    path.write_text("{}")
    with pytest.raises(BadInputError, match="is no report"):
        read(path)
    path.write_bytes(encode(structs.replace(REPORT, schema="headway.bench/9")))
    with pytest.raises(BadInputError, match=r"headway\.bench/9"):
        read(path)


def test_only_what_people_change_on_purpose_may_differ() -> None:
    assert differences(STATEMENT, structs.replace(STATEMENT, url="http://127.0.0.1:2/v1", headway="2")) == ()
    other = structs.replace(STATEMENT, stream=False, machine="another")
    assert differences(STATEMENT, other) == ("stream: True and False", "machine: 'm' and 'another'")


@pytest.mark.parametrize("url", ["", "ftp://x/v1", "http://", "http://a:b/v1", "http://me:pw@x/v1", "http://x/v1?a=b"])
def test_a_url_that_cannot_be_asked_is_refused(url: str) -> None:
    with pytest.raises(BadInputError):
        endpoint(url, "m")


def test_a_key_is_sent_and_never_shown() -> None:
    with pytest.raises(BadInputError) as caught:
        endpoint("http://127.0.0.1:1/v1", "m", key="sk-sec\nret")
    assert "sk-sec" not in str(caught.value)
    head = endpoint("https://x.example/v1/", "m", key="sk-1").head
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x.example\r\n")
    assert b"authorization: Bearer sk-1\r\n" in head
