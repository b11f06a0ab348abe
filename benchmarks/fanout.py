"""A fan-out on the local engine: four questions about one long text at once, asked through `headway serve`.

    python benchmarks/fanout.py [--quick] [--rounds 5] [--words 1480] [--answer 24] [--threads N]

One engine of four slots, and before it three gateways: one without `[fanout]`; one whose calls follow the first as soon
as that begins to answer, as if the slots shared a cache; and one that primes llama.cpp's slots. Round after round each
has one fan-out over a text that is new, in another order each time. Described in benchmarks/README.md.
Needs the local model (`headway models pull`); without it, it says so and measures nothing.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import openai
from msgspec import Struct

from headway.core.errors import HeadwayError
from headway.gateway.engines import EmbeddedFleet, EngineSpec
from headway.gateway.models import find
from rig.build import compiler
from rig.machine import this_machine
from rig.processes import ChildFailedError, child, first_line
from rig.service import HEADWAY

BRANCHES = 4
SEED = 11
NOTHING, LEADER, PRIMED = "nothing", "leader only", "slots primed"
_LED = '[fanout]\ntokens = 100\nlongest = "10 min"'
"""By default nobody waits for less than 512 tokens, or longer than 30 s: a busy machine takes longer for a prompt."""
_FANOUT = {NOTHING: "", LEADER: _LED, PRIMED: _LED}
_KIND = {NOTHING: "llama.cpp", LEADER: "openai", PRIMED: "llama.cpp"}
_CONFIG = """
[gateway]
port = 0
admin = false
record = false

[[replicas]]
id = "engine"
url = "{url}"
models = ["embedded"]
kind = "{kind}"

{fanout}
"""
_WORDS = ("river", "stone", "apple", "cloud", "paper", "green", "seven", "light", "house", "north", "music", "table")


class Fan(Struct, frozen=True, kw_only=True):
    """One fan-out."""

    how: str
    seconds: float
    """From the first request sent to the last answer's end."""
    ttft: list[float]
    """Of each branch, in seconds."""
    computed: int
    """Tokens of prompts that the engine computed."""
    asked: int
    """Tokens of all prompts together."""


async def branch(client: openai.AsyncOpenAI, text: str, number: int, answer: int) -> tuple[float, int, int]:
    """Time to the first token, tokens computed, tokens of the prompt."""
    began = time.monotonic()
    messages: Any = [
        {"role": "system", "content": text},
        {"role": "user", "content": f"Question {number}: which word comes {number} words after the first one?"},
    ]
    first, timings = 0.0, dict[str, Any]()
    stream = await client.chat.completions.create(
        model="embedded",
        messages=messages,
        max_tokens=answer,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    async for event in stream:
        first = first or time.monotonic() - began
        timings = (event.model_extra or {}).get("timings") or timings
    return first, timings["prompt_n"], timings["prompt_n"] + timings["cache_n"]


async def fan(how: str, url: str, text: str, answer: int) -> Fan:
    """All branches, the first a moment before the rest, as a loop over branches sends them."""
    began = time.monotonic()
    async with openai.AsyncOpenAI(base_url=url, api_key="-", max_retries=0, timeout=600) as client:
        told = await asyncio.gather(*[branch(client, text, number, answer) for number in range(BRANCHES)])
    return Fan(
        how=how,
        seconds=time.monotonic() - began,
        ttft=[one[0] for one in told],
        computed=sum(one[1] for one in told),
        asked=sum(one[2] for one in told),
    )


def table(fans: Sequence[Fan]) -> str:
    """Medians, and how each compares with doing nothing, round by round."""
    base = [one.seconds for one in fans if one.how == NOTHING]
    lines = [f"{'':<14}{'all four, s':>22}{'TTFT p50, s':>13}{'computed':>10}{'of':>8}{'to nothing':>12}"]
    for how in _FANOUT:
        mine = [one for one in fans if one.how == how]
        seconds = sorted(one.seconds for one in mine)
        spread = f"{median(seconds):.2f} ({seconds[0]:.2f}..{seconds[-1]:.2f})"
        ratio = median(one.seconds / other for one, other in zip(mine, base, strict=True))
        lines.append(
            f"{how:<14}{spread:>22}{median(median(one.ttft) for one in mine):>13.2f}"
            f"{median(one.computed for one in mine):>10,.0f}{median(one.asked for one in mine):>8,.0f}{ratio:>11.2f}x"
        )
    return "\n".join(lines)


async def measure(options: argparse.Namespace, folder: Path) -> list[Fan]:
    """Fan-outs over texts that no two share, on one engine."""
    dice, fans = random.Random(SEED), list[Fan]()
    spec = EngineSpec(weights=find(None), slots=BRANCHES, context=4096, threads=options.threads)
    engines = EmbeddedFleet(spec, 1, lambda _replica, _healthy, _why: None)
    (replica,) = await engines.start()
    try:
        with ExitStack() as stack:
            urls = dict[str, str]()
            for how, fanout in _FANOUT.items():
                name = how.replace(" ", "-")
                config, log = folder / f"{name}.toml", folder / f"{name}.log"
                config.write_text(_CONFIG.format(url=replica.url, kind=_KIND[how], fanout=fanout))
                command = [str(HEADWAY), "serve", "--config", str(config), "--json"]
                process = stack.enter_context(child(command, None, log))
                urls[how] = json.loads(await asyncio.to_thread(first_line, process, log))["url"]
            order = list(_FANOUT)
            for number in range(options.rounds):
                for how in order:
                    text = " ".join(dice.choice(_WORDS) for _ in range(options.words))
                    fans.append(one := await fan(how, urls[how], text, options.answer))
                    print(
                        f"  round {number + 1}, {how}: {one.seconds:.2f} s, {one.computed:,} of {one.asked:,} tokens"
                        f" computed; load average {os.getloadavg()[0]:.1f}",
                        flush=True,
                    )
                order = dice.sample(order, len(order))
    finally:
        await engines.stop()
    return fans


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two rounds: about a minute and a half")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--words", type=int, default=1480, help="of the common text")
    parser.add_argument("--answer", type=int, default=24, help="tokens of each answer")
    parser.add_argument("--threads", type=int, default=None, help="of the engine; left out: as many as cores")
    options = parser.parse_args()
    options.rounds = 2 if options.quick else options.rounds
    try:
        find(None)
    except HeadwayError as error:
        print(f"fanout: skipped, there is no local model: {error}")
        return 0
    print(f"Fan-outs of {BRANCHES}. {this_machine(compiler()).line()}", flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="headway-bench-") as folder:
            fans = asyncio.run(measure(options, Path(folder)))
    except (ChildFailedError, HeadwayError, openai.APIError) as error:
        print(f"fanout: not measured: {error}", file=sys.stderr)
        return 1
    print(table(fans))
    return 0


if __name__ == "__main__":
    sys.exit(main())
