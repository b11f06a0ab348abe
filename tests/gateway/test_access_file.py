"""The file of keys and limits, opened by several processes at once."""

import subprocess
import sys
from pathlib import Path

from headway.gateway.access_file import AccessFile

_READ = "SELECT number FROM version"
_ELSEWHERE = f"""
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
print(db.execute("{_READ}").fetchone()[0])
db.close()
"""


def as_others_see_it(path: Path) -> int:
    """What another process reads, which then closes the file, as every command does."""
    done = subprocess.run([sys.executable, "-c", _ELSEWHERE, path], capture_output=True, check=True, text=True)  # noqa: S603 - this interpreter
    return int(done.stdout)


def test_what_is_written_after_another_process_has_left_is_seen_by_the_next(tmp_path: Path) -> None:
    """A gateway has the file open twice, for keys and for limits; commands come and go beside it."""
    path = tmp_path / "access.db"
    keys, limits = AccessFile(path), AccessFile(path)
    for number, file in enumerate((keys, limits, keys), 1):
        assert as_others_see_it(path) == number - 1
        with file.changing() as db:
            db.execute("UPDATE version SET number = ?", (number,))
        assert as_others_see_it(path) == number
    keys.close()
    limits.close()
    assert as_others_see_it(path) == 3


def test_it_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "access.db"
    AccessFile(path).close()
    assert path.stat().st_mode & 0o777 == 0o600
