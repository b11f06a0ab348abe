from pathlib import Path

import pytest

from headway.app.config.reading import read_config
from headway.app.config.serving import service_of, with_flags
from headway.app.config.written import File
from headway.core import config
from headway.core.errors import BadInputError

NONE = dict[str, str | None]()


def limits_of(file: File, flags: dict[str, str | None]) -> config.Limits:
    return service_of(with_flags(file, {}, flags), Path(), {}).limits


def test_without_a_file_and_flags_they_are_the_defaults() -> None:
    assert limits_of(File(), NONE) == config.Limits()


def test_a_flag_outranks_the_file() -> None:
    text = '[gateway.limits]\nbody_bytes = "1 MiB"\nstall_seconds = "2 min"\nconnect_seconds = 1.5\n'
    written = read_config(text, "headway.toml")
    found = limits_of(written, {"body_bytes": "32MiB", "first_byte_seconds": "0.5", "stall_seconds": None})
    assert found == config.Limits(
        body_bytes=32 * 1024 * 1024, first_byte_seconds=0.5, stall_seconds=120.0, connect_seconds=1.5
    )


def test_bytes_and_seconds_need_no_unit() -> None:
    found = limits_of(File(), {"response_bytes": "4096", "stall_seconds": "7"})
    assert (found.response_bytes, found.stall_seconds) == (4096, 7.0)


@pytest.mark.parametrize(
    ("flag", "text", "said"),
    [
        ("body_bytes", "lots", "--body-bytes cannot be 'lots'"),
        ("body_bytes", "-1", "--body-bytes cannot be"),
        ("body_bytes", "0", "--body-bytes cannot be 0"),
        ("stall_seconds", "soon", "--stall-seconds cannot be 'soon'"),
        ("stall_seconds", "nan", "--stall-seconds cannot be"),
        ("stall_seconds", "0", "--stall-seconds cannot be 0"),
    ],
)
def test_what_is_no_limit_is_named_with_a_way_out(flag: str, text: str, said: str) -> None:
    with pytest.raises(BadInputError) as raised:
        limits_of(File(), {flag: text})
    assert said in str(raised.value)
    assert raised.value.fix
