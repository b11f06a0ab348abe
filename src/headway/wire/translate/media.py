"""Images and files as OpenAI's dialects write them: a URL, or a data URL that holds the bytes."""

import re
from typing import Final

from headway.wire.translate.conversation import File, Image
from headway.wire.translate.fields import untranslatable

_DATA_URL: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,")
_PDF: Final = "application/pdf"


def image_of(url: str, detail: str | None) -> Image:
    """The image that ``url`` is or leads to."""
    match = _DATA_URL.match(url)
    if match is None:
        return Image(url=url, detail=detail)
    return Image(data=url[match.end() :], media_type=match[1] or "image/png", detail=detail)


def file_of(data: str, name: str | None, field: str) -> File:
    """The file in a data URL; where it is bare base64 it is taken for a PDF.

    Raises:
        BadInputError: ``data``, which is the request's ``field``, is another kind of URL.
    """
    match = _DATA_URL.match(data)
    if match is not None:
        return File(data[match.end() :], match[1] or _PDF, name)
    if ":" in data[:20]:
        raise untranslatable(field, "it is not base64, nor a data URL of that")
    return File(data, _PDF, name)
