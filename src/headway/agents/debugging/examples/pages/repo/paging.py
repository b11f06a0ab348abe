"""Lists of articles, page by page."""


def pages(articles: int, size: int) -> int:
    """How many pages there are."""
    return articles // size


def page(articles: list[str], number: int, size: int) -> list[str]:
    """The articles of a page; pages count from 1."""
    first = (number - 1) * size
    return articles[first : first + size]
