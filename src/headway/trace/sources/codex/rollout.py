"""Codex sessions: rollouts, the JSON lines that the program keeps."""

from collections.abc import Iterator, Sequence
from typing import Final

from headway.trace.sources.codex.rows import decode
from headway.trace.sources.codex.thread import Thread, Turn
from headway.trace.sources.document import Document, Sample
from headway.trace.sources.session import separated
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_LINES: Final = frozenset({"session_meta", "turn_context", "event_msg", "response_item", "compacted"})
_OLD: Final = frozenset({"function_call", "function_call_output", "function_result", "reasoning", "message"})
_ALONE: Final = "This is a sub-agent's work; the session that it worked for is not among the files."


class Codex:
    """Reads rollouts of all versions; one task for each turn."""

    name = "codex"
    title = "Codex session"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """Whether a line of a rollout is among the first records."""
        found = list(separated.objects(sample))
        return any(map(_is_line, found)) or _is_old(found)

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One piece for each turn that was answered, with all that sub-agents did meanwhile."""
        threads: list[Thread] = []
        for document in documents:
            thread = Thread(document.name)
            threads.append(thread)
            for record in separated.records(document, skips):
                decoded = decode(record, skips)
                if decoded is not None and (why := thread.feed(*decoded)):
                    skips.add(why, record.where)
            for _ in range(thread.finish()):
                skips.add("a request that was never answered", document.name)
        alone = _adopt(threads)
        tools = {span: seconds for thread in threads for span, seconds in thread.tools.took.items()}
        seen: set[str] = set()
        for thread in threads:
            for turn in thread.turns:
                if thread.parent is not None and turn not in alone:
                    continue
                if turn.key in seen:
                    skips.add("a turn that another file of the same session holds too: counted once", thread.session)
                    continue
                seen.add(turn.key)
                yield turn.piece(thread.session, tools)


def _is_line(found: dict[str, object]) -> bool:
    return str(found.get("type")) in _LINES and isinstance(found.get("payload"), dict) and "timestamp" in found


def _is_old(found: Sequence[dict[str, object]]) -> bool:
    """Items without an envelope, beside the head of the oldest format or times of their own."""
    kinds = [str(one.get("type")) for one in found]
    head = any({"id", "timestamp", "instructions"} <= one.keys() and "type" not in one for one in found)
    timed = any("created_at" in one and str(one.get("type")) in _OLD for one in found)
    return timed or (head and any(kind in _OLD for kind in kinds))


def _adopt(threads: Sequence[Thread]) -> set[Turn]:
    """Put the turns of sub-agents into those in which they were started; returns the ones whose parents are missing."""
    by_session = {thread.session: thread for thread in threads}
    started = [(turn, thread.parent) for thread in threads if thread.parent is not None for turn in thread.turns]
    alone: set[Turn] = set()
    for turn, (session, name) in sorted(started, key=lambda one: -one[0].draft.start):  # what is adopted must be whole
        start = turn.draft.start
        turn.draft.agent = name or turn.draft.agent
        above = by_session.get(session)
        holders = () if above is None else above.turns
        holder = next((one for one in holders if one.draft.start < start <= one.draft.end), None)
        if holder is None:
            turn.draft.remarks.append(_ALONE)
            alone.add(turn)
        else:
            holder.draft.adopt(turn.draft, None)
    return alone
