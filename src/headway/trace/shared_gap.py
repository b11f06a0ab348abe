"""Tools of one response that nobody timed: they share the gap until the next request, and ended at some time in it.

What is known of one that holds a sub-agent is when that had ended. So each of these is taken to have ended as long
after its last call as the one whose calls ended last, and those that hold nothing no later than that one's calls: what
is known to have lasted longest in the gap is what the next request waited for.
"""

from collections.abc import Iterable, Sequence

from headway.core.span import Span, ToolUse


def sharing(
    spans: Sequence[Span], ends: Sequence[float], holder: Sequence[int], tools: Iterable[int]
) -> list[list[int]]:
    """Those of ``tools`` that are inferred from one and the same gap, in groups of two and more."""
    groups: dict[tuple[str, float, int], list[int]] = {}
    for i in tools:
        work = spans[i].work
        if isinstance(work, ToolUse) and work.inferred and work.issued_by is not None:
            groups.setdefault((work.issued_by, ends[i], holder[i]), []).append(i)
    return [group for group in groups.values() if len(group) > 1]


def end_apart(group: Sequence[int], inside: dict[int, float], lo: Sequence[float], hi: list[float]) -> bool:
    """Give each of a group an end of its own in ``hi``; whether anything tells them apart.

    Args:
        group: tools that share a gap.
        inside: when the last of what a tool holds had ended; tools that hold nothing are not in it.
        lo: starts.
        hi: ends.
    """
    last = max((inside[i] for i in group if i in inside), default=None)
    if last is None:
        return False
    after = hi[group[0]] - last
    for i in group:
        hi[i] = inside[i] + after if i in inside else max(last, lo[i])
    return True
