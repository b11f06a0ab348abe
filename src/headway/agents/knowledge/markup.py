"""HTML, Markdown and plain text to blocks. Markdown is rendered to HTML first, so that there is one walk."""

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from headway.agents.knowledge.text import Block, Content, one_line
from headway.core.errors import BadInputError, MissingExtraError

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

UNREAD: Final = "script, style, nav, footer, template, noscript, svg, iframe"
"""What a page carries beside its text."""

INLINE: Final = frozenset(
    {
        *("a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "dfn", "del", "em", "font", "i", "ins", "kbd"),
        *("label", "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var"),
        *("wbr", "td", "th"),
    }
)
"""Elements that do not end a block. A row of a table is one block, so its cells are here."""

HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}


def read_html(data: bytes) -> Content:
    """Read a page; its places are the headings above each block."""
    try:
        from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise MissingExtraError("Reading HTML", "knowledge") from error
    tree = LexborHTMLParser(_decode(data))
    name = tree.css_first("head > title")
    for node in tree.css(UNREAD):
        node.decompose()
    return _walk(tree.body, one_line(name.text()) if name else "")


def read_markdown(data: bytes) -> Content:
    """Read Markdown (CommonMark with tables); its places are the headings above each block."""
    try:
        from markdown_it import MarkdownIt  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise MissingExtraError("Reading Markdown", "knowledge") from error
    return read_html(MarkdownIt("commonmark").enable("table").render(_decode(data)).encode())


def read_plain(data: bytes) -> Content:
    """Read plain text; blank lines part its blocks, and there are no places."""
    parts = (one_line(part) for part in _decode(data).replace("\r\n", "\n").split("\n\n"))
    return Content(title="", blocks=tuple(Block(part, "") for part in parts if part))


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInputError(
            f"is not UTF-8 text (byte {error.start} is 0x{data[error.start]:02x}).",
            fix="Convert it, for example: iconv -f WINDOWS-1252 -t UTF-8.",
        ) from error


def _walk(body: "LexborNode | None", title: str) -> Content:
    blocks: list[Block] = []
    headings: dict[int, str] = {}
    if body is not None:
        for owner, text in _runs(body):
            level = HEADINGS.get(owner.tag or "")
            if level is None:
                blocks.append(Block(f"- {text}" if owner.tag == "li" else text, _place(headings, title)))
                continue
            headings = {above: heading for above, heading in headings.items() if above < level} | {level: text}
            if level == 1 and not title:
                title = text
    return Content(title=title, blocks=tuple(blocks))


def _place(headings: dict[int, str], title: str) -> str:
    return " > ".join(heading for _, heading in sorted(headings.items()) if heading != title)


def _runs(body: "LexborNode") -> "list[tuple[LexborNode, str]]":
    """The page's text in order, cut wherever the block that it stands in changes.

    A loop and not a recursion: a page nested a million deep is only odd.
    """
    pieces: list[tuple[LexborNode, str]] = []
    for node in body.traverse(include_text=True):
        match node.tag:
            case "-text":
                pieces.append((_owner(node), node.text_content or ""))
            case "br":
                pieces.append((_owner(node), " "))
            case "td" | "th":
                pieces.append((_owner(node), " | "))
            case _:
                pass
    cuts = [0, *(at for at, (left, right) in enumerate(pairwise(pieces), 1) if left[0] != right[0]), len(pieces)]
    runs = ((pieces[start][0], pieces[start:end]) for start, end in pairwise(cuts) if start < end)
    joined = ((owner, one_line("".join(text for _, text in run)).removeprefix("| ")) for owner, run in runs)
    return [(owner, text) for owner, text in joined if text.strip("| ")]


def _owner(node: "LexborNode") -> "LexborNode":
    owner = node.parent
    while owner is not None and owner.tag in INLINE and owner.parent is not None:
        owner = owner.parent
    return owner or node
