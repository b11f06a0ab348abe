import msgspec
import pytest
from importing import document

from headway.trace.sources.refusals import why_not


def why(data: bytes) -> str:
    return why_not(document(data).sample())


def json(**fields: object) -> bytes:
    return msgspec.json.encode(fields) + b"\n"


TAR = b"data/".ljust(257, b"\0") + b"ustar  \0" + b"\0" * 512


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,4808,10\n", "single requests by arrival"),
        (json(timestamp=0, input_length=3, output_length=1, hash_ids=[0]) * 2, "single requests by arrival"),
        (json(input_toks=3, output_toks=1, arrival_time_ns=5) * 2, "single requests by arrival"),
        (b"t,running,waiting\n1.0,4,0\n2.0,5,1\n", "time series of an engine's load"),
        (b",time_stats.all_reduce.min,rank\n0,0.03,0\n1,0.02,0\n", "profile of an engine's operations"),
        (b"model,isl,osl,ttft_ms,tpot_ms\nm,512,32,12.0,6.2\n", "no request was recorded"),
        (b"name,age\nada,36\n", "a table with the columns name, age"),
        (b"Metric   vLLM  Sim\nTTFT Mean 3 4\nTTFT P99 9 8\nTPOT Mean 1 1\n", "summary of a load test"),
        (json(engine_kwargs={}, num_requests=3), "describes a load test"),
        (json(num_nodes=1, nodes=[]), "configuration of a cluster"),
        (json(request_id="a", queued_ts=1, first_token_ts=2, last_token_ts=3) * 2, "each timed by its engine"),
        (json(benchmark="b", task_id="1", expected_score=1.0), "what score is expected"),
        (json(session_id="s", success=True, score=1, steps=3, details={}), "the steps themselves are missing"),
        (json(task="t", context={}, actions=[]), "what was done is missing"),
        (json(messages_display="user: hi") * 2, "flattened to one text"),
        (json(agentType="Explore"), "what kind of sub-agent"),
        (json(display="hi", pastedContents={}, timestamp=1, project="p") * 2, "the answers are missing"),
        (json(session_id="s", ts=1, text="hi") * 2, "the answers are missing"),
        (json(sessionId="s", messageId=0, type="user", message="hi") * 2, "the answers are missing"),
        (b"   Apache License\n   Version 2.0, January 2004\n", "text of a licence"),
        (b"# Dataset License\n\nCreative Commons Attribution 4.0\n", "text of a licence"),
        (b"X\nThis product includes software developed at Y.\n", "legal notice"),
        (b"# Notes\n\nSome words, and more.\n", "for people to read"),
        (b"Some words, and\nmore, of them, here.\n", "plain text"),
        (TAR, "tar archive"),
        (b"PAR1\x00\x01", "Parquet file"),
        (b"SQLite format 3\x00", "SQLite database"),
        (b"\x00\x01\xff\xfe", "neither JSON nor OTLP"),
        (b"a" * (32 * 1024 - 1) + "é€".encode() * 4, "plain text"),  # the part that is looked at ends within a letter
        (b'{"a": 1, "b', "cut off or damaged"),
        (b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested too deeply"),
        (b'{"a": "' + b"x" * 100_000 + b'", "b": ' + b"[" * 200_000, "nested too deeply"),
        (b"[]\n[]\n", "holds no JSON object"),
        (b"null\n", "JSON, but no more than null"),
        (b"true", "JSON, but no more than true or false"),
        (b" 17.5 \n", "JSON, but no more than a number"),
        (b'"some words"\n', "JSON, but no more than a text"),
        (b"null and void\n", "plain text"),
        (json(left=1, right=2), "has the keys left, right"),
    ],
)
def test_a_sentence_says_what_it_is_or_what_is_missing(data: bytes, said: str) -> None:
    sentence = why(data)
    assert said in sentence
    assert sentence.endswith(".")
    assert sentence.count(". ") == 0
