"""Downloads, from a server in this process: checked, whole or not there, and continued."""

from dataclasses import replace
from pathlib import Path

import pytest
import requests
from helpers.download_server import Server, archive, server, sha256

from optexp_jax.datasets import download as downloads
from optexp_jax.datasets.download import download, unpack
from optexp_jax.datasets.sources import REGISTRATIONS, SOURCES, Source

__all__ = ["server"]  # a fixture


def source_at(server: Server) -> Source:
    return replace(SOURCES["broden1_224"], url=server.url)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_downloads_checks_and_unpacks(tmp_path: Path, server: Server):
    told: list[tuple[int, int | None]] = []
    found = download(
        source_at(server),
        tmp_path / "new" / "folder",
        sha256=sha256(server.content).upper(),
        progress=lambda done, total: told.append((done, total)),
    )
    assert found.verified
    assert found.sha256 == sha256(server.content)
    assert found.archive.read_bytes() == server.content
    assert (found.folder / "README.txt").read_text() == "hello"
    assert names_in(tmp_path / "new" / "folder") == ["broden1_224", "broden1_224.zip"]
    assert told[-1] == (len(server.content), len(server.content))


def test_without_a_checksum_it_is_computed(tmp_path: Path, server: Server):
    found = download(source_at(server), tmp_path)
    assert not found.verified
    assert found.sha256 == sha256(server.content)


def test_a_known_checksum_is_compared(tmp_path: Path, server: Server):
    known = replace(source_at(server), sha256=sha256(server.content))
    assert download(known, tmp_path).verified


def test_what_is_there_is_not_fetched_again(tmp_path: Path, server: Server):
    download(source_at(server), tmp_path)
    again = download(source_at(server), tmp_path, sha256=sha256(server.content))
    assert again.verified
    assert len(server.ranges) == 1


def test_a_wrong_checksum_leaves_nothing(tmp_path: Path, server: Server):
    with pytest.raises(ValueError, match="does not match the known hash"):
        download(source_at(server), tmp_path, sha256="0" * 64)
    assert names_in(tmp_path) == []


def test_a_file_that_was_changed_is_fetched_again(tmp_path: Path, server: Server):
    (tmp_path / "broden1_224.zip").write_bytes(b"something else")
    found = download(source_at(server), tmp_path, sha256=sha256(server.content))
    assert found.archive.read_bytes() == server.content


def test_goes_on_where_it_was_cut_off(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(downloads, "BLOCK_BYTES", 20)  # Whole blocks are kept.
    server.cut_after = 60
    with pytest.raises(ConnectionError, match=f"60 of {len(server.content)} bytes.*go on"):
        download(source_at(server), tmp_path)
    assert not (tmp_path / "broden1_224.zip").exists()
    with pytest.raises(ConnectionError, match=f"120 of {len(server.content)} bytes"):
        download(source_at(server), tmp_path)
    server.cut_after = None
    found = download(source_at(server), tmp_path, sha256=sha256(server.content))
    assert found.archive.read_bytes() == server.content
    assert server.ranges == [None, "bytes=60-", "bytes=120-"]
    assert names_in(tmp_path) == ["broden1_224", "broden1_224.zip"]


def test_another_version_is_not_appended(tmp_path: Path, server: Server):
    server.cut_after = 60
    with pytest.raises(ConnectionError):
        download(source_at(server), tmp_path)
    server.content, server.etag, server.cut_after = archive(name="x" * 300), '"version 2"', None
    found = download(source_at(server), tmp_path)
    assert found.archive.read_bytes() == server.content


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
def test_without_a_version_it_starts_again(tmp_path: Path, server: Server, etag: str | None):
    server.etag, server.cut_after = etag, 60
    with pytest.raises(ConnectionError):
        download(source_at(server), tmp_path)
    server.cut_after = None
    assert download(source_at(server), tmp_path).archive.read_bytes() == server.content
    assert server.ranges == [None, None]


def test_a_complete_part_is_taken(tmp_path: Path, server: Server):
    (tmp_path / "broden1_224.zip.part").write_bytes(server.content)
    (tmp_path / "broden1_224.zip.part.version").write_text(server.etag or "")
    found = download(source_at(server), tmp_path, sha256=sha256(server.content))
    assert found.archive.read_bytes() == server.content
    assert names_in(tmp_path) == ["broden1_224", "broden1_224.zip"]


def test_no_such_file(tmp_path: Path, server: Server):
    source = replace(source_at(server), url=server.url + ".gz")
    with pytest.raises(requests.HTTPError, match="404"):
        download(source, tmp_path)


def test_archives_of_other_kinds(tmp_path: Path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"<html>not here</html>")
    with pytest.raises(ValueError, match="not a ZIP archive"):
        unpack(path, "broden1_224")
    path.write_bytes(archive("other"))
    with pytest.raises(ValueError, match="no folder broden1_224 in it, but other"):
        unpack(path, "broden1_224")
    assert not (tmp_path / "broden1_224").exists()


def test_unpacking_that_was_interrupted_starts_again(tmp_path: Path):
    path = tmp_path / "a.zip"
    path.write_bytes(archive())
    (tmp_path / "broden1_224.unpacking" / "broden1_224").mkdir(parents=True)
    assert names_in(unpack(path, "broden1_224")) == ["README.txt", "index.csv"]
    assert names_in(tmp_path) == ["a.zip", "broden1_224"]


def test_sources():
    assert set(SOURCES) == {"broden1_224", "broden1_227"}
    for name, source in SOURCES.items():
        assert source.url.endswith(f"/{name}.zip")
    for registration in REGISTRATIONS.values():
        assert any("https://" in step for step in registration.steps)
        assert any(step.startswith("optexp data build") for step in registration.steps)
