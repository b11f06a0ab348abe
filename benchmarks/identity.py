"""How well, how fast and in how much memory calls find their task without headers.

Quality: recorded sessions are interleaved (see `identity_traces.py`), replayed as plain requests, and scored pairwise
over calls: of the pairs put into one session, how many belong together (precision); of those that belong together, how
many were put together (recall). "tuned" is the half of the sessions that the rules were written against, "held out"
the other; each is replayed alone, then all at once.

"no text" counts calls that carry no text at all (MagenticOne's screenshots, which the recording dropped) and "twins"
those whose request is byte for byte also one of another session: nothing in them tells whose they are.

Speed: an agent's history of 100 messages at each size, a session at a time; `Identifier.decide` (and `observe`) over
the second half of the session. "decide" is the least of several sessions at each step, which is what a machine that
does nothing else would take; "median" is what this one took. "JSON" is what reading the same messages would take
(msgspec, the fastest reader that we know), "ratio" is decide to that, "hash" one xxh3 pass over the same bytes. "moved
mark" is a client that moves a cache mark, so that no bytes repeat and every message is read again. "opening" is a
request that continues nothing, among many other sessions; its texts are looked up among all answers.

Run: ``python benchmarks/identity.py`` (data: ``$HEADWAY_SHARED`` or ``../shared``).
"""

import itertools
import json
import os
import random
import statistics
import sys
import time
import timeit
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from xxhash import xxh3_128_digest

from headway.core.task import SpanId
from headway.policy.identify import CallAnswered, CallOpening, Identifier
from headway.policy.messages import IssuedCall
from identity_traces import Recorded, Replayed, Session, flat_tau, interleave, magentic, mini_swe, tau

SHARED = Path(os.environ.get("HEADWAY_SHARED", Path(__file__).parents[2] / "shared"))
SETS: dict[str, Callable[[Path], list[Session]]] = {
    "mini-swe-agent": mini_swe,
    "tau-bench": tau,
    "tau-bench, flat": flat_tau,
    "MagenticOne": magentic,
}
SEED = 1
CHARS_PER_TOKEN = 4
STEPS = 50
OPENINGS = 200
REPEATS = 5


class Timed:
    """Seconds of each step of a session."""

    def __init__(self) -> None:
        self.decide: list[float] = []
        self.observe: list[float] = []
        self.hashed: list[float] = []
        self.parsed: list[float] = []
        self.kib = 0.0

    def call(self, ident: Identifier, span: str, messages: bytes, answered: CallAnswered, now: float) -> None:
        """Time one call, and one pass of xxh3 over its messages."""
        opening = CallOpening(span=SpanId(span), tenant="", model="m", messages=messages)
        start = time.perf_counter()
        ident.decide(opening, now)
        decided = time.perf_counter()
        ident.observe(answered, answered.ended_at)
        observed = time.perf_counter()
        xxh3_128_digest(messages)
        hashed = time.perf_counter()
        msgspec.json.decode(messages)
        parsed = time.perf_counter()
        self.decide.append(decided - start)
        self.observe.append(observed - decided)
        self.hashed.append(hashed - observed)
        self.parsed.append(parsed - hashed)


def identifier() -> Identifier:
    """One with countable ids."""
    ids = itertools.count(1)
    return Identifier(lambda: f"{next(ids):032x}")


def replay(calls: Sequence[Replayed]) -> tuple[list[str], Identifier, Counter[str]]:
    """The session that each call was put into, in order; the identifier; and the evidence it went by."""
    events = [(c.shift + c.call.start, 1, n) for n, c in enumerate(calls)]
    events += [(c.shift + c.call.end, 0, n) for n, c in enumerate(calls)]
    ident, found, evidence = identifier(), [""] * len(calls), Counter[str]()
    for now, opens, n in sorted(events):
        call, span = calls[n].call, SpanId(f"{n:016x}")
        if opens:
            identity = ident.decide(CallOpening(span=span, tenant="", model="m", messages=call.messages), now)
            found[n] = identity.session
            evidence[identity.evidence] += 1
        else:
            ident.observe(CallAnswered(span=span, content=call.content, tool_calls=call.tool_calls, ended_at=now), now)
    return found, ident, evidence


def pairwise(truth: Sequence[int], found: Sequence[str]) -> tuple[float, float]:
    """Precision and recall over pairs of calls."""

    def pairs(counts: Counter[object]) -> int:
        return sum(n * (n - 1) // 2 for n in counts.values())

    both = pairs(Counter(zip(truth, found, strict=True)))
    return both / max(pairs(Counter(found)), 1), both / max(pairs(Counter(truth)), 1)


def halves(sessions: list[Session]) -> dict[str, list[Session]]:
    """Split by a fixed seed."""
    order = list(range(len(sessions)))
    random.Random(SEED).shuffle(order)
    tuned = set(order[: len(order) // 2])
    return {
        "tuned": [s for n, s in enumerate(sessions) if n in tuned],
        "held out": [s for n, s in enumerate(sessions) if n not in tuned],
        "all": sessions,
    }


def quality() -> None:
    """Print precision and recall of every set."""
    print(
        f"{'sessions of':<16} {'half':<9} {'sessions':>8} {'calls':>6} {'precision':>10} {'recall':>7}"
        f" {'no text':>8} {'twins':>6} {'KiB/session':>12}  evidence"
    )
    for name, load in SETS.items():
        for half, sessions in halves(load(SHARED / "data" / "workloads")).items():
            calls = interleave(sessions, SEED)
            found, ident, evidence = replay(calls)
            precision, recall = pairwise([c.truth for c in calls], found)
            kib = ident.bytes / len(sessions) / 1024
            told = ", ".join(f"{kind} {count}" for kind, count in evidence.most_common())
            print(
                f"{name:<16} {half:<9} {len(sessions):>8} {len(calls):>6} {precision:>10.4f} {recall:>7.4f}"
                f" {sum(mute(c.call) for c in calls):>8} {twins(calls):>6} {kib:>12.0f}  {told}"
            )


def mute(call: Recorded) -> bool:
    """Whether a call carries no text but, at most, a system message."""
    chat = json.loads(call.messages)
    return not any(m["content"] or m.get("tool_calls") for m in chat if m["role"] != "system")


def twins(calls: Sequence[Replayed]) -> int:
    """Calls with text whose request is byte for byte also one of another session."""
    owners: dict[bytes, set[int]] = {}
    for c in calls:
        owners.setdefault(c.call.messages, set()).add(c.truth)
    return sum(len(owners[c.call.messages]) > 1 and not mute(c.call) for c in calls)


def speed() -> None:
    """Print what a call costs in a history that grows, and one that opens a session."""
    loop = min(timeit.repeat("for _ in range(1000): pass", number=100, repeat=20)) * 1e4
    print(
        f"\nMicroseconds. An empty turn of a Python loop takes {loop:.0f} ns here; a fast build on a fast core, 5 ns."
    )
    print(
        f"{'':<24} {'decide':>8} {'median':>8} {'JSON':>8} {'hash':>8} {'observe':>8} {'ratio':>7} {'KiB/session':>12}"
    )
    for tokens in (5_000, 20_000, 80_000):
        report(f"{tokens // 1000}k tokens", [grown(tokens, moved=False, seed=seed) for seed in range(REPEATS)])
    report("20k tokens, moved mark", [grown(20_000, moved=True, seed=seed) for seed in range(REPEATS)])
    for size in (300, 27_000):
        report(f"opening, {size} B", [opened(size, seed) for seed in range(REPEATS)])


def report(label: str, runs: list[Timed]) -> None:
    """One line of `speed`."""
    half = len(runs[0].decide) // 2

    def best(series: list[list[float]]) -> float:
        return statistics.median(min(step) for step in zip(*(times[half:] for times in series), strict=True)) * 1e6

    decide, parsed = best([run.decide for run in runs]), best([run.parsed for run in runs])
    median = statistics.median(t for run in runs for t in run.decide[half:]) * 1e6
    print(
        f"{label:<24} {decide:>8.1f} {median:>8.1f} {parsed:>8.1f} {best([run.hashed for run in runs]):>8.1f}"
        f" {best([run.observe for run in runs]):>8.1f} {decide / parsed:>7.2f} {runs[0].kib:>12.1f}"
    )


def grown(tokens: int, *, moved: bool, seed: int) -> Timed:
    """An agent that calls a tool ``STEPS`` times; its last request has about so many tokens."""
    size, dice, ident = tokens * CHARS_PER_TOKEN, random.Random(seed), identifier()
    run = Timed()
    history: list[dict[str, object]] = [
        {"role": "system", "content": words(dice, size // 10)},
        {"role": "user", "content": words(dice, 200)},
    ]
    for step in range(STEPS):
        sent = [*history[:-1], {**history[-1], "cache_control": {"type": "ephemeral"}}] if moved else history
        issued = IssuedCall(f"call_{step}", "bash", json.dumps({"command": words(dice, 60)}))
        said = words(dice, 80)
        run.call(
            ident,
            f"{step}",
            encode(sent),
            CallAnswered(span=SpanId(f"{step}"), content=said, tool_calls=(issued,), ended_at=2.0 * step + 1),
            2.0 * step,
        )
        function = {"name": issued.name, "arguments": issued.arguments}
        asked: list[object] = [{"id": issued.id, "type": "function", "function": function}]
        brought = words(dice, max(size * 9 // 10 // STEPS - 400, 20))
        history.append({"role": "assistant", "content": said, "tool_calls": asked})
        history.append({"role": "tool", "tool_call_id": issued.id, "content": brought})
    run.kib = ident.bytes / 1024
    return run


def opened(size: int, seed: int) -> Timed:
    """Many sessions of one call each, all different."""
    dice, ident = random.Random(seed), identifier()
    run = Timed()
    for step in range(OPENINGS):
        chat = [
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": words(dice, size - 110)},
        ]
        answered = CallAnswered(span=SpanId(f"{step}"), content=words(dice, 400), ended_at=2.0 * step + 1)
        run.call(ident, f"{step}", encode(chat), answered, 2.0 * step)
    run.kib = ident.bytes / 1024 / OPENINGS
    return run


def words(dice: random.Random, size: int) -> str:
    """Prose of ``size`` characters: sentences of a dozen words, a few of them a line."""
    parts: list[str] = []
    left = size
    while left > 0:
        end = dice.choice((" ",) * 11 + (". ",)) if dice.random() < 0.97 else ".\n"
        parts.append("".join(dice.choices("etaoinshrdlu", k=dice.randint(2, 9))) + end)
        left -= len(parts[-1])
    return "".join(parts)[:size]


def encode(messages: object) -> bytes:
    """As the openai client writes it."""
    return json.dumps(messages, separators=(",", ":")).encode()


def main() -> int:
    """Both halves; quality only where the recordings are."""
    if (SHARED / "data" / "workloads").is_dir():
        quality()
    else:
        print(f"no recordings in {SHARED / 'data' / 'workloads'}: set HEADWAY_SHARED to measure precision and recall")
    speed()
    return 0


if __name__ == "__main__":
    sys.exit(main())
