"""Word documents (DOCX) to blocks; their places are headings. They become HTML first, so that there is one walk.

A DOCX has no pages until a program lays it out, each its own way; so its headings are what can be cited.
"""

import zipfile
from importlib import import_module
from io import BytesIO
from typing import Final

from headway.agents.knowledge.markup import read_html
from headway.agents.knowledge.text import Content, one_line
from headway.core.errors import BadInputError, MissingExtraError

MAX_UNPACKED: Final = 256 * 1024 * 1024
"""Bytes: a packed file of a few kilobytes can hold more than any memory."""
OLD_WORD: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How files of Word before 2007 begin, and those that Word has locked with a password."""


def read_docx(data: bytes) -> Content:
    """Read the text of a Word document with its headings, lists, tables and notes; pictures are passed over.

    Raises:
        BadInputError: it is empty, broken, locked with a password, or unpacks to more than `MAX_UNPACKED`.
    """
    try:
        mammoth = import_module("mammoth")  # optional, and without type stubs
    except ImportError as error:
        raise MissingExtraError("Reading DOCX", "knowledge") from error
    if not data:
        raise BadInputError("is empty (0 bytes).", fix="Fetch the file again.")
    if data.startswith(OLD_WORD):
        raise BadInputError(
            "is locked with a password, or in the format of Word before 2007.",
            fix="Save it as DOCX without a password.",
        )
    try:
        with zipfile.ZipFile(BytesIO(data)) as packed:
            unpacked = sum(entry.file_size for entry in packed.infolist())
        if unpacked <= MAX_UNPACKED:
            html: str = mammoth.convert_to_html(
                BytesIO(data), convert_image=_passed_over, include_embedded_style_map=False
            ).value
            return read_html(html.encode())
    except Exception as error:  # a broken file makes the parser raise anything: BadZipFile, KeyError, ExpatError …
        raise BadInputError(
            f"is not a DOCX that can be read ({type(error).__name__}: {one_line(str(error))[:120]}).",
            fix="Fetch it again, or save it anew from the program that made it.",
        ) from error
    raise BadInputError(f"unpacks to {unpacked} bytes; the limit is {MAX_UNPACKED}.", fix="Leave it out, or split it.")


def _passed_over(_picture: object) -> list[object]:
    return []
