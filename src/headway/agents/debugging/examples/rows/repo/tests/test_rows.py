from rows import cells, table


def test_plain() -> None:
    assert cells("a,b\n") == ["a", "b"]


def test_table() -> None:
    assert table("name,age\nAna,41") == [{"name": "Ana", "age": "41"}]
