import pytest
from findings import broken, found, used
from tasks import call, tool

from headway.core.span import Span
from headway.core.usage import Usage

#  a 0-1 | search fails 1-3 | b 3-5 asks for search again | search 5-6 | c 6-8
SPENT = Usage(input_tokens=200, output_tokens=20)
RETRIED = [
    call("a", 0, 1, asks=("1",)),
    used(tool("t", 1, 3, by="a"), "search", failed=True),
    call("b", 3, 5, asks=("2",), usage=SPENT),
    used(tool("u", 5, 6, by="b"), "search", failed=False),
    call("c", 6, 8),
]


def test_a_tool_that_failed_and_the_call_that_only_called_it_again() -> None:
    finding = found(RETRIED)["failed-tools"]
    assert finding.seconds == pytest.approx(4)
    assert finding.tokens == 220
    assert finding.confidence == "likely"
    assert finding.spans == ("t", "b")
    assert (
        finding.title
        == "1 of 2 tool calls failed, after which 1 model call asked for the same tool again: 4.00 s (50 % of E2E)."
    )


def test_an_error_is_a_failure_too() -> None:
    spans = [call("a", 0, 1), broken(tool("t", 1, 3, by="a"), "not_found"), call("b", 3, 4)]
    finding = found(spans)["failed-tools"]
    assert (finding.seconds, finding.confidence) == (2, "certain")
    assert "errors: not_found." in finding.evidence[0]


def test_a_call_that_goes_on_with_another_tool_retries_nothing() -> None:
    other = [*RETRIED[:3], used(tool("u", 5, 6, by="b"), "open"), RETRIED[4]]
    assert found(other)["failed-tools"].spans == ("t",)


def test_a_shell_is_called_again_for_anything() -> None:
    def shell(first: str | None, second: str | None) -> list[Span]:
        again = used(RETRIED[3], "run_shell", second, failed=False)
        return [RETRIED[0], used(RETRIED[1], "run_shell", first, failed=True), RETRIED[2], again, RETRIED[4]]

    assert found(shell("make test", "ls"))["failed-tools"].spans == ("t",)
    assert found(shell(None, None))["failed-tools"].spans == ("t",)
    assert found(shell("make test", "make test"))["failed-tools"].spans == ("t", "b")


def test_tools_that_worked() -> None:
    worked = [RETRIED[0], used(tool("t", 1, 3, by="a"), "search", failed=False), *RETRIED[2:]]
    assert "failed-tools" not in found(worked)


def test_whether_it_failed_is_not_known() -> None:
    silent = [RETRIED[0], used(tool("t", 1, 3, by="a"), "search"), *RETRIED[2:]]
    assert "failed-tools" not in found(silent)
