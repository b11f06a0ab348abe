"""HTML pages in tests: read back, their tags counted and their nesting proven."""

from html.parser import HTMLParser

VOID = {"meta", "br", "rect", "path", "circle", "line", "input"}
EVIL = "\"><script>alert('x')</script><img src=x onerror=alert(1)>{{ 7*7 }}"
"""What a stranger may choose as a name."""


class Page(HTMLParser):
    """Every element with its attributes, all text, and proof that the tags nest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] != "style":
            self.text += data

    def all(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        return [a for t, a in self.elements if t == tag and all(a.get(k) == v for k, v in attributes.items())]
