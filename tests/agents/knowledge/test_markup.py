import pytest

from headway.agents.knowledge.markup import read_html, read_markdown, read_plain
from headway.agents.knowledge.text import Block
from headway.core.errors import BadInputError


def test_html_keeps_headings_as_places_and_leaves_out_what_is_not_text() -> None:
    page = b"""<html><head><title>The  page</title><style>p {}</style></head><body><nav>menu</nav>
    <h1>The page</h1><p>One <b>bold</b>ly<br>cut.</p><h2>Part</h2><div>loose<p>inner</p>after</div>
    <h3>Sub</h3><ul><li>first</li><li>second <i>one</i></li></ul><h2>Other</h2><p>Last.</p>
    <script>evil()</script><footer>feet</footer></body></html>"""
    content = read_html(page)
    assert content.title == "The page"
    assert content.blocks == (
        Block("One boldly cut.", ""),
        Block("loose", "Part"),
        Block("inner", "Part"),
        Block("after", "Part"),
        Block("- first", "Part > Sub"),
        Block("- second one", "Part > Sub"),
        Block("Last.", "Other"),
    )


def test_a_table_row_is_one_block_with_its_cells_apart() -> None:
    content = read_html(b"<table><tr><th>Key</th><th>Lasts</th></tr><tr><td>label</td><td>180 days</td></tr></table>")
    assert [block.text for block in content.blocks] == ["Key | Lasts", "label | 180 days"]


def test_markdown_is_read_like_html() -> None:
    content = read_markdown(
        b"# Title\n\nText with `code`.\n\n## Deeper\n\n1. one\n2. two\n\n| a | b |\n|--|--|\n| c | d |\n"
    )
    assert content.title == "Title"
    assert content.blocks == (
        Block("Text with code.", ""),
        Block("- one", "Deeper"),
        Block("- two", "Deeper"),
        Block("a | b", "Deeper"),
        Block("c | d", "Deeper"),
    )


def test_a_page_without_title_is_called_by_its_first_heading() -> None:
    assert read_html(b"<h1>Name</h1><p>x</p><h1>Second</h1><p>y</p>").blocks == (Block("x", ""), Block("y", "Second"))


def test_plain_text_is_parted_by_blank_lines() -> None:
    assert [b.text for b in read_plain(b"\xef\xbb\xbfa\r\nb\r\n\r\nc\n\n\n").blocks] == ["a b", "c"]


@pytest.mark.parametrize("data", [b"", b"<html></html>", b"<!doctype html><body>  </body>", b"<script>x</script>"])
def test_a_page_without_text_has_no_blocks(data: bytes) -> None:
    assert read_html(data).blocks == ()


def test_text_that_is_not_utf8_is_refused_with_the_byte_and_a_way_out() -> None:
    with pytest.raises(BadInputError, match=r"not UTF-8 text \(byte 3 is 0xe9\).*iconv"):
        read_html(b"caf\xe9")


def test_a_deeply_nested_page_is_only_odd() -> None:
    depth = 5_000
    assert [b.text for b in read_html(b"<div>" * depth + b"deep" + b"</div>" * depth).blocks] == ["deep"]
