"""The cache had forgotten the conversation while a person was waited for."""

from collections.abc import Iterable
from typing import Final

from headway.trace.findings.cache import KEPT, Missed, dearer, saving
from headway.trace.findings.case import Case
from headway.trace.findings.figures import seconds, share
from headway.trace.findings.finding import Finding

LARGE: Final = 4096
"""Tokens computed anew; fewer are quickly read."""
HALF: Final = 0.5
"""Of the prompt: where the cache had more than that, it had not gone."""


def cache_forgotten(case: Case) -> Iterable[Finding]:
    """The task goes on from an earlier one of its session, but its first call finds little in the cache."""
    waited = case.study.tree.waited_before
    calls = [i for chat in case.chats for i in chat if not case.study.in_tool[i]]
    if waited is None or not calls or case.verdict.about("cache").quality == "unknown":
        return
    first = min(calls, key=case.study.tree.start.__getitem__)
    usage = case.call(first).usage
    if usage.input_tokens is None or usage.cache_read is None:
        return
    computed = usage.input_tokens - usage.cache_read
    if computed < LARGE or computed < HALF * usage.input_tokens:
        return
    missed = [Missed(first, usage.input_tokens, computed)]
    yield Finding(
        name="cache-forgotten",
        title=f"The cache had gone while a person was waited for ({seconds(waited)}): the first call computed"
        f" {computed:,} of its {usage.input_tokens:,} prompt tokens ({share(computed, usage.input_tokens)}).",
        seconds=saving(case, missed),
        cost=dearer(case, missed),
        tokens=computed,
        confidence="likely" if waited > KEPT else "possible",
        evidence=(
            (
                f"{case.span(first).name} read {usage.cache_read:,} tokens from the cache; the session's earlier tasks"
                " had read the conversation so far."
            ),
            f"Hosted caches keep a prefix for {seconds(KEPT)} unless they are asked to keep it longer."
            if waited > KEPT
            else f"The wait was shorter than the {seconds(KEPT)} for which hosted caches keep a prefix: another model,"
            " another replica or a rewritten history may be why.",
        ),
        check="Ask for something small within a minute of the last answer: if that first call is cached, it is the"
        " wait.",
        remedy="Ask the provider to keep the prefix longer (Anthropic: a time to live of one hour; OpenAI:"
        " prompt_cache_retention), or compact the history before it is left alone.",
        spans=case.ids([first]),
    )
