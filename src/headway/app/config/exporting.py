"""Where spans are exported to: what the file says, else OpenTelemetry's standard environment variables."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from headway.app.config.urls import http_url
from headway.core.errors import BadInputError
from headway.gateway.observer.endpoint import Endpoint

BASE: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
HEADERS: Final = "OTEL_EXPORTER_OTLP_HEADERS"
TRACES_HEADERS: Final = "OTEL_EXPORTER_OTLP_TRACES_HEADERS"
_PATH: Final = "/v1/traces"
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def traces_url(base: str) -> str:
    """The URL for traces below a base URL, as OpenTelemetry's exporters make it; itself if it is that already.

    Raises:
        ValueError: it is no URL of an HTTP server.
    """
    url = _checked(base)
    return url if url.endswith(_PATH) else url.rstrip("/") + _PATH


def endpoint_of(written: str | None, headers_env: str | None, environment: Mapping[str, str]) -> Endpoint | None:
    """Where spans go; ``None``: nowhere.

    Args:
        written: the URL for traces that the file names.
        headers_env: variable with the headers to send; ``None``: the standard ones.
        environment: with variables as OpenTelemetry names them. One that is empty counts as not set.

    Raises:
        BadInputError: a variable holds no URL or no headers, or the one with the headers is not set.
    """
    if written is None and _switched_off(environment):
        return None
    url = written or _told(environment)
    if url is None:
        return None
    if headers_env is not None and not environment.get(headers_env):
        raise BadInputError(
            f"The export needs headers, and the environment variable {headers_env} is not set.",
            fix=f"Put them into it: export {headers_env}=name=value,name=value",
        )
    names = (TRACES_HEADERS, HEADERS) if headers_env is None else (headers_env,)
    variable = next((name for name in names if environment.get(name)), None)
    return Endpoint(url=url, headers={} if variable is None else _headers(variable, environment[variable]))


def _switched_off(environment: Mapping[str, str]) -> bool:
    disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return disabled or environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none"


def _told(environment: Mapping[str, str]) -> str | None:
    for name, made in ((TRACES, _checked), (BASE, traces_url)):
        told = environment.get(name, "").strip()
        if told:
            try:
                return made(told)
            except ValueError as error:
                raise BadInputError(
                    f"The environment variable {name} cannot be used: {error}.", fix="Correct it, or unset it."
                ) from error
    return None


def _checked(text: str) -> str:
    return http_url(text, instead="send a header", example="http://127.0.0.1:4318").geturl()


def _headers(variable: str, text: str) -> dict[str, str]:
    """``name=value,name=value``, values with %-escapes; errors never tell the values, which may be keys."""
    headers: dict[str, str] = {}
    for number, pair in enumerate((part for part in text.split(",") if part.strip()), 1):
        name, equals, value = pair.partition("=")
        name, value = name.strip(), unquote(value.strip())
        if not equals or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise BadInputError(
                f"The environment variable {variable} holds no headers: its part {number} is no name=value.",
                fix=f"Write them as OpenTelemetry does: export {variable}=name=value,name=value",
            )
        headers[name.lower()] = value
    return headers
