"""Log lines: JSON objects for machines, plain lines for a terminal. On standard error, one write each."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

FIELD_CHARACTERS = 4096
"""Of one field. What is longer is cut, and ends with an ellipsis."""


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={json.dumps(value, default=str)}" for name, value in _fields(record).items())
        # One line whatever the message holds: a token's claims must not write log lines of their own.
        message = _visible(json.dumps(record.getMessage(), ensure_ascii=False)[1:-1].replace('\\"', '"'))
        trace = "\n" + self.formatException(record.exc_info) if record.exc_info else ""
        return f"{_timestamp(record)} {record.levelname.lower():7} {message}{fields}{trace}"


def _visible(text: str) -> str:
    """JSON leaves alone what terminals obey beyond ASCII: a CSI of one character, marks that turn the direction."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def formatter(kind: str) -> logging.Formatter:
    return TextLines() if kind == "text" else JsonLines()


def configure(kind: str) -> None:
    """For this process: kubeauthn's own lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(kind))
    logger = logging.getLogger("kubeauthn")
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False


def granian_logging(kind: str) -> dict[str, Any]:
    """For Granian's lines, in the form that `logging.config` wants."""
    return {
        "formatters": {"lines": {"()": "kubeauthn.server.log_lines.formatter", "kind": kind}},
        "handlers": {
            "lines": {"class": "logging.StreamHandler", "formatter": "lines", "stream": "ext://sys.stderr"},
        },
        "loggers": {
            "_granian": {"handlers": ["lines"], "level": "WARNING", "propagate": False},
            "granian.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
        },
    }


def _timestamp(record: logging.LogRecord) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{whole}.{int(record.msecs):03d}Z"


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    found: dict[str, Any] = getattr(record, "fields", {})
    return {name: _bounded(value) for name, value in found.items()}


def _bounded(value: Any) -> Any:
    """A reason may quote a token's header, which anybody could have made as long as a token may be."""
    if type(value) is not str or len(value) <= FIELD_CHARACTERS:
        return value
    return f"{value[: FIELD_CHARACTERS - 1]}…"
