import pytest

from headway.trace.sources.otel.beeai import Event, event

SCOPE = "openinference.instrumentation.beeai"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("backend.openai.chat.start-14", Event("backend.openai.chat", work=True)),
        ("backend.openai.chat.success-16", Event("backend.openai.chat", work=False)),
        ("tool.search.wikipedia.start-12", Event("search.wikipedia", work=True)),
        ("agent.react.partial_update-263", Event("agent.react", work=False)),
        ("beeai-framework-main", None),
        ("iteration-1", None),
    ],
)
def test_the_name_of_a_span_tells_its_event(name: str, found: Event | None) -> None:
    assert event(SCOPE, name) == found


def test_spans_of_others_are_not_looked_at() -> None:
    assert event("pydantic-ai", "backend.openai.chat.start-14") is None
