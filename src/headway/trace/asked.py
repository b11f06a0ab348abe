"""Which call's answer asked for which tool."""

from headway.core.span import ModelCall, ToolUse
from headway.trace.contract import Contraction
from headway.trace.tree import Tree


def asked_for(tree: Tree, held: Contraction) -> dict[int, list[int]]:
    """Tools by the call whose response asked for them, in order of start; indices of the tree."""
    index = {span.id: i for i, span in enumerate(tree.spans)}
    issued: dict[int, list[int]] = {}
    latest: dict[str, int] = {}  # by the tool call's id; some engines use one again, so the last one counts
    for i in sorted(held.nodes, key=held.lo.__getitem__):
        work = tree.spans[i].work
        if isinstance(work, ModelCall):
            latest.update((ref.id, i) for ref in work.tool_calls)
        elif isinstance(work, ToolUse):
            issuer = index.get(work.issued_by) if work.issued_by else latest.get(work.call_id) if work.call_id else None
            if issuer is not None and tree.kinds[issuer] is ModelCall:
                issued.setdefault(issuer, []).append(i)
    return issued
