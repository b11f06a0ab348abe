"""Lines counted by hand; and, for any document, every key that is set has the line on which it was written."""

from hypothesis import given
from hypothesis import strategies as st

from headway.app.config.places import Key, Places

TEXT = '''# first
[gateway]
port = 8080
allow_hosts = [
    "a]",  # a bracket ] in a comment
    "b",
]
note = """
[not.a.table]
port = 1
"""

[[replicas]]
url = "http://one"

[[replicas]]
url = 'http://two'
models = ["m"]
limits.calls = 3

[tenants."team a".limits]
requests = 1
inline = { a = 1, b = 2 }
'''


def test_lines_as_counted_by_hand() -> None:
    places = Places(TEXT)
    expected: dict[Key, int] = {
        ("gateway",): 2,
        ("gateway", "port"): 3,
        ("gateway", "allow_hosts"): 4,
        ("gateway", "note"): 8,
        ("replicas", 0): 13,
        ("replicas", 0, "url"): 14,
        ("replicas", 1): 16,
        ("replicas", 1, "models"): 18,
        ("replicas", 1, "limits", "calls"): 19,
        ("tenants", "team a", "limits", "requests"): 22,
    }
    assert {key: places.line(key) for key in expected} == expected


def test_what_is_not_set_is_where_its_table_is() -> None:
    places = Places(TEXT)
    assert places.line(("replicas", 1, "id")) == 16
    assert places.line(("gateway", "allow_hosts", 1)) == 4
    assert places.line(("tenants", "team a", "limits", "inline", "b")) == 23
    assert places.line(("nowhere",)) is None
    assert places.line(()) is None


def test_a_table_within_the_last_of_an_array() -> None:
    places = Places("[[a]]\n[a.b]\nc = 1\n[[a]]\n[a.b]\nc = 2\n[[a.d]]\ne = 1\n")
    assert places.line(("a", 0, "b", "c")) == 3
    assert places.line(("a", 1, "b", "c")) == 6
    assert places.line(("a", 1, "d", 0, "e")) == 8


VALUES = st.sampled_from(
    [
        "1",
        '"x"',
        "'#'",
        '"a # ] b"',
        "[\n  1,\n  2 # ]\n]",
        "{ a = 1 }",
        '"""\nx = 1\n\\""" y"""',
        "'''\n[t]\n'''",
        "1979-05-27",
    ]
)


@given(st.lists(st.lists(VALUES, max_size=4), max_size=5))
def test_every_statement_of_any_document(tables: list[list[str]]) -> None:
    text, expected = "", dict[Key, int]()
    for number, values in enumerate(tables):
        expected[("t", number)] = text.count("\n") + 1
        text += "[[t]] # ]\n"
        for index, value in enumerate(values):
            expected[("t", number, f"k{index}")] = text.count("\n") + 1
            text += f"k{index} = {value}\n\n"
    places = Places(text)
    assert {key: places.line(key) for key in expected} == expected
