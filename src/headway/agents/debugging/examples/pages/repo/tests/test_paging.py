from paging import page, pages


def test_full_pages() -> None:
    assert pages(6, 3) == 2


def test_second_page() -> None:
    assert page(["a", "b", "c", "d"], 2, 3) == ["d"]
