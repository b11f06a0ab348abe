import zipfile
from pathlib import Path

import pytest

from headway.app.gathering import Gathering
from headway.app.report.quality import left_out
from headway.core.errors import NotFoundError
from headway.trace.prices import price_for


def test_the_first_refusals_are_named_and_all_are_counted(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(3000):
            archive.writestr(f"{number:04}.json", f'{{"hello":{number}}}')
        for number in range(5):
            archive.writestr(f"empty-{number}.json", "")
    gathering = Gathering([str(tmp_path / "many.zip")], price_for)
    with pytest.raises(NotFoundError) as raised:
        list(gathering.rows())
    said = f"{raised.value} {raised.value.fix}"
    assert all(f"many.zip/000{number}.json: " in said for number in range(3))
    assert "0003.json" not in said
    assert "3,000 files are in no known format." in said
    assert "empty-0.json: an empty file (5 in all)." in said
    assert gathering.intake is not None
    assert len(gathering.intake.refused) == 3000
    told = list(left_out(gathering.intake.skipped, gathering.intake.refused))
    assert told[0].startswith("Skipped 5: an empty file")
    assert told[-1] == "And 2,992 more files in no known format; --json lists all."
