"""How long a folder of Claude Code sessions takes to be imported: 100 MB by default, made up, the same every time.

    python benchmarks/claude_folder.py [MEGABYTES]

Figure to reach: the whole of `headway explain` in at most 10 s for 100 MB, so at most 6 s for the import. Each session
has turns of 2 to 26 calls; an answer comes on several rows of a few kilobytes, with its usage on each; a tool's result
is kept twice, as the model saw it and as the program shows it; half of the sessions have a sub-agent's file as well.
The texts are cut from Python's own library, whose digits and names cost what those of real sessions do.
"""

import random
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID

import msgspec

from headway.trace.sources.intake import Intake

MEGABYTES = 100
BUDGET = 6.0
READS = {"Read": (1000, 18000), "Bash": (20, 6000), "Edit": (700, 701), "Grep": (800, 801), "Write": (80, 81)}
"""Tools and how many characters they give back."""
EPOCH = 1_780_000_000


class Maker:
    """Rows of one session after another, by seeded dice."""

    def __init__(self) -> None:
        self._dice = random.Random(1)
        library = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
        self._texts = [text for path in library[:200] if len(text := path.read_text(errors="replace")) > 20_000]
        self._rows: list[bytes] = []
        self._facts: dict[str, object] = {}
        self._at = 0.0

    def session(self, session: str, turns: int, agent: str | None = None) -> bytes:
        """A whole session, or a sub-agent's part of one, as JSON lines."""
        self._rows = []
        self._at = EPOCH + self._dice.randrange(1_000_000)
        self._facts = {"sessionId": session, "isSidechain": agent is not None, "cwd": "/work", "version": "2.1.157"}
        if agent is not None:
            self._facts["agentId"] = agent
        for _ in range(turns):
            self._row("user", 100.0, {"role": "user", "content": self._text(300)})
            for _ in range(self._dice.choice([1, 3, 6, 10, 25])):
                self._step()
            self._answer([{"type": "text", "text": self._text(800)}])
        return b"\n".join(self._rows) + b"\n"

    def id(self) -> str:
        """A new id."""
        return str(UUID(int=self._dice.getrandbits(128)))

    def _step(self) -> None:
        """An answer that asks for tools, and their results."""
        names = self._dice.choices(list(READS), k=self._dice.choice([1, 1, 1, 2, 3]))
        uses = [
            {"type": "tool_use", "id": f"toolu_{self.id()}", "name": name, "input": {"command": self._text(400)}}
            for name in names
        ]
        self._answer([{"type": "thinking", "thinking": "", "signature": "x" * 1000}, *uses])
        for use, name in zip(uses, names, strict=True):
            text = self._text(self._dice.randrange(*READS[name]))
            said = {"type": "tool_result", "tool_use_id": use["id"], "content": text, "is_error": False}
            self._row("user", 2.0, {"role": "user", "content": [said]}, toolUseResult={"stdout": text, "stderr": ""})

    def _answer(self, blocks: Sequence[Mapping[str, object]]) -> None:
        message = f"msg_{self.id()}"
        tokens = {"input_tokens": 2, "cache_read_input_tokens": 60_000, "cache_creation_input_tokens": 900}
        facts = {"id": message, "role": "assistant", "model": "claude-opus-4-8", "stop_reason": "tool_use"}
        for block in blocks:
            said = {**facts, "content": [block], "usage": {**tokens, "output_tokens": 900}}
            self._row("assistant", 3.0, said, requestId=f"req_{message}")

    def _row(self, kind: str, wait: float, message: object, **more: object) -> None:
        self._at += self._dice.random() * wait
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self._at)) + f".{int(self._at % 1 * 1000):03}Z"
        row = {"type": kind, "uuid": self.id(), "timestamp": stamp, "message": message, **more, **self._facts}
        self._rows.append(msgspec.json.encode(row))

    def _text(self, size: int) -> str:
        text = self._dice.choice(self._texts)
        start = self._dice.randrange(max(len(text) - size, 1))
        return text[start : start + size]


def make(folder: Path, size: int) -> None:
    """Fill a folder with sessions of ``size`` bytes together."""
    maker = Maker()
    made = 0
    while made < size:
        session = maker.id()
        files = {f"{session}.jsonl": maker.session(session, turns=8)}
        if maker.id() < "8":
            agent = maker.id()[:8]
            files[f"{session}/subagents/agent-{agent}.jsonl"] = maker.session(session, turns=1, agent=agent)
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            made += len(data)


def main() -> None:
    """Make the folder, import it, print what that took."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else MEGABYTES
    with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
        make(Path(scratch), megabytes * 1_000_000)
        intake = Intake([scratch])
        wall, busy = time.perf_counter(), time.process_time()
        tasks = spans = 0
        for task in intake.tasks():
            tasks, spans = tasks + 1, spans + len(task.spans)
        wall, busy = time.perf_counter() - wall, time.process_time() - busy
    read = intake.total_bytes / 1e6
    print(f"{read:,.0f} MB, {tasks:,} tasks, {spans:,} spans: {busy:.2f} s of CPU, {wall:.2f} s by the wall")
    each = busy / read * 100
    print(f"{each:.2f} s of CPU for 100 MB: {each / BUDGET:.0%} of the {BUDGET:.0f} s that it may take")


if __name__ == "__main__":
    main()
