from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.agents.knowledge import bundled_documents
from headway.agents.knowledge.calibration import KEPT, Point, Tried, choose, curve, point, recall, tried
from headway.agents.knowledge.documents import find_files
from headway.agents.knowledge.questions import (
    Kind,
    Question,
    bundled_questions,
    halves,
    korean_documents,
    read_questions,
)
from headway.agents.knowledge.retrieval.index import Index
from headway.core.errors import BadInputError, NotFoundError


def one(kind: Kind, support: float, rank: int | None = None) -> Tried:
    found = 1 if kind == "answered" and rank is None else rank or None
    return Tried(question=Question(question="?", kind=kind, language="en"), support=support, rank=found)


SET = (
    *(one("answered", support, rank) for support, rank in ((0.9, 1), (0.8, 3), (0.7, 2), (0.6, 2))),
    one("answered", 0.1, 0),
    *(one("far", support) for support in (0.3, 0.65)),
    one("near", 0.75),
)


def test_a_threshold_is_told_by_what_it_lets_through_and_what_it_refuses() -> None:
    assert point(SET, 0.7) == Point(threshold=0.7, kept=0.75, refused_far=1.0, refused_near=0.0)
    assert point(SET[:1], 0.95) == Point(threshold=0.95, kept=0.0, refused_far=None, refused_near=None)


def test_the_curve_goes_from_refusing_nothing_to_refusing_nearly_all() -> None:
    points = curve(SET, steps=4)
    assert [round(p.threshold, 2) for p in points] == [0.1, 0.37, 0.63, 0.9]
    assert (points[0].kept, points[0].refused_far) == (1.0, 0.0)
    assert (points[-1].kept, points[-1].refused_far, points[-1].refused_near) == (0.25, 1.0, 1.0)


def test_recall_counts_only_what_is_answered() -> None:
    assert (recall(SET, 1), recall(SET, 2), recall(SET, 3)) == (0.2, 0.6, 0.8)
    assert recall(SET[5:], 5) is None


def test_the_chosen_threshold_lies_below_the_last_that_has_to_be_kept() -> None:
    assert choose(SET) == pytest.approx((0.6 + 0.3) / 2)  # of four that are found none may be lost
    with pytest.raises(BadInputError, match="Of no question"):
        choose(SET[4:])


SUPPORTS = st.lists(st.tuples(st.sampled_from(["answered", "near", "far"]), st.floats(0, 1)), min_size=1, max_size=60)


@given(SUPPORTS)
def test_the_chosen_threshold_keeps_what_it_promises(supports: list[tuple[Kind, float]]) -> None:
    done = [one("answered", 0.5), *(one(kind, support) for kind, support in supports)]
    kept = point(done, choose(done)).kept
    assert kept is not None
    assert kept >= KEPT


@given(SUPPORTS)
def test_a_higher_threshold_never_lets_more_through(supports: list[tuple[Kind, float]]) -> None:
    done = [one("answered", 0.5), *(one(kind, support) for kind, support in supports)]
    assert all((low.kept or 0) >= (high.kept or 0) for low, high in pairwise(curve(done)))


async def test_questions_are_searched_for_and_their_answers_looked_for(ferry_index: Index) -> None:
    questions = (
        Question(
            question="What was in the propeller?", kind="answered", language="en", document="ferry.md", words="a rope"
        ),
        Question(question="What is the moon?", kind="far", language="en"),
    )
    rope, moon = await tried(questions, ferry_index)
    assert (rope.rank, moon.rank) == (1, None)
    assert rope.support > moon.support


async def test_a_set_that_is_not_of_these_documents_is_refused(ferry_index: Index) -> None:
    question = Question(question="?", kind="answered", language="en", document="ferry.md", words="an anchor")
    with pytest.raises(BadInputError, match=r"No passage of ferry.md holds 'an anchor'"):
        await tried([question], ferry_index)


def test_the_shipped_questions_are_many_and_their_halves_alike() -> None:
    questions = bundled_questions()
    assert len(questions) >= 100
    assert len({question.question for question in questions}) == len(questions)
    one, two = halves(questions)
    assert set(one) | set(two) == set(questions)
    for language in ("en", "ko", "ko-en"):
        for kind in ("answered", "near", "far"):
            counts = [sum(q.kind == kind and q.language == language for q in half) for half in (one, two)]
            assert abs(counts[0] - counts[1]) <= 1


def test_each_shipped_answer_stands_in_the_shipped_documents() -> None:
    texts: dict[str, str] = {}
    for file in find_files([bundled_documents(), korean_documents()]):
        texts[Path(file.name).name] = "\n".join(block.text for block in file.read(file.load()).blocks)
    for question in bundled_questions():
        if question.kind == "answered":
            assert question.words in texts[question.document], question


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no json", "Line 2 of .* is no question"),
        ('{"question": "?", "kind": "maybe", "language": "en"}', "Line 2 of .* is no question"),
        ('{"question": "?", "kind": "answered", "language": "en"}', "Line 2 .* does not say where"),
    ],
)
def test_a_line_that_is_no_question_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(f'{{"question": "?", "kind": "far", "language": "en"}}\n{line}\n')
    with pytest.raises(BadInputError, match=message):
        read_questions(path)
    with pytest.raises(NotFoundError, match="cannot be read"):
        read_questions(tmp_path / "none")
