"""The nearest question that agrees, within one setting only and bounded in bytes. Vectors lie in a plane, by hand."""

from math import cos, radians, sin

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import BadInputError
from headway.policy.cache.keys import CacheKey
from headway.policy.cache.nearest import Near, NearestQuestions, Vector
from headway.policy.cache.question import Question

HERE, THERE = CacheKey(b"here"), CacheKey(b"there")
A, B, C = CacheKey(b"a"), CacheKey(b"b"), CacheKey(b"c")


def at(degrees: float) -> Vector:
    return np.array([cos(radians(degrees)), sin(radians(degrees))], np.float32)


def test_the_nearest_within_the_threshold() -> None:
    nearest = NearestQuestions(0.9, 100_000)  # cos 25.8 degrees
    nearest.add(Question(HERE, "what is it"), at(0), A)
    nearest.add(Question(HERE, "what was it"), at(30), B)
    found = nearest.find(Question(HERE, "tell me what it is"), at(10))
    assert (found.key, found.similarity) == (A, pytest.approx(cos(radians(10)), abs=1e-6))
    far = nearest.find(Question(HERE, "tell me"), at(60))
    assert (far.key, far.similarity) == (None, pytest.approx(cos(radians(30)), abs=1e-6))


def test_a_guard_passes_over_the_nearest_and_says_so() -> None:
    nearest = NearestQuestions(0.9, 100_000)
    nearest.add(Question(HERE, "revenue in 2023"), at(1), A)
    nearest.add(Question(HERE, "earnings in 2024"), at(20), B)
    found = nearest.find(Question(HERE, "revenue in 2024"), at(0))
    assert (found.key, found.held_apart) == (B, "numbers")
    alone = nearest.find(Question(HERE, "revenue in 2025"), at(0))
    assert (alone.key, alone.held_apart) == (None, "numbers")


def test_another_setting_is_another_world() -> None:
    nearest = NearestQuestions(0.9, 100_000)
    nearest.add(Question(HERE, "what is it"), at(0), A)
    assert nearest.find(Question(THERE, "what is it"), at(0)) == Near(key=None, similarity=None)


def test_a_question_asked_again_is_kept_once_and_one_forgotten_is_gone() -> None:
    nearest = NearestQuestions(0.9, 100_000)
    nearest.add(Question(HERE, "what is it"), at(0), A)
    once = nearest.size
    nearest.add(Question(HERE, "what is it"), at(0), A)
    assert nearest.size == once
    nearest.forget(HERE, B)
    nearest.forget(THERE, A)
    nearest.forget(HERE, A)
    assert nearest.size == 0
    assert nearest.find(Question(HERE, "what is it"), at(0)).key is None


@pytest.mark.parametrize(("threshold", "limit"), [(0.0, 1), (1.1, 1), (float("nan"), 1), (0.9, 0)])
def test_arguments_out_of_range(threshold: float, limit: int) -> None:
    with pytest.raises(BadInputError):
        NearestQuestions(threshold, limit)


@given(st.lists(st.tuples(st.sampled_from([HERE, THERE]), st.sampled_from([A, B, C]), st.integers(0, 90)), max_size=30))
def test_it_never_outgrows_its_bound_and_finds_only_what_was_put_there(
    steps: list[tuple[CacheKey, CacheKey, int]],
) -> None:
    nearest, put = NearestQuestions(0.5, 4 * 1024 + 200), dict[CacheKey, set[CacheKey]]()
    for setting, key, degrees in steps:
        nearest.add(Question(setting, "what is it"), at(degrees), key)
        put.setdefault(setting, set()).add(key)
        assert nearest.size <= nearest.limit
        for one in (HERE, THERE):
            found = nearest.find(Question(one, "what is it"), at(degrees))
            assert found.key is None or found.key in put.get(one, set())
        assert nearest.find(Question(setting, "what is it"), at(degrees)).key is not None
