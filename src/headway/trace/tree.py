"""From loose spans to a task tree: repairs, each of them told, on one time axis that starts with the task."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, compress, repeat
from math import inf, nextafter
from operator import attrgetter, eq, ge, ne

from msgspec import Struct, structs

from headway.core.span import HumanWait, ModelCall, Span, Step, ToolUse, Work
from headway.core.task import SpanId, TaskId
from headway.trace.idle import Interval, idle
from headway.trace.skew import shifted, skewed

EPSILON = 0.001
"""Seconds that two recorded times may be apart and still mean the same moment."""
UNENDED = "never ended: taken to end with the last thing known of each."
"""How the repair of spans without an end is told, which where nothing is said of seconds is no matter."""
ROOT_ID = SpanId("0" * 16)
"""Id of a root that was made here: W3C forbids it as a span's id, so no recorded span has it."""


class Tree(Struct, frozen=True, kw_only=True):
    """Spans by index: parents before children, siblings by start; index 0 is the root, which covers the task."""

    spans: list[Span]
    kinds: list[type[Work]]
    """Of each span's work: compared far more cheaply than the work itself is asked what it is."""
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
    before: dict[int, float]
    """Seconds of a wait for a person, by its index, that lie before the task: not on the axis either."""
    moved: dict[int, float]
    """Seconds by which a span recorded on another host's clock was moved, by its index: the raw times are so much
    earlier."""
    made_root: bool
    notes: list[str]
    """Plain sentences: what was repaired."""

    @property
    def human(self) -> float:
        """Seconds that a person was waited for and nothing else was done."""
        return self.lost[-1]

    @property
    def waited_before(self) -> float | None:
        """Seconds that a person was waited for before the task; unknown where no such wait was recorded."""
        return max(self.before.values(), default=None)

    @property
    def axis(self) -> Callable[[float], float]:
        """From an epoch time to seconds from the task's start."""
        return self._without_cuts if self.cuts else self.origin.__rsub__

    def _without_cuts(self, when: float) -> float:
        upto = bisect_right(self.cuts, (when, when))
        lost = self.lost[upto] - max(self.cuts[upto - 1][1] - when, 0.0) if upto else 0.0
        return when - self.origin - lost


def grow(spans: Sequence[Span]) -> Tree:
    """Build the tree of one task out of its spans, in any order and any state.

    Nothing is dropped in silence: a repeated id keeps its fullest record, an end before its start becomes the start,
    what another host's clock puts outside its parent is moved (see `headway.trace.skew`),
    an unfinished span ends with the last that is known of it or of its descendants, a circle of parents is opened at
    its earliest span, and where there is not exactly one span without a parent, or that one is a call which others
    followed, a root named for the task is made to cover all. Every repair is a sentence in ``notes``. No spans at all
    give a lone root of no length.
    """
    notes: list[str] = []
    unique = once(spans, notes)
    parent = _parents(unique, notes)
    moved = skewed(unique, parent, notes)
    if moved:
        unique = sorted([shifted(span, moved.get(span.id, 0.0)) for span in unique], key=attrgetter("start"))
        parent = _parents(unique, [])
    tops = [i for i in _where(parent, -1) if type(unique[i].work) is not HumanWait]
    made_root = len(tops) != 1 or _followed(unique, tops[0])
    if made_root:
        unique = [_root(unique), *unique]
        parent = [-1, *[p + 1 for p in parent]]
    elif parent.count(-1) > 1:  # waits for a person, which nothing holds
        parent = [tops[0] if p < 0 and i != tops[0] else p for i, p in enumerate(parent)]
    ordered, up, depth = _preorder(unique, parent)
    starts = [span.start for span in ordered]
    ends = _ends(ordered, starts, up, notes)
    kinds = [type(span.work) for span in ordered]
    if made_root:
        _cover(ordered, kinds, starts, ends)
        if len(ordered) > 1:
            notes.append(
                "No one span covers the whole task: it is taken to run from the first recorded start to the last end."
            )
    cuts = idle(ordered, up, starts, ends) if HumanWait in kinds else []
    tree = Tree(
        spans=ordered, kinds=kinds, parent=up, depth=depth, start=starts, end=ends, origin=starts[0], cuts=cuts,
        lost=[0.0, *accumulate(until - since for since, until in cuts)], before={},
        moved={i: moved[span.id] for i, span in enumerate(ordered) if span.id in moved} if moved else {},
        made_root=made_root, notes=notes,
    )  # fmt: skip
    _to_axis(tree)
    return tree


def once(spans: Sequence[Span], notes: list[str]) -> list[Span]:
    """Spans by start, what was recorded twice but once: of each id the fullest record, of each tool the timed one.

    Args:
        spans: all of a task's.
        notes: given a sentence on what was left out.
    """
    return _seen_once(_unique(spans, notes), notes)


def _followed(spans: list[Span], top: int) -> bool:
    """Whether the span above all others is a call that had ended when some of them began: it cannot hold those."""
    end = spans[top].end
    if end is None or type(spans[top].work) is not ModelCall:
        return False
    later = max(end - EPSILON, nextafter(spans[top].start, inf))
    return any(span.start >= later and type(span.work) is not HumanWait for span in spans)


def _where(values: list[int], value: int) -> list[int]:
    return list(compress(range(len(values)), map(eq, values, repeat(value))))


def _fullness(span: Span) -> tuple[bool, int, float]:
    written = span.work.usage.output_tokens if type(span.work) is ModelCall else None
    return span.end is not None, -1 if written is None else written, span.start if span.end is None else span.end


def _unique(spans: Sequence[Span], notes: list[str]) -> list[Span]:
    """Each id once, by start: so parents mostly come before their children."""
    kept = {span.id: span for span in spans}
    if repeats := len(spans) - len(kept):
        notes.append(f"{_count(repeats, 'record')} repeated the id of another span: the fullest of each was kept.")
        for span in spans:
            if _fullness(span) > _fullness(kept[span.id]):
                kept[span.id] = span
    return sorted(kept.values(), key=attrgetter("start"))


def _seen_once(spans: list[Span], notes: list[str]) -> list[Span]:
    """A tool timed where it ran, and inferred by the gateway from the calls around it, is one tool: the timed one.

    Told by the id of the tool's call, where each side has it once: some engines use one again.
    """
    timed: dict[str, list[Span]] = {}
    inferred: dict[str, list[Span]] = {}
    if not [True for span in spans if type(span.work) is ToolUse and span.work.inferred]:
        return spans
    for span in spans:
        if type(span.work) is ToolUse and span.work.call_id is not None:
            (inferred if span.work.inferred else timed).setdefault(span.work.call_id, []).append(span)
    twice = {
        guesses[0].id: timed[call][0].id
        for call, guesses in inferred.items()
        if len(guesses) == 1 and len(timed.get(call, ())) == 1
    }
    if not twice:
        return spans
    notes.append(
        f"{_count(len(twice), 'tool')} recorded twice, by the agent and by the gateway: the agent's times count."
    )
    kept = [span for span in spans if span.id not in twice]
    return [
        structs.replace(span, parent=twice[span.parent]) if span.parent is not None and span.parent in twice else span
        for span in kept
    ]


def _parents(spans: list[Span], notes: list[str]) -> list[int]:
    """Index of each span's parent, -1 where it has none; free of circles."""
    index: dict[SpanId | None, int] = {span.id: i for i, span in enumerate(spans)}
    above = [span.parent for span in spans]
    parent = list(map(index.get, above, repeat(-1)))
    if orphans := sum(above[i] is not None for i in _where(parent, -1)):
        notes.append(f"{_count(orphans, 'span')} named a parent that is not in the record and hung from the root.")
    late = list(compress(range(len(spans)), map(ge, parent, range(len(spans)))))
    if late and (circles := _open_circles(spans, parent, late)):
        notes.append(f"{_count(circles, 'circle')} of parents opened at the earliest span.")
    return parent


def _open_circles(spans: list[Span], parent: list[int], late: list[int]) -> int:
    """Every circle has a span whose parent does not come before it, so only from those is it looked for."""
    circles, state = 0, bytearray(len(spans))
    for i in late:
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
    return circles


def _root(spans: list[Span]) -> Span:
    session = next((span.session for span in spans if span.session is not None), None)
    task, first = (spans[0].task, spans[0].start) if spans else (TaskId(""), 0.0)
    return Span(
        task=task, id=ROOT_ID, parent=None, name=f"task {task}", start=first, end=first, work=Step(), session=session
    )


def _preorder(spans: list[Span], parent: list[int]) -> tuple[list[Span], list[int], list[int]]:
    child, sibling = [-1] * len(spans), [-1] * len(spans)  # the first of each; lists of children would cost far more
    root = 0
    for i in range(len(spans) - 1, -1, -1):
        above = parent[i]
        if above < 0:
            root = i
        else:
            sibling[i] = child[above]
            child[above] = i
    ordered: list[Span] = []
    up: list[int] = []
    depth: list[int] = []
    stack = [(root, 0, 0)]
    while stack:
        i, above, level = stack.pop()
        while i >= 0:
            here = len(ordered)
            ordered.append(spans[i])
            up.append(above)
            depth.append(level)
            if child[i] < 0:
                i = sibling[i]
                continue
            if sibling[i] >= 0:
                stack.append((sibling[i], above, level))
            i, above, level = child[i], here, level + 1
    return ordered, up, depth


def _ends(spans: list[Span], starts: list[float], up: list[int], notes: list[str]) -> list[float]:
    """Epoch end of each span; an unfinished one ends with the last thing known of it."""
    recorded = [span.end for span in spans]
    ends = [start if end is None or end < start else end for start, end in zip(starts, recorded, strict=True)]
    if ends == recorded:
        return ends
    unfinished = recorded.count(None)
    if backwards := sum(map(ne, ends, recorded)) - unfinished:
        notes.append(f"{_count(backwards, 'span')} ended before the start and was given no length.")
    if unfinished:
        notes.append(f"{_count(unfinished, 'span')} {UNENDED}")
        latest = list(starts)  # of the span and the descendants seen so far
        for i in range(len(spans) - 1, -1, -1):
            if recorded[i] is None:
                ends[i] = max(latest[i], _last_known(spans[i]))
            if type(spans[i].work) is not HumanWait:
                latest[up[i]] = max(latest[up[i]], latest[i], ends[i])
    return ends


def _last_known(span: Span) -> float:
    marks = [span.start]
    if type(span.work) is ModelCall:
        marks += [t for t in (span.work.sent, span.work.first_token, span.work.last_token) if t is not None]
    return max(marks)


def _cover(spans: list[Span], kinds: list[type[Work]], starts: list[float], ends: list[float]) -> None:
    """Stretch the made root over all that is not a person's."""
    at_work = [i for i in range(1, len(spans)) if kinds[i] is not HumanWait]
    starts[0] = min((starts[i] for i in at_work), default=starts[0])
    ends[0] = max((ends[i] for i in at_work), default=starts[0])
    spans[0] = structs.replace(spans[0], start=starts[0], end=ends[0])


def _to_axis(tree: Tree) -> None:
    start, end, origin = tree.start, tree.end, tree.origin
    if tree.cuts:
        start[:], end[:] = map(tree.axis, start), map(tree.axis, end)
        tree.notes.append(f"{tree.human:.3f} s of waiting for a person are left out of E2E.")
    else:
        start[:], end[:] = [when - origin for when in start], [when - origin for when in end]
    if HumanWait in tree.kinds:
        for i, kind in enumerate(tree.kinds):
            if kind is HumanWait:  # what lies before or after the task is not on its axis
                if start[i] < 0:
                    tree.before[i] = min(end[i], 0.0) - start[i]
                start[i] = min(max(start[i], 0.0), end[0])
                end[i] = min(max(end[i], start[i]), end[0])
        if tree.before:
            longest = max(tree.before.values())
            tree.notes.append(f"A person was waited for before this task, {longest:.3f} s: no part of its E2E.")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
