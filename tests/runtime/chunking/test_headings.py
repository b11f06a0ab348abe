from chunks import CHARACTERS, DOCUMENTS, MEASURES, check_chunks
from hypothesis import given
from hypothesis import strategies as st
from unhurried import UNHURRIED

from headway.runtime.chunking import Document, Measure, by_heading

GUIDE = """intro
# Install
get it
## Linux
apt
## Mac
brew
# Use
run it
run it
run it
run it
run it
"""
USE = "# Use\n" + "run it\n" * 5


@UNHURRIED
@given(DOCUMENTS, st.integers(300, 900), MEASURES)
def test_nothing_is_lost_and_no_budget_is_passed(documents: list[Document], budget: int, measure: Measure) -> None:
    chunks = by_heading(
        [Document(document.path, document.text[:3000]) for document in documents], budget, measure=measure
    )
    check_chunks(chunks, documents, budget, measure)


def places(text: str, budget: int) -> list[tuple[str, str]]:
    chunks = by_heading([Document("g", text)], budget, measure=CHARACTERS)
    return [(part.place, part.text) for chunk in chunks for part in chunk.parts]


def test_a_document_that_fits_is_whole() -> None:
    assert places(GUIDE, 200) == [("", GUIDE)]


def test_a_section_that_fits_with_all_below_it_is_not_cut() -> None:
    """With their headers the whole has 99 characters, Install 76 and Use 72."""
    assert places(GUIDE, 80) == [
        ("", "intro\n"),
        ("Install", "# Install\nget it\n## Linux\napt\n## Mac\nbrew\n"),
        ("Use", USE),
    ]


def test_what_is_below_a_section_that_does_not_fit_stands_under_its_name() -> None:
    assert places(GUIDE, 75) == [
        ("", "intro\n"),
        ("Install", "# Install\nget it\n"),
        ("Install > Linux", "## Linux\napt\n"),
        ("Install > Mac", "## Mac\nbrew\n"),
        ("Use", USE),
    ]


def test_each_part_names_its_headings_to_the_model() -> None:
    chunks = by_heading([Document("g", GUIDE)], 75, measure=CHARACTERS)
    assert "=== g, lines 4 to 5 (Install > Linux) ===\n## Linux\napt\n" in [chunk.text for chunk in chunks]


def headings(text: str) -> list[str]:
    """The places of a text of which nothing is packed: each line is as long as the budget holds."""
    chunks = by_heading([Document("g", text)], 1, measure=Measure(count=lambda t: t.count("§"), name="marks"))
    return [part.place for chunk in chunks for part in chunk.parts]


def test_what_is_a_heading() -> None:
    text = "".join(
        f"{heading}\n§\n"
        for heading in (
            "# One ##",
            "  ## Two",
            "Three\n===",
            "Four\n---",
            "#no heading",
            "    # code",
            "```\n# fenced\n```",
            "- item\n---",
            "| a |\n---",
            "\n---",
            "###",
            "~~~~\n# fenced\n~~~\n# still\n~~~~",
        )
    )
    # One, Two and Four are nested; Three is of the first level. Only what holds a mark is a part of its own.
    assert headings(text) == ["One", "One > Two", "Three", *["Three > Four"] * 7, *["Three > Four > "] * 2]


def test_front_matter_is_no_heading() -> None:
    assert headings("---\ntitle: x\n---\n§\n# A\n§\n") == ["", "A"]
    assert headings("---\ntitle: §\n§\n# A\n§\n") == ["", "", "A"]
