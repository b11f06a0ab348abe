"""What a task is given to work with: it scatters, pays, tells how far it is, and is held to its budget and its time.

A run is handed on, never ambient. What is scattered gets runs of its own, below the one that scatters, so limits,
spans, keys of paid calls and cancelling nest by construction.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence, Sized
from contextlib import aclosing
from typing import Any, Final, Literal, TypeVar, Unpack

import msgspec
from msgspec import Struct, structs

from headway.core.errors import BadInputError, InDoubtError, NotDoneError
from headway.core.span import Step, Work
from headway.core.task import SpanId, TaskId
from headway.runtime.ballot import Ballot
from headway.runtime.estimate import Estimate, Planned
from headway.runtime.functions import check, name_of
from headway.runtime.history import foretold
from headway.runtime.memo import key_of
from headway.runtime.models import Message, Models, Question, Reply
from headway.runtime.progress import Said, Stage
from headway.runtime.purse import Amount, Purse
from headway.runtime.reduction import Tree
from headway.runtime.scatter import Failure, How, Options, Scatter, Success, Tally, Tolerant, failed
from headway.runtime.shared import Lane, Shared
from headway.runtime.spans import Timed, trace_headers

T = TypeVar("T")
R = TypeVar("R")
Again = Literal[
    "repeat",  # make it again: asking twice does no harm but its cost
    "never",  # raise: a person has to look whether it was done
]
"""What to do with a call that was stopped, or whose process died, so that nobody knows whether it was done."""


ONE_CALL: Final = Amount(calls=1)


class Paid(Struct, frozen=True):
    """What a paid call gave, and what it took."""

    value: Any
    used: Amount = ONE_CALL


class Gathered(list[R]):
    """Results in the order of their items, without those that failed, which are in ``failures``."""

    def __init__(self, results: Iterable[R], failures: tuple[Failure, ...]) -> None:
        super().__init__(results)
        self.failures = failures


class Run:
    """A task's hands, or those of a part of it; `headway.runtime.task` gives a task its own.

    Args:
        shared: what it has in common with the task's other runs.
        path: where in the task it is: the task, the scatters above it and its items, with ``/`` between them.
        span: what it does is recorded below this one.
        purse: what it spends comes out of this.
        deadline: when the task has to be done; epoch seconds on the task's clock.
    """

    def __init__(self, shared: Shared, path: str, span: SpanId, purse: Purse, deadline: float | None) -> None:
        self.shared = shared
        self.path = path
        self.span = span
        self.purse = purse
        self.deadline = deadline
        self.sent_back: Exception | None = None
        """In a pipeline: what a later stage failed of, so that the item is here again."""
        self._named: dict[str, int] = {}

    @property
    def id(self) -> TaskId:
        """The task's name, the same when it is taken up again."""
        return self.shared.task

    @property
    def lane(self) -> Lane:
        """Whether a person waits for the task."""
        return self.shared.lane

    @property
    def models(self) -> Models:
        """Where it asks.

        Raises:
            BadInputError: the task has none.
        """
        if self.shared.models is None:
            raise BadInputError("This task has no models.", fix="Start it by Runtime(models=Models(base_url)).")
        return self.shared.models

    @property
    def stage(self) -> str:
        """The stage of the task that it belongs to: the outermost scatter above it; empty in the task itself."""
        return (*self.path.split("/", 2), "")[1]

    @property
    def seconds_left(self) -> float | None:
        """Until the deadline, 0 when it has passed; ``None``: there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - self.shared.spans.clock.now())

    def say(self, text: str) -> None:
        """Show the user a finding or a piece of an answer now."""
        self.shared.feed.say(Said(stage=self.stage, text=text))

    def timed(self, name: str, work: Work | None = None) -> Timed:
        """A span of what is done in its ``with`` block; a plain step unless ``work`` says otherwise."""
        return Timed(self.shared.spans, self.id, self.span, name, Step() if work is None else work)

    def within(self, name: str, span: SpanId, purse: Purse | None = None, deadline: float | None = None) -> "Run":
        """A run below this one; its purse and its deadline are this one's unless others are given."""
        return Run(self.shared, f"{self.path}/{name}", span, purse or self.purse, _sooner(deadline, self.deadline))

    def unique(self, name: str) -> str:
        """``name``, with a number from the second time on: the same in each run of the same code."""
        count = self._named[name] = self._named.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"

    async def map(
        self, f: Callable[["Run", T], Awaitable[R]], items: Iterable[T], **how: Unpack[Tolerant]
    ) -> Gathered[R]:
        """Call ``f`` on each item, so many at once, and gather what comes of it in the order of the items.

        Args:
            f: an async function of a run of its own and an item.
            items: what there is to do.
            how: see `Tolerant`.

        Raises:
            ItemsFailedError: more items failed than are tolerated; nothing runs any more.
            BadInputError: ``f`` is no async function, or an option makes no sense.
        """
        found: dict[int, R] = {}
        failures: list[Failure] = []
        async with aclosing(self.scatter(f, list(items), Options(**how))) as outcomes:
            async for outcome in outcomes:
                match outcome:
                    case Success(index=index, value=value):
                        found[index] = value
                    case Failure():
                        failures.append(outcome)
        failures.sort(key=lambda failure: failure.index)
        return Gathered((found[index] for index in sorted(found)), tuple(failures))

    async def stream(
        self, f: Callable[["Run", T], Awaitable[R]], items: Iterable[T], **how: Unpack[Tolerant]
    ) -> AsyncGenerator[tuple[int, R]]:
        """As `map`, but each result as soon as it is there, with its item's index; a slow reader slows the calls down.

        ``items`` may be without end. Leave the loop early only inside ``contextlib.aclosing``, which stops the rest.
        """
        async with aclosing(self.scatter(f, items, Options(**how))) as outcomes:
            async for outcome in outcomes:
                if isinstance(outcome, Success):
                    yield outcome.index, outcome.value

    async def reduce(
        self,
        f: Callable[["Run", list[R]], Awaitable[R]],
        items: Iterable[R],
        *,
        fan_in: int = 16,
        **how: Unpack[How],
    ) -> R:
        """Merge neighbours, up to ``fan_in`` at a time, until one is left; each merge starts when its parts are there.

        Raises:
            ItemsFailedError: a merge failed.
            BadInputError: there are no items, ``fan_in`` is below 2, or an option makes no sense.
        """
        tree = Tree(list(items), fan_in)
        async with aclosing(self.scatter(f, tree, Options(**how), of=tree.merges, place=tree.place)) as outcomes:
            async for outcome in outcomes:
                if isinstance(outcome, Success):
                    tree.merged(outcome.index, outcome.value)
        return tree.root

    async def judge(
        self,
        f: Callable[["Run", T], Awaitable[R]],
        x: T,
        *,
        votes: int = 5,
        quorum: int = 3,
        **how: Unpack[How],
    ) -> R:
        """Ask ``f`` for ``votes`` verdicts on ``x`` and return the first that ``quorum`` of them agree on (``==``).

        The rest is stopped as soon as that is decided, one way or the other. A vote that fails is a vote for nothing.

        Raises:
            NoQuorumError: no verdict can reach the quorum any more.
            BadInputError: ``quorum`` is not from 1 to ``votes``, or an option makes no sense.
        """
        ballot = Ballot[R](name_of(f), votes, quorum)
        options = Options(tolerate=1, **How(limit=votes) | how)
        async with aclosing(self.scatter(f, [x] * votes, options)) as outcomes:
            async for outcome in outcomes:
                ballot.cast(outcome)
                if ballot.winner is not None:
                    return ballot.winner.value
                if ballot.hung:
                    break
        raise ballot.no_quorum()

    async def race(self, f: Callable[["Run", T], Awaitable[R]], items: Iterable[T], **how: Unpack[How]) -> R:
        """Start ``f`` on all items at once and return the first result; the others are stopped.

        Raises:
            ItemsFailedError: all failed.
            BadInputError: there are no items, or an option makes no sense.
        """
        runners = list(items)
        if not runners:
            raise BadInputError("There is nothing to race.", fix="Give at least one item.")
        failures: list[Failure] = []
        options = Options(tolerate=1, **How(limit=len(runners)) | how)
        async with aclosing(self.scatter(f, runners, options)) as outcomes:
            async for outcome in outcomes:
                if isinstance(outcome, Success):
                    return outcome.value
                failures.append(outcome)
        raise failed(name_of(f), failures, len(runners))

    async def once(
        self,
        name: str,
        asked: object,
        make: Callable[[], Awaitable[Paid]],
        result: type[R],
        *,
        most: Amount = ONE_CALL,
        key: str = "",
        again: Again = "repeat",
    ) -> R:
        """Make a paid call, unless this task has its result already: from an earlier attempt, or before it was killed.

        Args:
            name: what is called.
            asked: what it is asked: anything that can be JSON. The same question at the same place has the same result.
            make: makes the call. What it raises counts as having cost all that the call can, because nobody says what
                a call that broke off took; `BadInputError` and `NotDoneError` say that nothing was done.
            result: the type of what it gives, by which it is read back.
            most: what it can take; reserved before it is made. A call that is stopped under way counts as having
                taken all of it, because nobody says what it took.
            key: asks the same anew where it differs, e.g. for another sample.
            again: what to do with a call that was under way when it was stopped or the task's process died.

        Raises:
            OverBudgetError: the budget does not hold ``most``.
            InDoubtError: it was under way when it was stopped or the process died, and may not be made again.
        """
        memo, place = self.shared.memo, self.unique(key_of(self.path, name, [asked, key]))
        known = memo.find(place)
        if known is not None and known.state == "done":
            return msgspec.msgpack.decode(known.value, type=result)
        if known is not None and known.state == "intent" and again == "never":
            raise InDoubtError(
                f"{self.path}: {name} was under way when it was stopped or its process died, so it may have been done.",
                fix="Look whether it was done. To make it again, start a new task.",
            )
        with await self.purse.reserve(most) as hold:
            await memo.intend(place, most)
            try:
                paid = await make()
            except Exception as error:
                used = Amount(calls=most.calls) if isinstance(error, BadInputError | NotDoneError) else most
                hold.settle(used)
                await memo.fail(place, used)
                raise
            except BaseException:
                hold.settle(most)
                raise
            hold.settle(paid.used)
            await memo.finish(place, paid.used, msgspec.msgpack.encode(paid.value))
            return paid.value

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        model: str,
        tools: Sequence[Message] = (),
        max_tokens: int = 4096,
        say: bool | Callable[[str], None] = False,
        key: str = "",
        **options: Any,  # noqa: ANN401 - the API's own
    ) -> Reply:
        """Ask a model, within the budget, once: see `once`.

        Args:
            messages: as the OpenAI API has them.
            model: its name at the endpoint.
            tools: tools that it may call, likewise.
            max_tokens: most tokens that the answer may have; what they cost is reserved before.
            say: stream the answer to whoever watches, as by `say`, or to a function; for what a person waits for.
            key: asks the same anew where it differs.
            options: more fields of the request, e.g. ``temperature=0``.

        Raises:
            OverBudgetError: the budget does not hold what it may cost.
            BadInputError: the task has no models, the endpoint refused the request, or the budget is in USD and the
                model's price is not known.
            UpstreamError: the endpoint failed; asking again may help.
        """
        models, spans = self.models, self.shared.spans
        question = Question(model=model, messages=messages, tools=tools, max_tokens=max_tokens, options=options)
        most = models.most(question, spans.clock.now(), priced=self.purse.limits_money)

        async def make() -> Paid:
            told = say if callable(say) else self.say if say else None
            begun = models.begun(question, spans.clock.now(), stream=told is not None, digests=spans.kept)
            with self.timed(f"chat {model}", begun) as span:
                headers = trace_headers(self.id, span.id)
                reply, call = await models.ask(question, begun, headers, spans.clock, told)
                used = models.used(call, begun.sent or 0.0, most)
                span.work = structs.replace(call, cost=None if used.unpriced else used.money)
            return Paid(reply, used)

        return await self.once(f"chat {model}", question, make, Reply, most=most, key=key)

    async def estimate(
        self, prompts: Iterable[str | Sequence[Message]], *, model: str, **plan: Unpack[Planned]
    ) -> Estimate:
        """Tell what a scatter will take, one call for each prompt, from earlier calls of the model; nothing is asked.

        Args:
            prompts: what each call will be asked: a text, or messages.
            model: its name at the endpoint.
            plan: see `Planned`.

        Raises:
            BadInputError: the task has no models, or a width is below 1.
            StoreError: the store cannot be read.
        """
        return await foretold(self.shared.spans, self.models, prompts, model, **plan)

    async def scatter(
        self,
        f: Callable[["Run", T], Awaitable[R]],
        items: Iterable[T],
        options: Options,
        *,
        of: int | None = None,
        place: Callable[[int], str] = str,
    ) -> AsyncGenerator[Success[R] | Failure]:
        """Outcomes as they come, of which `map`, `reduce` and the others are readings; close it by ``aclosing``.

        Args:
            f: an async function of a run of its own and an item.
            items: asked whenever there is room; an iterator may be at its end and have more after an outcome.
            options: how.
            of: how many items there are, where they do not say.
            place: what the item is called in keys that was taken as the so-manieth; the same in each run.

        Raises:
            ItemsFailedError: more items failed than are tolerated.
            BadInputError: ``f`` is no async function.
        """
        check(f)
        name = name_of(f)
        stage = self.unique(name)
        tally = Tally(name, len(items) if isinstance(items, Sized) else of, options.tolerate)
        with Timed(self.shared.spans, self.id, self.span, f"scatter {stage}", Step(), early=True) as span:

            async def attempt(index: int, again: str, item: T) -> R:
                with Timed(self.shared.spans, self.id, span.id, name, Step()) as own:
                    # Attempts share the keys of what they pay for, so that none is paid twice. A twin is its own.
                    twin = "+" if again.endswith("+") else ""
                    return await f(self.within(f"{stage}/{place(index)}{twin}", own.id), item)

            scatter = Scatter(name, attempt, iter(items), options)
            async with aclosing(scatter.outcomes()) as outcomes:
                async for outcome in outcomes:
                    tally.count(outcome)
                    if self.path == self.id:
                        told = Stage(name=stage, done=tally.done, failed=len(tally.failures), of=tally.of)
                        self.shared.feed.stage(told)
                    yield outcome
            tally.end()


def _sooner(one: float | None, other: float | None) -> float | None:
    return min((time for time in (one, other) if time is not None), default=None)
