"""A thing to be read: records out of a file, however long, broken or oddly encoded it is."""

import codecs
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from io import SEEK_CUR
from math import inf
from typing import BinaryIO, Final, Literal, cast

import msgspec
from msgspec import Struct

from headway.trace.sources.skips import Skips
from headway.wire.surrogates import whole_characters

MAX_RECORD: Final = 128 * 1024 * 1024
"""Bytes of the longest line, or of a whole document that is one JSON value. Decoded it may take ten times as much."""
_HEAD: Final = 1024 * 1024
_SAMPLED: Final = 20
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0e-\x1f]")
"""Bytes that no JSON text may hold."""
_UTF16: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}

Shape = Literal["lines", "json", "binary"]
"""JSON values one a line; one JSON value over several lines; anything else."""


class Record(Struct, frozen=True):
    """One JSON value, undecoded; or a whole binary document."""

    data: bytes
    where: str
    """``file:line``, for messages."""


class Sample(Struct, frozen=True, dict=True):
    """The beginning of a document, decoded: what a format is recognised by."""

    shape: Shape
    values: tuple[object, ...]
    """The first records that are JSON; where the whole document is one JSON value, that one."""
    head: bytes
    """The first bytes as they are."""
    deep: bool = False
    """Whether a record is nested too deeply to be decoded."""

    @cached_property
    def _objects(self) -> tuple[dict[str, object], ...]:
        """Found once: every source asks for them."""
        elements = (cast("list[object]", one) if isinstance(one, list) else [one] for one in self.values)
        found = (element for listed in elements for element in listed)
        return tuple(cast("dict[str, object]", one) for one in found if isinstance(one, dict))

    def objects(self) -> Iterator[dict[str, object]]:
        """Every record that is an object, and every element that is one where a record is an array."""
        return iter(self._objects)

    def first(self) -> dict[str, object]:
        """The first of the objects; empty when there is none."""
        return self._objects[0] if self._objects else {}


class Part(Struct, frozen=True, kw_only=True):
    """Whole lines of a document, or all of it: what another process can read. It can be pickled if ``open_`` can."""

    name: str
    open_: Callable[[], BinaryIO]
    start: int
    size: int
    """In bytes."""
    line: int | None
    """Number of its first line, from 1; ``None`` for all of a document, of whatever shape."""

    def document(self) -> "Document":
        """The part as a document with the lines' own numbers."""
        return Document(
            self.name, self.size, self.open_, part=None if self.line is None else (self.start, self.line - 1)
        )


class Document:
    """Bytes under a name.

    Args:
        name: for messages: a path, a path inside an archive, or ``stdin``.
        size: in bytes.
        open_: opens it from its beginning.
        heard: told the bytes of each record as it is read, for progress.
        part: where it is but ``size`` bytes of lines: the offset of the first, and how many come before it.
    """

    def __init__(
        self,
        name: str,
        size: int,
        open_: Callable[[], BinaryIO],
        heard: Callable[[int], None] = lambda _: None,
        *,
        part: tuple[int, int] | None = None,
    ) -> None:
        self.name = name
        self.size = size
        self._open = open_
        self._heard = heard
        self._part = part
        if part is not None:
            self._utf16, self.head, self.shape = None, b"", "lines"
            return
        with open_() as file:
            head = file.read(_HEAD)
        self._utf16 = next((name for mark, name in _UTF16.items() if head.startswith(mark)), None)
        self.head = self._text(head)
        self.shape: Shape = _shape(self.head)

    def sample(self) -> Sample:
        """Its beginning; the whole of it where it is one JSON value."""
        values: list[object] = []
        deep = False
        if self.shape != "binary":
            room = _HEAD
            for record in self._read(Skips()):
                room -= len(record.data)
                try:
                    values.append(msgspec.json.decode(record.data))
                except msgspec.DecodeError:
                    pass  # broken: whoever reads it counts it
                except RecursionError:
                    deep = True
                if room < 0 or len(values) == _SAMPLED:
                    break
        return Sample(
            shape=self.shape,
            values=tuple([one for one in values if one is not None]),
            head=self.head[: 64 * 1024],
            deep=deep,
        )

    def records(self, skips: Skips) -> Iterator[Record]:
        """Its records in order, blank lines left out; what is too long goes to ``skips``."""
        for record in self._read(skips):
            self._heard(len(record.data))
            yield record

    def parts(self, size: int) -> Iterator[Part]:
        """It in parts of about ``size`` bytes where it is lines, each line whole; else all of it."""
        if self.shape != "lines" or self._utf16 is not None or self.size <= size:
            yield Part(name=self.name, open_=self._open, start=0, size=self.size, line=None)
            return
        start, line = 0, 1
        with self._open() as file:
            while start < self.size:
                end, lines = _lines_on(file, start, size)
                yield Part(name=self.name, open_=self._open, start=start, size=end - start, line=line)
                start, line = end, line + lines

    @staticmethod
    def decode(record: Record) -> object | None:
        """The JSON value of a record, or ``None`` when it is broken."""
        try:
            return msgspec.json.decode(record.data)
        except (msgspec.DecodeError, RecursionError):
            return None

    def _read(self, skips: Skips) -> Iterator[Record]:
        if self.shape == "lines" and self._utf16 is None:
            yield from self._lines(skips)
            return
        with self._open() as file:
            data = file.read(MAX_RECORD + 1)
        if len(data) > MAX_RECORD:
            kind = "one JSON value" if self.shape == "json" else "one binary message"
            skips.add(f"larger than {MAX_RECORD >> 20} MiB as {kind}: export it as JSON lines, or in parts", self.name)
        elif self.shape == "lines":
            for number, line in enumerate(self._text(data).splitlines(), 1):
                if line.strip():
                    yield Record(line, f"{self.name}:{number}")
        elif data.strip():
            text = data if self.shape == "binary" else _readable(self._text(data))
            yield Record(text, self.name)

    def _lines(self, skips: Skips) -> Iterator[Record]:
        start, number, end = (0, 0, inf) if self._part is None else (*self._part, self._part[0] + self.size)
        with self._open() as file:
            file.seek(start)
            while file.tell() < end and (line := file.readline(MAX_RECORD)):
                number += 1
                where = f"{self.name}:{number}"
                if len(line) == MAX_RECORD and not line.endswith(b"\n"):
                    skips.add(f"line longer than {MAX_RECORD >> 20} MiB", where)
                    _pass_over_line(file)
                    continue
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                if not line.isspace():
                    yield Record(_readable(line), where)

    def _text(self, data: bytes) -> bytes:
        if self._utf16 is not None:
            return whole_characters(data[2:].decode(self._utf16, "replace").encode())
        return data.removeprefix(codecs.BOM_UTF8)


def _pass_over_line(file: BinaryIO) -> None:
    """To the beginning of the next line; by blocks, which takes a fraction of what looking for it in lines does."""
    while block := file.read(_HEAD):
        end = block.find(b"\n") + 1
        if end:
            file.seek(end - len(block), SEEK_CUR)
            return


def _lines_on(file: BinaryIO, start: int, size: int) -> tuple[int, int]:
    """The end of the line that lies ``size`` bytes on, or of the file, and how many lines end up to there."""
    file.seek(start)
    at, lines = start, 0
    while block := file.read(_HEAD):
        if at + len(block) >= start + size:
            found = block.find(b"\n", max(start + size - at - 1, 0))
            if found >= 0:
                return at + found + 1, lines + block.count(b"\n", 0, found + 1)
        lines += block.count(b"\n")
        at += len(block)
    return at, lines


def _readable(text: bytes) -> bytes:
    """The text, with what is no character in UTF-8, or half of one, replaced: it must not cost the whole line."""
    text = whole_characters(text)
    if text.isascii():
        return text
    try:
        text.decode()
    except UnicodeDecodeError:
        return text.decode(errors="replace").encode()
    return text


def _shape(head: bytes) -> Shape:
    text = head.lstrip()
    if text[:1] not in (b"{", b"[") or (head[:1] == b"\n" and _CONTROL.search(head, 0, 256)):
        return "binary"  # protobuf may begin with a newline and a brace: a tag, and a length of 123 or 91
    first, newline, rest = text.partition(b"\n")
    if not newline or not rest.strip():
        return "lines"  # one line: it is a record whatever it is
    try:
        msgspec.json.decode(first)
    except (msgspec.DecodeError, RecursionError):
        broken = first[:1] == b"{" and len(first.strip()) > 1 and rest.lstrip(b"\n\r")[:1] == b"{"
        return "lines" if broken else "json"  # a broken line before another, or the first of many of one value
    return "lines"
