"""A task as it is to be played: calls, tools and what they wait for; and sessions of such tasks.

Tokens are those that a call ADDS: what it goes on from (``extends``) and what it shares with others comes before them.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from headway.core.errors import BadInputError


class Shared(Struct, frozen=True, forbid_unknown_fields=True):
    """A beginning that prompts have in common: the same name is the same text, in every task of a workload."""

    name: str
    tokens: int


class Call(Struct, frozen=True, kw_only=True, tag="call", tag_field="kind", forbid_unknown_fields=True):
    """One request to a model. It is sent when everything in ``after`` has ended."""

    id: str
    input_tokens: int
    """Tokens that it adds to what it goes on from."""
    output_tokens: int
    """Most tokens of its answer; engines that can be told to write just as many are."""
    after: tuple[str, ...] = ()
    extends: str | None = None
    """The call whose prompt and answer it goes on from; it waits for that too."""
    shared: Shared | None = None
    """What its prompt begins with; only where it extends none."""


class Tool(Struct, frozen=True, kw_only=True, tag="tool", tag_field="kind", forbid_unknown_fields=True):
    """A tool at work for so many seconds."""

    id: str
    seconds: float
    after: tuple[str, ...] = ()
    name: str = "tool"


Step = Call | Tool


class Graph(Struct, frozen=True, forbid_unknown_fields=True):
    """One task: it is over when all of its steps are."""

    steps: tuple[Step, ...]

    @property
    def calls(self) -> tuple[Call, ...]:
        """Those of its steps that are calls."""
        return tuple(step for step in self.steps if isinstance(step, Call))


class Session(Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks that a person sets one after another, and how long that person thinks before each but the first."""

    tasks: tuple[Graph, ...]
    think: tuple[float, ...] = ()
    """Seconds, one fewer than there are tasks."""


def needs(step: Step) -> tuple[str, ...]:
    """The steps that ``step`` waits for."""
    if isinstance(step, Call) and step.extends is not None and step.extends not in step.after:
        return (*step.after, step.extends)
    return step.after


def checked(session: Session, where: str) -> Session:
    """``session``, if it can be played.

    Args:
        session: what was read or made.
        where: what the reader knows it by: the file and the place in it.

    Raises:
        BadInputError: a step waits for one that is not there or for itself, a name is given twice, a number is below 0.
    """
    if not session.tasks:
        raise BadInputError(f"{where} has no task.", fix="Give it at least one, with at least one call.")
    if len(session.think) != len(session.tasks) - 1:
        raise BadInputError(
            f"{where} has {len(session.tasks)} tasks and {len(session.think)} think times.",
            fix="Give one think time between each task and the next.",
        )
    for number, seconds in enumerate(session.think):
        _positive(seconds, f"{where}, think[{number}]", "seconds")
    earlier: set[str] = set()
    for number, graph in enumerate(session.tasks):
        _check_task(graph, f"{where}, tasks[{number}]", earlier)
        earlier |= {call.id for call in graph.calls}
    return session


def _check_task(graph: Graph, where: str, earlier: set[str]) -> None:
    if not graph.calls:
        raise BadInputError(f"{where} has no call.", fix="A task needs at least one call to a model.")
    here: set[str] = set()
    for step in graph.steps:
        if step.id in here or step.id in earlier:
            raise BadInputError(f"{where}: two steps are called {step.id!r}.", fix="Give each a name of its own.")
        here.add(step.id)
    calls = {call.id for call in graph.calls} | earlier
    for step in graph.steps:
        _check_step(step, f"{where}, step {step.id!r}", here, calls)
    list(in_order(graph, where, earlier))


def _check_step(step: Step, where: str, here: set[str], calls: set[str]) -> None:
    missing = [name for name in step.after if name not in here]
    if missing:
        raise BadInputError(
            f"{where} waits for {missing[0]!r}, which is no step of its task.",
            fix="Name a step of the same task in `after`; what an earlier task said is gone on from by `extends`.",
        )
    if isinstance(step, Tool):
        _positive(step.seconds, where, "seconds")
        return
    _positive(step.input_tokens, where, "input_tokens")
    if step.output_tokens < 1:
        raise BadInputError(f"{where}: output_tokens is {step.output_tokens}.", fix="An answer has at least one.")
    if step.extends is not None and step.extends not in calls:
        raise BadInputError(
            f"{where} extends {step.extends!r}, which is no call of this task or of one before it.",
            fix="Name a call of the session in `extends`.",
        )
    if step.shared is not None:
        _positive(step.shared.tokens, where, "shared tokens")
        if step.extends is not None:
            raise BadInputError(
                f"{where} both extends a call and begins with {step.shared.name!r}.",
                fix="A prompt has one beginning: leave one of the two out.",
            )


def _positive(value: float, where: str, what: str) -> None:
    if not 0 <= value < float("inf"):
        raise BadInputError(f"{where}: {what} is {value}.", fix="Give a number that is not below 0.")


def in_order(graph: Graph, where: str, earlier: set[str] | frozenset[str] = frozenset()) -> Iterator[Step]:
    """The steps, each after all that it waits for.

    Raises:
        BadInputError: steps wait for each other in a circle.
    """
    waiting: Sequence[Step] = graph.steps
    done = set(earlier)
    while waiting:
        ready = [step for step in waiting if done.issuperset(needs(step))]
        if not ready:
            names = ", ".join(repr(step.id) for step in waiting[:5])
            raise BadInputError(f"{where}: {names} wait for each other in a circle.", fix="Take one `after` out.")
        yield from ready
        done |= {step.id for step in ready}
        waiting = [step for step in waiting if step.id not in done]
