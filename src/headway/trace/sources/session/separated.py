"""Records that are JSON one by one but not the file: each under a line such as ``===== record 0001 =====``."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from headway.trace.sources.document import Document, Record, Sample
from headway.trace.sources.skips import Skips

_RULE: Final = re.compile(rb"^=====[^\n]*=====[ \t]*\r?$", re.MULTILINE)
_LOOKED_AT: Final = 20


def objects(sample: Sample) -> Iterator[dict[str, object]]:
    """The first objects of a document, separated or not."""
    yield from sample.objects()
    if sample.shape == "binary":
        for chunk in _RULE.split(sample.head, _LOOKED_AT)[1:]:
            try:
                yield msgspec.json.decode(chunk, type=dict[str, object])
            except (msgspec.MsgspecError, RecursionError):
                continue


def records(document: Document, skips: Skips) -> Iterator[Record]:
    """The records of a document, separated or not."""
    for record in document.records(skips):
        if document.shape != "binary":
            yield record
            continue
        chunks = _RULE.split(record.data.decode(errors="replace").encode())
        for number, chunk in enumerate(chunks[1:], 1):
            if chunk.strip():
                yield Record(chunk, f"{record.where}, record {number}")
