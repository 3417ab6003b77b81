"""A server of downloads in this process."""

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


def archive(folder: str = "broden1_224", **files: str) -> bytes:
    """A ZIP archive with a folder in it."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as opened:
        for name, text in (files or {"index.csv": "image,split\n", "README.txt": "hello"}).items():
            opened.writestr(f"{folder}/{name}", text)
    return content.getvalue()


@dataclass
class Server:
    """What it sends, and what it was asked."""

    content: bytes
    etag: str | None = '"version 1"'
    cut_after: int | None = None
    """Break the connection after so many bytes of an answer."""
    ranges: list[str | None] = field(default_factory=list)
    url: str = ""

    def handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = self.headers.get("Range")
                server.ranges.append(asked)
                if self.path != "/archive.zip":
                    self.send_error(404)
                    return
                start = 0
                if asked is not None and self.headers.get("If-Range") == server.etag:
                    start = int(asked.removeprefix("bytes=").removesuffix("-"))
                if start >= len(server.content):
                    self.send_error(416)
                    return
                body = server.content[start:]
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(body)))
                if server.etag is not None:
                    self.send_header("ETag", server.etag)
                self.end_headers()
                self.wfile.write(body[: server.cut_after])

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    settings = Server(archive())
    running = ThreadingHTTPServer(("127.0.0.1", 0), settings.handler())
    settings.url = f"http://127.0.0.1:{running.server_port}/archive.zip"
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield settings
    running.shutdown()
    running.server_close()
    thread.join()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
