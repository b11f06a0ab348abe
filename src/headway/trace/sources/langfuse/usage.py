"""Langfuse's counts and costs of one observation; its keys are anybody's, its input may or may not hold the cache's.

Langfuse means its keys to exclude each other (it adds up all that have ``input`` in their name), but many who write
them count cached tokens in ``input`` too. What the keys are called is in `_READ`, `_WRITTEN` and `_THOUGHT`.
"""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from headway.core.money import MicroUsd
from headway.core.usage import Usage
from headway.trace.sources.fields.completions import inclusive, micro_usd
from headway.trace.sources.fields.scalars import count, impossible, number
from headway.trace.sources.langfuse.rows import Observation

_INPUT: Final = ("input", "input_tokens", "prompt_tokens", "promptTokens")
_OUTPUT: Final = ("output", "output_tokens", "completion_tokens", "completionTokens")
_READ: Final = (
    "input_cached_tokens",
    "input_cache_read",
    "cache_read_input_tokens",
    "input_cache_read_tokens",
    "cache_read",
    "cached_tokens",
    "prompt_details.cache_read",
    "cached_content_token_count",
)
_WRITTEN: Final = (
    "input_cache_creation",
    "cache_creation_input_tokens",
    "input_cache_write_tokens",
    "input_cache_creation_tokens",
    "cache_creation",
    "cache_write",
    "prompt_details.cache_write",
)
_THOUGHT: Final = (
    "output_reasoning_tokens",
    "output_reasoning",
    "reasoning_tokens",
    "completion_details.reasoning",
    "reasoning",
)

Added = Literal["told", "assumed"]
"""Why cached tokens were added to the input: the counts fit no other way; or Langfuse means them so."""


class Counted(Struct, frozen=True):
    """Token counts, the input with what the cache gave and took."""

    usage: Usage
    added: Added | None = None
    """``None``: nothing had to be added."""


def counted(row: Observation) -> Counted:
    """The counts of an observation.

    Whether the input holds the cached tokens is told by the total where they differ: total = input + output, or
    total = input + cached + output. The latter is also what Langfuse makes of an input that held them already, which
    nothing in the row tells from one that did not.
    """
    details = _details(row)
    given, written = _named(details, _INPUT), _named(details, _OUTPUT)
    read, cached = _named(details, _READ), _named(details, _WRITTEN)
    if impossible([(name, details.get(name)) for name in (*_READ, *_WRITTEN)]):
        given = None  # whether it holds what the cache gave, and how much that was, cannot be told
    thought = _named(details, _THOUGHT)
    total = count(details.get("total"))
    held = (read or 0) + (cached or 0)
    usage = inclusive(given, _whole_output(written, thought, given, held, total), read, cached, thought)
    if not held or given is None or written is None or usage.input_tokens is None:
        return Counted(usage)
    if given < held:
        return Counted(usage, "told")
    if total is not None and total < given + written + held:
        return Counted(usage)
    plain = inclusive(given + held, usage.output_tokens, read, cached, thought)
    return Counted(plain, "assumed")


def impossible_counts(row: Observation) -> list[str]:
    """Names of the token counts of an observation that are given but cannot be."""
    details = _details(row)
    return impossible([(name, details.get(name)) for name in (*_INPUT, *_OUTPUT, *_READ, *_WRITTEN, *_THOUGHT)])


def impossible_costs(row: Observation) -> list[str]:
    """Names of the sums of money that are given but are no numbers."""
    told = {
        "providedCostDetails.total": (row.provided_cost_details or {}).get("total"),
        "costDetails.total": (row.cost_details or {}).get("total"),
        "calculatedTotalCost": row.calculated_total_cost,
    }
    return [name for name, value in told.items() if value not in (None, "") and number(value) is None]


def cost_of(row: Observation, *, trusted: bool) -> MicroUsd | None:
    """What the call cost: as its emitter told it; else as Langfuse reckoned it, if the counts it took are trusted."""
    provided = _number(row.provided_cost_details, "total")
    if provided is not None:
        return micro_usd(provided)
    if not trusted:
        return None
    reckoned = _number(row.cost_details, "total")
    return micro_usd(number(row.calculated_total_cost) or None if reckoned is None else reckoned)


def _whole_output(
    written: int | None, thought: int | None, given: int | None, held: int, total: int | None
) -> int | None:
    """The output with its reasoning, which stands apart where the total says so or where it is the greater."""
    if written is None or not thought:
        return written
    apart = thought > written or (total is not None and given is not None and total >= given + held + written + thought)
    return written + thought if apart else written


def _details(row: Observation) -> Mapping[str, object]:
    if not row.usage_details and row.usage is not None and row.usage.unit in {None, "TOKENS"}:
        return {"input": row.usage.input, "output": row.usage.output}
    return row.usage_details or {}


def _named(details: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    return next((found for name in names if (found := count(details.get(name))) is not None), None)


def _number(details: Mapping[str, object] | None, name: str) -> float | None:
    return None if details is None else number(details.get(name))
