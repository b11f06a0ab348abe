"""How each phase is shown: its name, its mark, its colours, what it means. No mark needs its colour."""

from msgspec import Struct

from headway.trace.path import Phase


class Sign(Struct, frozen=True, kw_only=True):
    """One phase as a reader sees it."""

    label: str
    noun: str
    """As in "73 % of it decode"."""
    glyph: str
    letter: str
    """In place of the glyph where only ASCII can be printed."""
    style: str
    """A Rich style of the sixteen colours that every terminal theme defines."""
    meaning: str
    measured: str


SIGNS: dict[Phase, Sign] = {
    Phase.HOP: Sign(
        label="hop",
        noun="hops",
        glyph="─",
        letter="-",
        style="bright_black",
        meaning="between the parties: agent, network, gateway",
        measured="what neither a model call nor a tool accounts for; inside a call, from its arrival to its being sent "
        "on, and from the last token to the end",
    ),
    Phase.RETRY: Sign(
        label="failed attempts",
        noun="failed attempts",
        glyph="✕",
        letter="x",
        style="red",
        meaning="attempts at a call that failed, and the pauses after them",
        measured="from the first attempt at a call until the last one, whether the gateway made it again or its caller:"
        " a replica that hung up, or to which no connection was had, and the pause after that",
    ),
    Phase.QUEUE: Sign(
        label="queue",
        noun="queueing",
        glyph="░",
        letter="q",
        style="yellow",
        meaning="waiting for a free slot",
        measured="the gateway's own queue by its clock, plus TTFT less the prefill time that the engine reports; "
        "without the engine's timings its queueing is part of prefill",
    ),
    Phase.PREFILL: Sign(
        label="prefill",
        noun="prefill",
        glyph="▒",
        letter="p",
        style="cyan",
        meaning="reading the prompt, until the first token",
        measured="from the request sent to the engine to the first token received, less queueing that the engine tells",
    ),
    Phase.DECODE: Sign(
        label="decode",
        noun="decode",
        glyph="█",
        letter="d",
        style="blue",
        meaning="writing the answer: first token to last",
        measured="from the first token received to the last",
    ),
    Phase.MODEL: Sign(
        label="model, unsplit",
        noun="model time that cannot be split",
        glyph="▓",
        letter="m",
        style="magenta",
        meaning="a call whose first token was not timed, and the silence in which one broke off",
        measured="the whole call: no first token was timed and the engine told no timings, so it cannot be split; of a"
        " call that failed in mid-answer, from the last token to its end",
    ),
    Phase.TOOL: Sign(
        label="tool",
        noun="tools",
        glyph="▚",
        letter="t",
        style="green",
        meaning="tools at work",
        measured="the tool's own span where there is one, else the gap between the answer that asked for it and the "
        "request that brought its result",
    ),
    Phase.RETRIEVAL: Sign(
        label="retrieval",
        noun="retrieval",
        glyph="▞",
        letter="r",
        style="bright_green",
        meaning="looking things up",
        measured="the retrieval's own span",
    ),
    Phase.HUMAN: Sign(
        label="human",
        noun="waiting for a person",
        glyph="·",
        letter="h",
        style="bright_black",
        meaning="a person was waited for",
        measured="from the answer shown to the person's next message, while nothing else was done",
    ),
}
