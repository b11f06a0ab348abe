from basket import total
from prices import reduced


def test_without_discount() -> None:
    assert total([(2, 300), (1, 50)]) == 650


def test_reduced() -> None:
    assert reduced(300, 10) == 270
