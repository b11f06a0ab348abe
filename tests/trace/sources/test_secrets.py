"""What looks like a key is not repeated; what only sounds like one is."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from importing import take

from headway.trace.sources.secrets import MASK, masked
from headway.trace.sources.session.draft import first_words

KEY = "AbC1dEf2GhI3jKl4"
CAPITALS = "IOSFODNN7EXAMPLE"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (f"use sk-ant-api03-{KEY} please", "use *** please"),
        (f"sk-proj-{KEY}", "***"),
        (f"my key is sk-{KEY}.", "my key is ***."),
        (f"AKIA{CAPITALS} is mine", "*** is mine"),
        (f"clone with ghp_{KEY}", "clone with ***"),
        (f"github_pat_{KEY}", "***"),
        (f"xoxb-{KEY}, hf_{KEY}, glpat-{KEY}", "***, ***, ***"),
        (f"AIza{KEY}", "***"),
        (f"eyJ{KEY}.eyJ{KEY}.{KEY}", "***"),
        (f"Authorization: Bearer {KEY}", "Authorization: Bearer ***"),
        (f"curl -H 'authorization: basic {KEY}=='", "curl -H 'authorization: basic ***'"),
        ("password=hunter2 and go", "password=*** and go"),
        ("Passwort? password: hunter2", "Passwort? password: ***"),
        ("use my password is hunter2secret now", "use my password is *** now"),
        ('{"api_key": "a b c", "x": 1}', '{"api_key": ***, "x": 1}'),
        ("export OPENAI_API_KEY=abc", "export OPENAI_API_KEY=***"),
        ("postgres://me:hunter2@db/x", "postgres://me:***@db/x"),
        ("-----BEGIN RSA PRIVATE KEY----- MIIE abc", "-----BEGIN RSA PRIVATE KEY-----***"),
    ],
)
def test_keys_of_known_kinds_are_masked(typed: str, told: str) -> None:
    assert masked(typed) == told
    assert first_words(typed) == told


@pytest.mark.parametrize(
    "typed",
    [
        "Fix the sk-learn pipeline in ask-me, a task-force and risk_assessment_model",
        "what does a token do, and what is a password?",
        "Describe how bearer authentication works",
        "why is the token is invalid said, and what if the password is wrong 3 times?",
        "asia and ghp_ and hf_ and eyJ",
        "see https://example.org:8080/path",
    ],
)
def test_words_that_only_sound_like_keys_are_kept(typed: str) -> None:
    assert masked(typed) == typed


def test_a_key_that_the_cut_goes_through_is_masked_whole() -> None:
    words = first_words("x" * 70 + f" ghp_{KEY}")
    assert words == "x" * 70 + " ***"


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_title_holds_a_key_wherever_it_stood(before: str, after: str) -> None:
    words = first_words(f"{before} sk-ant-{KEY} {after}")
    assert words is None or (f"sk-ant-{KEY[:4]}" not in words and len(words) <= 80)


def test_an_imported_task_does_not_repeat_the_key_in_its_prompt(tmp_path: Path) -> None:
    rows = [
        {"type": "user", "uuid": "a", "sessionId": "s", "timestamp": "2026-01-01T00:00:00Z",
         "message": {"role": "user", "content": f"deploy with ghp_{KEY}"}},
        {"type": "assistant", "uuid": "b", "parentUuid": "a", "sessionId": "s", "timestamp": "2026-01-01T00:00:04Z",
         "message": {"id": "m", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "done"}]}},
    ]  # fmt: skip
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (task,), _ = take(tmp_path / "s.jsonl")
    assert task.title == f"deploy with {MASK}"
    assert KEY not in repr(task)
