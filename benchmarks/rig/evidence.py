"""Recorded tasks and calls that what-ifs can be tested on; only what was measured whole is taken."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct, field

from headway.core.span import HumanWait, ModelCall, ToolUse
from headway.trace.levers.case import Case, case_of
from headway.trace.sources.intake import Imported, Intake
from headway.trace.study import study

BLOCK = 64
"""Tokens of a block of a prompt in kv-cache-tester's sessions."""


class Timed(Struct, frozen=True, kw_only=True):
    """One task of which it is known when everything ended."""

    session: str
    case: Case
    n: int

    @property
    def e2e(self) -> float:
        """Seconds."""
        return self.case.study.e2e

    def tools(self) -> dict[str, list[float]]:
        """Seconds of every use, by the tool's name."""
        tree = self.case.study.tree
        found: dict[str, list[float]] = {}
        for i, span in enumerate(tree.spans):
            if isinstance(span.work, ToolUse):
                found.setdefault(span.work.name, []).append(tree.end[i] - tree.start[i])
        return found


class Read(Struct, frozen=True):
    """One call: how many tokens it computed, and how long that took, with whatever else is in that time."""

    session: str
    model: str
    computed: float
    seconds: float


class Evidence(Struct, frozen=True, kw_only=True):
    """One set."""

    name: str
    tasks: list[Timed]
    reads: list[Read]
    what: str
    """What the seconds of `reads` are."""
    left_out: dict[str, int]
    """Why tasks are not in it, and how many."""


def gather(name: str, tasks: Iterable[Imported], reads: Callable[[], list[Read]] | None = None) -> Evidence:
    """The tasks that count, with the calls in them unless ``reads`` knows better."""
    kept: list[Timed] = []
    left_out: Counter[str] = Counter()
    for one in tasks:
        why = _unfit(one)
        case = None if why else case_of(study(one.spans), lambda _call, _at: None)
        n = 0 if case is None else len(case.study.turns)
        if case is None or not n or case.study.e2e <= 0:
            left_out[why or "no call on the path"] += 1
            continue
        session = next((span.session for span in one.spans if span.session), None)
        kept.append(Timed(session=str(session or one.title or one.task), case=case, n=n))
    return Evidence(
        name=name,
        tasks=kept,
        reads=_calls(kept) if reads is None else reads(),
        what="whole call" if reads is None else "TTFT",
        left_out=dict(left_out),
    )


def _unfit(one: Imported) -> str:
    if not one.verdict.timed:
        return "no times"
    if any(span.end is None and not isinstance(span.work, HumanWait) for span in one.spans):
        return "an answer or a tool without an end"
    return ""


def _calls(tasks: Iterable[Timed]) -> list[Read]:
    """Each call's whole time, since these records have no TTFT, by the tokens that its cache did not give."""
    found: list[Read] = []
    for task in tasks:
        tree = task.case.study.tree
        for i in task.case.study.held.calls:
            work = tree.spans[i].work
            if isinstance(work, ModelCall) and tree.end[i] > tree.start[i]:
                read, cached = work.usage.input_tokens, work.usage.cache_read
                if read is not None and cached is not None:
                    found.append(Read(task.session, work.model, read - cached, tree.end[i] - tree.start[i]))
    return found


class _Request(Struct, rename={"read": "in"}):
    read: int = 0
    keep: int = 0
    model: str = ""
    ttft: float | None = None


class _Session(Struct):
    id: str
    requests: list[_Request] = field(default_factory=list[_Request])


def blocks(path: Path) -> list[Read]:
    """TTFT of kv-cache-tester's streams by the tokens that a cache which never forgets would not have had."""
    decoder = msgspec.json.Decoder(_Session)
    with path.open("rb") as lines:
        sessions = [decoder.decode(line) for line in lines]
    return [
        Read(session.id, request.model, max(request.read - BLOCK * request.keep, 0), request.ttft)
        for session in sessions
        for request in session.requests
        if request.ttft
    ]


def real(shared: Path) -> Iterator[Evidence | str]:
    """Each real set, or a sentence on why it is not there."""
    compact = shared / "workloads/kv-cache-tester/traces_compact.jsonl"
    sets: tuple[tuple[str, Path, Callable[[], list[Read]] | None], ...] = (
        ("kv-cache-tester", compact, lambda: blocks(compact)),
        ("agentcgroup", shared / "workloads/agentcgroup", None),
        ("Codex rollouts", shared / "traces/codex_rollout", None),
    )
    for name, path, reads in sets:
        if path.exists():
            yield gather(name, Intake([str(path)]).tasks(), reads)
        else:
            yield f"{name}: skipped, the recordings are not on this machine."
