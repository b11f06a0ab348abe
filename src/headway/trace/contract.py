"""From a task tree to what the task waited for: work and agents stay, the rest is spliced out."""

from collections.abc import Sequence
from itertools import compress, repeat
from operator import is_
from typing import TypeVar

from msgspec import Struct, structs

from headway.core.span import HumanWait, ModelCall, Retrieval, Step, ToolUse
from headway.core.usage import Usage
from headway.trace.shared_gap import end_apart, sharing
from headway.trace.tree import EPSILON, Tree

OUTLIVING = 0.01
"""Share of its holder's length by which a span may end after it (at least EPSILON) and still belong to it."""

WORK = frozenset({ModelCall, ToolUse, Retrieval})

Known = TypeVar("Known", ModelCall, Usage)


class Contraction(Struct, frozen=True, kw_only=True):
    """Which spans the task waited for, and what each hangs from; indices are the tree's."""

    nodes: list[int]
    """Work, and agents that hold some, which belong to E2E: holders before what they hold; the first is the root."""
    holder: list[int]
    """The node that holds a span, through whatever was spliced out between."""
    lo: list[float]
    hi: list[float]
    """Times of the nodes, each inside its holder's."""
    calls: list[int]
    """Model calls, each once: detached ones too, wrappers not."""
    detached: list[int]
    """Work that its holder did not wait for; what hangs below it is not listed again."""
    adrift: bytearray
    """Whether a span is detached or hangs below one that is."""
    early: dict[int, int]
    """Tools that began while the answer that asks for them still came, and ended after it, with the call it is of."""
    untimed: frozenset[int]
    """Tools of which only the gap is known that they share with others: how long each took is not."""
    notes: list[str]


def contract(tree: Tree) -> Contraction:
    """Keep calls, tools, retrievals, and agents that hold some; splice out all other steps, waiters among them.

    A call inside a call is one call: the inner one stays, and learns what only the outer one knows. What starts when
    the call above it has ended was asked for by its answer and stands beside it. What starts after its holder has
    ended, or outlives it by more than jitter, was not waited for: it is detached, with all below it; so is what is
    recorded as not awaited, as the consumer of a message.
    """
    notes: list[str] = []
    node = _nodes(tree)
    is_call = list(map(is_, tree.kinds, repeat(ModelCall)))
    calls = list(compress(range(len(is_call)), is_call))
    holder = _holders(tree, node, is_call)
    inner: dict[int, list[int]] = {}
    for i in calls:
        if i and is_call[holder[i]]:
            inner.setdefault(holder[i], []).append(i)
    if inner:
        _merge(tree, inner)
        for wrapper in inner:
            is_call[wrapper] = False
            node[wrapper] = wrapper == 0
        holder = _holders(tree, node, is_call)
        notes.append(f"{_calls(len(inner))} recorded with another inside: the inner one is counted, once.")
        calls = [i for i in calls if is_call[i]]
    return _clip(tree, node, holder, calls, notes)


def _nodes(tree: Tree) -> list[bool]:
    node = list(map(WORK.__contains__, tree.kinds))
    steps = compress(range(len(node)), map(is_, tree.kinds, repeat(Step)))
    agents = [i for i in steps if isinstance(work := tree.spans[i].work, Step) and work.agent is not None and i]
    if agents:
        holds = list(node)  # work at or below
        for i in range(len(holds) - 1, 0, -1):
            if holds[i]:
                holds[tree.parent[i]] = True
        for i in agents:
            node[i] = holds[i]
    node[0] = True
    return node


def _holders(tree: Tree, node: list[bool], is_call: list[bool]) -> list[int]:
    start, end = tree.start, tree.end
    holder: list[int] = []
    for i, parent in enumerate(tree.parent):
        above = parent if node[parent] else holder[parent]
        while is_call[above] and above and start[i] >= end[above] - EPSILON:
            above = holder[above]
        holder.append(above)
    return holder


def _merge(tree: Tree, inner: dict[int, list[int]]) -> None:
    """Tell an only inner call what its wrapper alone knows; among several nobody can say whose it was."""
    for wrapper in sorted(inner):  # outermost first: what it knows passes on all the way in
        if len(inner[wrapper]) != 1:
            continue
        (leaf,) = inner[wrapper]
        span, outer = tree.spans[leaf], tree.spans[wrapper].work
        if type(span.work) is ModelCall and type(outer) is ModelCall:
            work = _filled(span.work, outer)
            usage: Usage = _filled(span.work.usage, outer.usage)
            tools = span.work.tool_calls or outer.tool_calls
            tree.spans[leaf] = structs.replace(span, work=structs.replace(work, usage=usage, tool_calls=tools))
            if tree.start[leaf] < tree.end[wrapper]:  # what the caller did not wait for is no part of the call
                tree.end[leaf] = min(tree.end[leaf], tree.end[wrapper])


def _filled(inner: Known, outer: Known) -> Known:
    known = {name: getattr(outer, name) for name in inner.__struct_fields__ if getattr(inner, name) is None}
    return structs.replace(inner, **known)


def _clip(tree: Tree, node: list[bool], holder: list[int], calls: list[int], notes: list[str]) -> Contraction:
    """Bring each node inside its holder, or cut it off."""
    lo, hi = list(tree.start), list(tree.end)
    nodes, detached, adrift = [0], list[int](), bytearray(len(node))
    loose, early = _loose(tree), 0
    for i in range(1, len(node)):
        above = holder[i]
        if adrift[above] or i in loose:
            adrift[i] = 1
            if node[i] and not adrift[above]:
                detached.append(i)
        elif node[i]:
            floor, ceiling = lo[above], hi[above]
            if lo[i] < floor or hi[i] > ceiling:
                if lo[i] > ceiling + EPSILON or hi[i] > ceiling + max(EPSILON, OUTLIVING * (ceiling - floor)):
                    adrift[i] = 1
                    detached.append(i)
                    continue
                early += lo[i] < floor - EPSILON
                lo[i] = min(max(lo[i], floor), ceiling)
                hi[i] = min(max(hi[i], lo[i]), ceiling)
            nodes.append(i)
    if tree.made_root:  # it covers what the task waited for, and detached work is not that
        ends = (tree.end[i] for i in range(1, len(node)) if not adrift[i] and tree.kinds[i] is not HumanWait)
        hi[0] = tree.end[0] = max(ends, default=hi[0])
    untimed = _apart(tree, nodes, holder, lo, hi, notes)
    if early:
        notes.append(f"Started before what holds them: {early:,}. Only the part inside is in E2E.")
    if detached:
        notes.append(f"Not waited for by what started them: {len(detached):,}. Reported as detached, not in E2E.")
    return Contraction(
        nodes=nodes,
        holder=holder,
        lo=lo,
        hi=hi,
        calls=calls,
        detached=detached,
        adrift=adrift,
        early=_early(tree, nodes, holder, lo, hi),
        untimed=untimed,
        notes=notes,
    )


def _early(
    tree: Tree, nodes: Sequence[int], holder: Sequence[int], lo: Sequence[float], hi: Sequence[float]
) -> dict[int, int]:
    spans, kinds = tree.spans, tree.kinds
    asking = {spans[i].id: i for i in nodes if kinds[i] is ModelCall}
    found: dict[int, int] = {}
    for i in nodes:
        if kinds[i] is not ToolUse:
            continue
        work = spans[i].work
        call = asking.get(work.issued_by) if type(work) is ToolUse and work.issued_by is not None else None
        if (
            call is not None
            and holder[call] == holder[i]
            and lo[call] < lo[i] < hi[call] - EPSILON
            and hi[i] > hi[call] + EPSILON
        ):
            found[i] = call
    return found


def _apart(
    tree: Tree, nodes: list[int], holder: list[int], lo: list[float], hi: list[float], notes: list[str]
) -> frozenset[int]:
    """Give tools that share a gap ends of their own where sub-agents in them tell; all tools that share one."""
    groups = sharing(tree.spans, hi, holder, [i for i in nodes if tree.kinds[i] is ToolUse])
    if not groups:
        return frozenset()
    inside: dict[int, float] = {}
    for i in nodes[1:]:
        inside[holder[i]] = max(inside.get(holder[i], hi[i]), hi[i])
    if told := sum(len(group) for group in groups if end_apart(group, inside, lo, hi)):
        notes.append(
            f"Tools that ran side by side, of which only the gap is known that they share: {told:,}. Each that holds a"
            " sub-agent is taken to have ended as long after it as the one that ended last."
        )
    return frozenset(i for group in groups for i in group)


def _loose(tree: Tree) -> set[int]:
    """What its parent is known not to wait for, with all below it; where the parent is not recorded, it is the task."""
    if False not in [span.awaited for span in tree.spans]:
        return set()
    loose = {
        i for i, span in enumerate(tree.spans) if not span.awaited and (tree.parent[i] or not tree.made_root) and i
    }
    for i in range(1, len(tree.spans)):
        if tree.parent[i] in loose:
            loose.add(i)
    return loose


def _calls(number: int) -> str:
    return "1 model call was" if number == 1 else f"{number:,} model calls were"
