"""Downloading a dataset: checked, whole or not at all, and continued where it was cut off.

A file is checked and put in its place only when it is complete. Pooch does both; what it does not
do is go on with a download that was cut off, so the transfer itself is done here.
"""

import shutil
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pooch
import requests

from optexp_jax.datasets.sources import Source

Progress = Callable[[int, int | None], None]
"""Told the bytes that are there and, if the server says so, all bytes."""

BLOCK_BYTES = 2**18
TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Downloaded:
    """What a download left on disk."""

    source: Source
    archive: Path
    folder: Path
    sha256: str
    verified: bool
    """Whether there was a checksum to compare with. If it had differed, this would not exist."""


def download(
    source: Source,
    to: str | Path,
    *,
    sha256: str | None = None,
    progress: Progress | None = None,
) -> Downloaded:
    """Download a dataset's archive to a folder, check it and unpack it there.

    A download that was cut off goes on. What is there already is checked and not fetched again.
    """
    target = Path(to)
    expected = sha256 or source.sha256
    archive = target / f"{source.name}.zip"
    downloader = ResumingDownloader(archive.with_name(archive.name + ".part"), progress)
    with _quiet_pooch():
        pooch.retrieve(
            source.url,
            known_hash=None if expected is None else f"sha256:{expected.lower()}",
            fname=archive.name,
            path=target,
            downloader=cast(Any, downloader),  # Pooch's type of it names other arguments.
        )
    found = pooch.file_hash(str(archive), alg="sha256")
    return Downloaded(source, archive, unpack(archive, source.folder), found, expected is not None)


@dataclass(frozen=True)
class ResumingDownloader:
    """Fetches a file over HTTP for Pooch, and goes on where an earlier attempt stopped.

    What has come lies in `partial`. Beside it lies the server's mark of the file's version: only
    the same version may be continued.
    """

    partial: Path
    progress: Progress | None = None

    def __call__(self, url: str, output_file: object, pooch: object) -> None:
        mark = self.partial.with_name(self.partial.name + ".version")
        headers = {"Accept-Encoding": "identity"}  # Otherwise byte counts would be of another file.
        if self.partial.exists() and mark.exists():
            headers["Range"] = f"bytes={self.partial.stat().st_size}-"
            headers["If-Range"] = mark.read_text(encoding="utf-8")
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_SECONDS) as answer:
            # Nothing is left to send if the last attempt ended just before this line.
            if answer.status_code != requests.codes.range_not_satisfiable:
                answer.raise_for_status()
                self._receive(answer, mark)
        shutil.move(self.partial, str(output_file))
        mark.unlink(missing_ok=True)

    def _receive(self, answer: requests.Response, mark: Path) -> None:
        """Write what comes, all of it or as far as it gets."""
        goes_on = answer.status_code == requests.codes.partial_content
        done = self.partial.stat().st_size if goes_on else 0
        length = answer.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        version = _version(answer)
        if version is None:
            mark.unlink(missing_ok=True)
        else:
            mark.write_text(version, encoding="utf-8")
        with self.partial.open("ab" if goes_on else "wb") as file:
            try:
                for block in answer.iter_content(BLOCK_BYTES):
                    file.write(block)
                    done += len(block)
                    if self.progress is not None:
                        self.progress(done, total)
            except requests.RequestException as error:
                raise ConnectionError(
                    f"The connection to {answer.url} broke after {done} of {total or 'unknown'} "
                    "bytes. Run the command again to go on."
                ) from error


@contextmanager
def _quiet_pooch() -> Generator[None]:
    """Pooch tells of every download on stderr, which is for progress and errors."""
    logger = pooch.get_logger()
    before = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(before)


def _version(answer: requests.Response) -> str | None:
    """What tells this version of the file from another. A weak mark, `W/...`, may not be used."""
    tag = answer.headers.get("ETag")
    if tag is not None and not tag.startswith("W/"):
        return tag
    return answer.headers.get("Last-Modified")


def unpack(archive: Path, folder: str) -> Path:
    """Unpack an archive's folder beside it, whole or not at all."""
    target = archive.parent / folder
    if target.exists():
        return target
    partial = archive.parent / f"{folder}.unpacking"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(partial)
    except zipfile.BadZipFile as error:
        raise ValueError(
            f"{archive} is not a ZIP archive ({error}). Remove it and download it again."
        ) from error
    if not (partial / folder).is_dir():
        found = ", ".join(sorted(path.name for path in partial.iterdir())) or "nothing"
        shutil.rmtree(partial)
        raise ValueError(f"{archive} has no folder {folder} in it, but {found}.")
    (partial / folder).rename(target)
    shutil.rmtree(partial)
    return target
