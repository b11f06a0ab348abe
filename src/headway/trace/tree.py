"""From loose spans to a task tree: repairs, each of them told, on one time axis that starts with the task."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from msgspec import Struct, structs

from headway.core.span import HumanWait, ModelCall, Span, Step
from headway.core.task import SpanId, TaskId
from headway.trace.idle import Interval, idle

ROOT_ID = SpanId("0" * 16)
"""Id of a root that was made here: W3C forbids it as a span's id, so no recorded span has it."""


class Tree(Struct, frozen=True, kw_only=True):
    """Spans by index: parents before children, siblings by start; index 0 is the root, which covers the task."""

    spans: list[Span]
    parent: list[int]
    """The root's own is 0."""
    depth: list[int]
    start: list[float]
    """Seconds from the task's start, people's time taken out."""
    end: list[float]
    origin: float
    """Epoch seconds of the task's start."""
    cuts: list[Interval]
    """Epoch intervals in which nobody but a person was at work: not on the axis."""
    lost: list[float]
    """Seconds in the first k cuts."""
    made_root: bool
    notes: list[str]
    """Plain sentences: what was repaired."""

    @property
    def human(self) -> float:
        """Seconds that a person was waited for and nothing else was done."""
        return self.lost[-1]

    def at(self, when: float) -> float:
        """Seconds from the task's start of an epoch time."""
        if not self.cuts:
            return when - self.origin
        upto = bisect_right(self.cuts, (when, when))
        lost = self.lost[upto] - max(self.cuts[upto - 1][1] - when, 0.0) if upto else 0.0
        return when - self.origin - lost


def grow(spans: Sequence[Span]) -> Tree:
    """Build the tree of one task out of its spans, in any order and any state.

    Nothing is dropped in silence: a repeated id keeps its fullest record, an end before its start becomes the start,
    an unfinished span ends with the last that is known of it or of its descendants, a circle of parents is opened at
    its earliest span, and where there is not exactly one span without a parent, a root named for the task is made to
    cover all. Every repair is a sentence in ``notes``. No spans at all give a lone root of no length.
    """
    notes: list[str] = []
    unique = _unique(spans, notes)
    parent = _parents(unique, notes)
    made_root = _needs_root(unique, parent)
    if made_root:
        unique, parent = _under_root(unique, parent, spans[0].task if spans else TaskId(""))
    else:
        root = next(i for i, p in enumerate(parent) if p < 0 and not isinstance(unique[i].work, HumanWait))
        parent = [p if p >= 0 or i == root else root for i, p in enumerate(parent)]
    ordered, up, depth = _preorder(unique, parent)
    ends = _ends(ordered, up, notes)
    starts = [span.start for span in ordered]
    if made_root:
        _cover(ordered, starts, ends)
        if len(ordered) > 1:
            notes.append(
                "No one span covers the whole task: it is taken to run from the first recorded start to the last end."
            )
    waits = [i for i, span in enumerate(ordered) if isinstance(span.work, HumanWait)]
    cuts = idle(ordered, up, starts, ends) if waits else []
    tree = Tree(
        spans=ordered, parent=up, depth=depth, start=starts, end=ends, origin=starts[0], cuts=cuts,
        lost=[0.0, *accumulate(until - since for since, until in cuts)], made_root=made_root, notes=notes,
    )  # fmt: skip
    _to_axis(tree, waits)
    return tree


def _fullness(span: Span) -> tuple[bool, int, float]:
    written = span.work.usage.output_tokens if isinstance(span.work, ModelCall) else None
    return span.end is not None, -1 if written is None else written, span.start if span.end is None else span.end


def _unique(spans: Sequence[Span], notes: list[str]) -> list[Span]:
    kept: dict[SpanId, Span] = {}
    for span in spans:
        seen = kept.setdefault(span.id, span)
        if seen is not span and _fullness(span) > _fullness(seen):
            kept[span.id] = span
    if repeats := len(spans) - len(kept):
        notes.append(f"{_count(repeats, 'record')} repeated the id of another span: the fullest of each was kept.")
    return list(kept.values())


def _parents(spans: list[Span], notes: list[str]) -> list[int]:
    """Index of each span's parent, -1 where it has none; free of circles."""
    index = {span.id: i for i, span in enumerate(spans)}
    parent = [-1 if span.parent is None else index.get(span.parent, -1) for span in spans]
    if orphans := sum(p < 0 and span.parent is not None for p, span in zip(parent, spans, strict=True)):
        notes.append(f"{_count(orphans, 'span')} named a parent that is not in the record and hung from the root.")
    circles, state = 0, bytearray(len(spans))
    for i in range(len(spans)):
        line: list[int] = []
        at = i
        while at >= 0 and not state[at]:
            state[at] = 1
            line.append(at)
            at = parent[at]
        if at >= 0 and state[at] == 1:
            earliest = min(line[line.index(at) :], key=lambda k: spans[k].start)
            parent[earliest] = -1
            circles += 1
        for k in line:
            state[k] = 2
    if circles:
        notes.append(f"{_count(circles, 'circle')} of parents opened at the earliest span.")
    return parent


def _needs_root(spans: list[Span], parent: list[int]) -> bool:
    return sum(p < 0 and not isinstance(span.work, HumanWait) for p, span in zip(parent, spans, strict=True)) != 1


def _under_root(spans: list[Span], parent: list[int], task: TaskId) -> tuple[list[Span], list[int]]:
    session = next((span.session for span in spans if span.session is not None), None)
    first = min((span.start for span in spans), default=0.0)
    root = Span(
        task=task, id=ROOT_ID, parent=None, name=f"task {task}", start=first, end=first, work=Step(), session=session
    )
    return [root, *spans], [-1, *(p + 1 for p in parent)]


def _preorder(spans: list[Span], parent: list[int]) -> tuple[list[Span], list[int], list[int]]:
    children: list[list[int]] = [[] for _ in spans]
    stack: list[tuple[int, int, int]] = []
    for i in reversed(sorted(range(len(spans)), key=lambda i: spans[i].start)):  # noqa: C413 - keeps ties in order
        if parent[i] >= 0:
            children[parent[i]].append(i)
        else:
            stack.append((i, 0, 0))
    ordered: list[Span] = []
    up: list[int] = []
    depth: list[int] = []
    while stack:
        i, above, level = stack.pop()
        here = len(ordered)
        ordered.append(spans[i])
        up.append(above)
        depth.append(level)
        stack += [(child, here, level + 1) for child in children[i]]
    return ordered, up, depth


def _ends(spans: list[Span], up: list[int], notes: list[str]) -> list[float]:
    """Epoch end of each span; an unfinished one ends with the last thing known of it."""
    ends = [_last_known(span) if span.end is None else span.end for span in spans]
    unfinished = backwards = 0
    latest = [span.start for span in spans]  # of the descendants seen so far
    for i in range(len(spans) - 1, -1, -1):
        span = spans[i]
        if span.end is None:
            unfinished += 1
            ends[i] = max(ends[i], latest[i])
        elif span.end < span.start:
            backwards += 1
            ends[i] = span.start
        if not isinstance(span.work, HumanWait):
            latest[up[i]] = max(latest[up[i]], latest[i], ends[i])
    if backwards:
        notes.append(f"{_count(backwards, 'span')} ended before the start and was given no length.")
    if unfinished:
        notes.append(f"{_count(unfinished, 'span')} never ended: taken to end with the last thing known of each.")
    return ends


def _last_known(span: Span) -> float:
    marks = [span.start]
    if isinstance(span.work, ModelCall):
        marks += [t for t in (span.work.sent, span.work.first_token, span.work.last_token) if t is not None]
    return max(marks)


def _cover(spans: list[Span], starts: list[float], ends: list[float]) -> None:
    """Stretch the made root over all that is not a person's."""
    at_work = [i for i in range(1, len(spans)) if not isinstance(spans[i].work, HumanWait)]
    starts[0] = min((starts[i] for i in at_work), default=starts[0])
    ends[0] = max((ends[i] for i in at_work), default=starts[0])
    spans[0] = structs.replace(spans[0], start=starts[0], end=ends[0])


def _to_axis(tree: Tree, waits: list[int]) -> None:
    at, start, end = tree.at, tree.start, tree.end
    if tree.cuts:
        start[:] = [at(when) for when in start]
        end[:] = [at(when) for when in end]
        tree.notes.append(f"{tree.human:.3f} s of waiting for a person are left out of E2E.")
    else:
        origin = tree.origin
        start[:] = [when - origin for when in start]
        end[:] = [when - origin for when in end]
    for i in waits:  # a wait before the task, or the part of one that overlapped work, is no row of its own
        start[i] = min(max(start[i], 0.0), end[0])
        end[i] = min(max(end[i], start[i]), end[0])
    start[0] = 0.0


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
