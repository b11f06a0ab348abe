"""How tools and retrievals ended, as far as anybody saw it."""

from headway.core.span import Span, ToolUse


def failed(tool: Span) -> bool:
    """Whether it is known to have failed."""
    return tool.error is not None or (type(tool.work) is ToolUse and tool.work.failed is True)


def untold(tool: Span) -> bool:
    """Whether nobody saw how it ended: there is no end in the record, or only the gap in which it ran is known."""
    if tool.error is not None or (type(tool.work) is ToolUse and tool.work.failed is not None):
        return False
    return tool.end is None or (type(tool.work) is ToolUse and tool.work.inferred)
