from tasks import call

from headway.core.usage import Usage
from headway.trace.anatomy import dissect


def unknown_of(*usages: Usage) -> list[str]:
    spans = [call(str(i), i, i + 1, usage=usage) for i, usage in enumerate(usages)]
    return [note for note in dissect(spans).unknowns if "tokens are unknown" in note]


def test_counts_that_are_missing_alike_are_told_together() -> None:
    assert unknown_of(Usage(input_tokens=1, output_tokens=1, cache_read=0), Usage()) == [
        "Input, output and cached tokens are unknown for 1 of 2 calls: their sums are lower bounds."
    ]
    assert unknown_of(Usage(output_tokens=1)) == [
        "Input and cached tokens are unknown for 1 of 1 call, and so are their sums."
    ]


def test_those_that_are_missing_apart_are_told_apart() -> None:
    assert unknown_of(Usage(input_tokens=1, output_tokens=1), Usage(input_tokens=1)) == [
        "Output tokens are unknown for 1 of 2 calls: their sum is a lower bound.",
        "Cached tokens are unknown for 2 of 2 calls, and so is their sum.",
    ]
