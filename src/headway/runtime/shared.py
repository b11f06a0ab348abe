"""What all runs of one task have in common."""

import asyncio
from collections.abc import MutableMapping
from typing import Literal

from msgspec import Struct

from headway.core.task import TaskId
from headway.runtime.memo import Memo
from headway.runtime.models import Models
from headway.runtime.progress import Feed
from headway.runtime.results import ResultCache
from headway.runtime.spans import Spans

Lane = Literal["interactive", "batch"]


class Shared(Struct, frozen=True, kw_only=True):
    """What all runs of one task have in common."""

    task: TaskId
    lane: Lane
    spans: Spans
    memo: Memo
    feed: Feed
    models: Models | None
    results: ResultCache
    """What tools gave that may be given again."""
    tenant: str
    """Whose task it is, as far as kept results are concerned."""
    gates: MutableMapping[object, asyncio.Semaphore]
    """By tool, those that bound how many calls of it are made at once."""
