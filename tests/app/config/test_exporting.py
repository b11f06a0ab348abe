"""Where spans go: the file before OpenTelemetry's variables, and errors that never tell a key."""

from pathlib import Path

import pytest

from headway.app.config.exporting import endpoint_of, traces_url
from headway.app.config.reading import BadConfigError, read_config
from headway.app.config.serving import service_of, with_flags, with_log
from headway.core.errors import BadInputError
from headway.gateway.observer.endpoint import Endpoint

BASE, TRACES = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
HEADERS, TRACES_HEADERS = "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"
AT_H = "http://h/v1/traces"


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
        ("https://otlp.example.com/otlp", "https://otlp.example.com/otlp/v1/traces"),
        ("https://otlp.example.com/v1/traces", "https://otlp.example.com/v1/traces"),
    ],
)
def test_the_path_for_traces_is_added_once(base: str, url: str) -> None:
    assert traces_url(base) == url


@pytest.mark.parametrize(
    ("environment", "endpoint"),
    [
        ({}, None),
        ({BASE: " "}, None),
        ({HEADERS: "a=b"}, None),
        ({BASE: "http://h:4318"}, Endpoint(url="http://h:4318/v1/traces")),
        ({BASE: "http://h:4318", TRACES: "http://t/as/it/is"}, Endpoint(url="http://t/as/it/is")),
        ({BASE: "http://h", HEADERS: "A=1, b=x%2Cy="}, Endpoint(url=AT_H, headers={"a": "1", "b": "x,y="})),
        ({BASE: "http://h", HEADERS: "a=1", TRACES_HEADERS: "c=2"}, Endpoint(url=AT_H, headers={"c": "2"})),
        ({BASE: "http://h", "OTEL_SDK_DISABLED": "true"}, None),
        ({BASE: "http://h", "OTEL_TRACES_EXPORTER": "none"}, None),
    ],
)  # fmt: skip
def test_the_standard_variables(environment: dict[str, str], endpoint: Endpoint | None) -> None:
    assert endpoint_of(None, None, environment) == endpoint


def test_the_file_goes_before_them_and_may_name_a_variable_of_its_own(tmp_path: Path) -> None:
    text = '[export]\nendpoint = "http://c:4318"\nheaders_env = "MINE"\n'
    service = service_of(read_config(text, "f"), tmp_path, {BASE: "http://h", HEADERS: "a=1", "MINE": "key=s"})
    assert service.export == Endpoint(url="http://c:4318/v1/traces", headers={"key": "s"})


@pytest.mark.parametrize("text", ["no", "ok=1,sk-secret", "a b=sk-secret", "a=sk-secret%0d%0ax: y", "=sk-secret"])
def test_headers_that_are_none_are_told_without_their_values(text: str) -> None:
    with pytest.raises(BadInputError, match=f"{HEADERS} holds no headers") as raised:
        endpoint_of(None, None, {BASE: "http://h", HEADERS: text})
    assert "secret" not in f"{raised.value} {raised.value.fix}"


@pytest.mark.parametrize(
    "url", ["h:4318", "ftp://h", "http://", "http://u:p@h", "http://h:0", "http://h:x", "http://h/#f"]
)
def test_what_is_no_url_is_told_with_its_place(url: str) -> None:
    with pytest.raises(BadInputError, match=f"{BASE} cannot be used"):
        endpoint_of(None, None, {BASE: url})
    with pytest.raises(BadConfigError, match=r"f:2: export.endpoint"):
        read_config(f'[export]\nendpoint = "{url}"\n', "f")


def test_a_variable_that_is_named_and_not_set_is_told() -> None:
    with pytest.raises(BadInputError, match="MINE is not set"):
        endpoint_of("http://h/v1/traces", "MINE", {HEADERS: "a=1"})


@pytest.mark.parametrize("table", ['export.endpoint = "http://h"', "log.calls = true"])
def test_without_a_record_there_is_nothing_to_export_or_to_log(tmp_path: Path, table: str) -> None:
    file = with_flags(read_config(table, "f"), {"record": False}, {})
    with pytest.raises(BadInputError, match="recording is off"):
        service_of(file, tmp_path, {})


def test_variables_alone_do_not_insist_on_a_record(tmp_path: Path) -> None:
    file = with_flags(read_config("", "f"), {"record": False}, {})
    assert service_of(file, tmp_path, {BASE: "http://h"}).export is None


def test_flags_go_before_the_file_for_the_log_too(tmp_path: Path) -> None:
    file = read_config('[log]\nformat = "json"\ncalls = true\n', "f")
    for told, form, calls in ((file, "json", True), (with_log(file, "text", calls=False), "text", False)):
        service = service_of(told, tmp_path, {})
        assert (service.log, service.log_calls) == (form, calls)


def test_own_prices_reach_the_counting_of_tasks(tmp_path: Path) -> None:
    file = read_config('[prices."m"]\ninput = 1.5\noutput = 2\n', "f")
    price = service_of(file, tmp_path, {}).prices["m"]
    assert (price.input, price.output) == (1_500_000, 2_000_000)
