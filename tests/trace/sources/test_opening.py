import gzip
import io
import os
import sys
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from headway.core.errors import BadInputError, NotFoundError
from headway.trace.sources import copies
from headway.trace.sources import opening as module
from headway.trace.sources.opening import Opening
from headway.trace.sources.skips import Skips


def opened(tmp_path: Path, *names: Path | str) -> tuple[dict[str, bytes], Skips]:
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    skips = Skips()
    documents = list(Opening(scratch, skips).documents([str(name) for name in names]))
    return {made.name: b"".join(record.data for record in made.records(Skips())) for made in documents}, skips


def test_a_folder_is_read_whole_in_order_without_what_is_hidden(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    for name in ("b.jsonl", "a/deep.json", ".git/config", ".hidden"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b'{"a":1}')
    found, skips = opened(tmp_path, folder)
    assert list(found) == [str(folder / "a/deep.json"), str(folder / "b.jsonl")]
    (skip,) = skips.all()
    assert (skip.reason.split(":")[0], skip.count) == ("a hidden file", 2)


def test_an_archive_is_read_whole_and_tells_what_is_hidden_in_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        for name in ("../up.json", "a/../b.json", ".x.json", ".h/x.json"):
            archive.writestr(name, b'{"a":1}')
    found, skips = opened(tmp_path, tmp_path / "t.zip")
    assert list(found) == [f"{tmp_path}/t.zip/../up.json", f"{tmp_path}/t.zip/a/../b.json"]
    assert [(skip.count, skip.first) for skip in skips.all()] == [(2, f"{tmp_path}/t.zip/.x.json")]


def test_the_same_file_under_two_names_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(b'{"a":1}')
    found, _ = opened(tmp_path, tmp_path / "t.json", f"{tmp_path}/*.json")
    assert len(found) == 1


def test_a_name_that_means_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"nothing\.json"):
        opened(tmp_path, tmp_path / "nothing.json")
    with pytest.raises(NotFoundError, match=r"\*\.zip"):
        opened(tmp_path, f"{tmp_path}/*.zip")


def test_gzip_and_zip_and_gzip_in_zip_are_unpacked(tmp_path: Path) -> None:
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(b'{"a":1}'))
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("one.json", b'{"a":2}')
        archive.writestr("two.gz", gzip.compress(b'{"a":3}'))
        archive.writestr("__MACOSX/x", b"no")
    found, skips = opened(tmp_path, tmp_path / "t.json.gz", tmp_path / "t.zip")
    assert list(found.values()) == [b'{"a":1}', b'{"a":2}', b'{"a":3}']
    assert f"{tmp_path}/t.zip/two.gz" in found
    assert not skips


def test_a_bomb_does_not_go_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FREE_BYTES", 1024**2)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", b"0" * 30_000_000)
        archive.writestr("good.json", b'{"a":1}')
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"0" * 30_000_000))
    found, skips = opened(tmp_path, tmp_path / "bomb.zip", tmp_path / "bomb.gz")
    assert list(found.values()) == [b'{"a":1}']
    assert skips.all()[0].count == 2
    assert "far more" in skips.all()[0].reason
    assert sum(copy.stat().st_size for copy in (tmp_path / "scratch").iterdir()) < 2_000_000


def test_all_that_is_packed_shares_one_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNPACKED", 2_500_000)
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for i in range(5):
            archive.writestr(f"{i}.json", b'{"a":' + b"1" * 1_000_000 + b"}")
    found, skips = opened(tmp_path, tmp_path / "many.zip")
    assert len(found) == 2
    assert skips.all()[0].count == 3


def test_archives_in_archives_end(tmp_path: Path) -> None:
    inner = b'{"a":1}'
    for _ in range(4):
        inner = gzip.compress(inner)
    (tmp_path / "deep.gz").write_bytes(inner)
    found, skips = opened(tmp_path, tmp_path / "deep.gz")
    assert not found
    assert "times over" in skips.all()[0].reason


def test_damage_is_told_and_what_came_before_it_is_read(tmp_path: Path) -> None:
    lines = b"".join(b'{"a":%d}\n' % i for i in range(20_000))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(lines)[:-4000])
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04 nonsense")
    (tmp_path / "empty.json").write_bytes(b"")
    found, skips = opened(tmp_path, tmp_path / "cut.gz", tmp_path / "bad.zip", tmp_path / "empty.json")
    assert lines.startswith(found[str(tmp_path / "cut.gz")])
    assert len(found) == 1
    assert len(skips.all()) == 3


def test_standard_input_may_be_packed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b'{"a":1}'))))
    found, _ = opened(tmp_path, "-")
    assert found == {"stdin": b'{"a":1}'}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_told(tmp_path: Path) -> None:
    locked = tmp_path / "locked.json"
    locked.write_bytes(b"{}")
    locked.chmod(0)
    with pytest.raises(BadInputError, match="permissions"):
        opened(tmp_path, locked)


def test_a_device_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="not a regular file"):
        opened(tmp_path, "/dev/zero")


def test_little_things_in_an_archive_are_kept_in_memory_and_need_no_files(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(1000):
            archive.writestr(f"{number}.json", f'{{"a":{number}}}')
        archive.writestr("large.json", '{"a":"' + "x" * copies.LITTLE + '"}')
    found, skips = opened(tmp_path, tmp_path / "many.zip")
    assert list(found.values())[:1000] == [f'{{"a":{number}}}'.encode() for number in range(1000)]
    assert len(found) == 1001
    assert not skips
    assert [path.stat().st_size for path in (tmp_path / "scratch").iterdir()] == [copies.LITTLE + 8]


def test_memory_is_bounded_however_many_little_things_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "MEMORY", 100)
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(10, 30):
            archive.writestr(f"{number}.json", f'{{"a":{number}}}')  # 8 bytes
    found, _ = opened(tmp_path, tmp_path / "many.zip")
    assert len(found) == 20
    assert len(list((tmp_path / "scratch").iterdir())) == 8, "12 of them fill 96 bytes"


def test_nothing_is_left_of_what_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FREE_BYTES", 1024**2)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros.json", b"0" * 20_000_000)
    found, _ = opened(tmp_path, tmp_path / "bomb.zip")
    assert not found
    assert not list((tmp_path / "scratch").iterdir())


def test_a_bomb_takes_no_memory(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("zeros.json", bytes(100 * 1024**2))
    tracemalloc.start()
    try:
        found, skips = opened(tmp_path, tmp_path / "bomb.zip")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not found
    assert [skip.reason for skip in skips.all()] == ["unpacks to far more than a trace would"]
    assert peak < 8 * 1024**2
