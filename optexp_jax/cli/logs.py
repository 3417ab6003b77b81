"""Where log records go: plain lines, or one JSON object a line."""

import json
import logging
import sys
from typing import Any

_PLAIN = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Time, level, logger, message, and every extra field of the record."""

    def format(self, record: logging.LogRecord) -> str:
        content: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        content |= {key: value for key, value in vars(record).items() if key not in _PLAIN}
        if record.exc_info:
            content["exception"] = self.formatException(record.exc_info)
        return json.dumps(content, default=str)


class LogLines:
    """While it is entered, the package's log records go to stderr.

    As JSON everything from INFO on is written, else only what is wrong.
    """

    def __init__(self, as_json: bool):
        self._logger = logging.getLogger("optexp_jax")
        self._handler = logging.StreamHandler(sys.stderr)
        self._level = logging.INFO if as_json else logging.ERROR
        if as_json:
            self._handler.setFormatter(JsonFormatter())

    def __enter__(self) -> None:
        self._before = self._logger.level
        self._logger.setLevel(self._level)
        self._logger.addHandler(self._handler)

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self._handler)
        self._logger.setLevel(self._before)
