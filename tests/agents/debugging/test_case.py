"""Which test runs prove that a bug is fixed, and which do not."""

from typing import Any

import msgspec
import pytest
from msgspec import structs

from headway.agents.debugging.case import Analysis, Fixed, NotProvenError, Patched, proven
from headway.agents.debugging.trial import Outcome, Trial

NEW, OLD, RED = "test_new.py::test_it", "test_old.py::test_it", "test_old.py::test_red"


def trial(outcomes: dict[str, Outcome], *, complete: bool = True) -> Trial:
    return Trial(
        command="pytest", outcomes=outcomes, failures={}, complete=complete, ended="it ended", output="", seconds=1
    )


PATCHED = Patched(
    name="bug",
    report="it breaks",
    analysis=Analysis("breaks", "works"),
    test_path="test_new.py",
    test="",
    shown=trial({NEW: "failed"}),
    before=trial({NEW: "failed", OLD: "passed", RED: "failed"}),
    cause="a slip",
    files=("a.py",),
    evidence="",
    explanation="mended",
    changed={"a.py": ""},
    patch="",
)
PASSES = trial({NEW: "passed"})
AFTER = trial({NEW: "passed", OLD: "passed", RED: "failed"})


def test_the_new_passes_and_what_passed_still_passes() -> None:
    fixed = proven(PATCHED, PASSES, AFTER)
    assert fixed.failing_still == (RED,)
    assert (fixed.shown, fixed.before, fixed.passes, fixed.after) == (PATCHED.shown, PATCHED.before, PASSES, AFTER)
    assert msgspec.json.decode(msgspec.json.encode(fixed), type=Fixed) == fixed


@pytest.mark.parametrize(
    ("earlier", "passes", "after"),
    [
        ({}, trial({NEW: "failed"}), AFTER),
        ({}, trial({NEW: "skipped"}), AFTER),
        ({}, trial({NEW: "error"}), AFTER),
        ({}, trial({}), AFTER),
        ({}, trial({NEW: "passed"}, complete=False), AFTER),
        ({}, PASSES, trial({NEW: "passed", OLD: "failed"})),
        ({}, PASSES, trial({NEW: "passed", OLD: "skipped"})),
        ({}, PASSES, trial({NEW: "passed"})),
        ({}, PASSES, trial({OLD: "passed"})),
        ({}, PASSES, trial({NEW: "passed", OLD: "passed"}, complete=False)),
        ({"before": trial({OLD: "passed"}, complete=False)}, PASSES, AFTER),
        ({"shown": trial({NEW: "passed"})}, PASSES, AFTER),
        ({"shown": trial({})}, PASSES, AFTER),
    ],
)
def test_anything_less_proves_nothing(earlier: dict[str, Any], passes: Trial, after: Trial) -> None:
    with pytest.raises(NotProvenError):
        proven(structs.replace(PATCHED, **earlier), passes, after)
