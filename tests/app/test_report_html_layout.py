"""What a browser makes of the pages; without one on this machine the tests are skipped."""

import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest
from msgspec.structs import replace
from sets import imported, studied

from headway.app.report.html import html_task
from headway.app.report.html_set import html_set
from headway.core.span import ModelCall
from headway.core.usage import Usage
from headway.trace.account import account_of
from headway.trace.sources.intake import Imported

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
MEASURE = """<script>document.title = [...document.querySelectorAll('.cards div')].filter(card =>
  [card, ...card.querySelectorAll('*')].some(part =>
    part.getBoundingClientRect().right > card.getBoundingClientRect().right || part.scrollWidth > part.clientWidth + 1
    && part.clientWidth)).map(card => card.innerText).join('; ') || 'all fit'</script>"""


def cut_tiles(page: str, folder: Path, width: int) -> str:
    """The texts of the tiles that something sticks out of. The page's own policy would not let a script run."""
    assert BROWSER is not None
    file = folder / "page.html"
    file.write_text(POLICY.sub("", page).replace("</body>", f"{MEASURE}</body>"))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}", "--dump-dom"]
    ran = subprocess.run(  # noqa: S603 - a browser on a page of our own
        [BROWSER, *flags, f"--window-size={width},800", file.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    title = re.search(r"<title>(.*?)</title>", ran.stdout, re.DOTALL)
    assert title is not None
    return unescape(title[1])


def half_told(one: Imported) -> Imported:
    """The same, with the usage of every second call unknown."""
    spans = [
        replace(span, work=replace(span.work, usage=Usage()))
        if isinstance(span.work, ModelCall) and i % 4 == 1
        else span
        for i, span in enumerate(one.spans)
    ]
    return replace(one, spans=tuple(spans))


@pytest.mark.skipif(BROWSER is None, reason="no browser here")
@pytest.mark.parametrize("width", [1200, 800, 500])
def test_nothing_sticks_out_of_a_tile(tmp_path: Path, width: int) -> None:
    # tasks of hundreds of thousands of seconds, too few to be sure of their quantiles
    tasks = [half_told(imported(number, 3, tools=123_456.0 * number)) for number in range(3)]
    study = studied(*tasks)
    assert cut_tiles(html_set(study.report(), [], [1.0]), tmp_path, width) == "all fit"
    one = tasks[2]
    assert cut_tiles(html_task(account_of(one.spans, one.verdict, one.title)), tmp_path, width) == "all fit"
