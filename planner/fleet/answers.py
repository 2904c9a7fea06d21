"""Answers of Prometheus' HTTP API, read series by series, and what is wrong with one in plain words.

**Source**: prometheus/prometheus `docs/querying/api.md`; VictoriaMetrics marks partial answers with `isPartial`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from planner.errors import NetworkError, PlannerError
from planner.network import HttpReply
from planner.parsing import parse_json
from planner.storage import UnreadableFileError

_RESULT: Final = re.compile(r'"result"\s*:\s*\[')
_TITLE: Final = re.compile(r"<title[^>]*>\s*([^<]{1,120})", re.IGNORECASE)
_SHOWN: Final = 160
_CHECK_ADDRESS: Final = "Check the address; it must be that of a Prometheus."
_DECODER: Final = json.JSONDecoder()
_BETWEEN: Final = " \t\r\n,"
_LATEST_SECONDS: Final = 1e11
"""A time that no clock shows: the year 5138. Beyond the year 9999 there are no dates."""
_STATUSES: Final[Mapping[int, tuple[str, str]]] = {
    401: ("wants a sign-in (401)", "Choose how to sign in; a password or token may be wrong or have expired."),
    403: ("refuses access (403)", "This user or token may not read metrics; ask for access, or set the tenant."),
    404: (
        "has no Prometheus API at this address (404)",
        "Add the prefix of the API, such as /prometheus (Mimir), /select/0/prometheus (VictoriaMetrics) or "
        "/api/datasources/proxy/uid/… (Grafana).",
    ),
    429: ("received too many requests (429)", "Try again later, or poll less often."),
    502: ("cannot reach the Prometheus behind it (502)", "Check that Prometheus runs behind the proxy."),
    503: ("is not ready (503)", "It may still be starting; try again in a minute."),
    504: ("got no answer from the Prometheus behind it in time (504)", "Ask for fewer GPUs or a shorter time."),
}
_LIMITS: Final = (
    ("exceeded maximum resolution", "Ask for a shorter time or a larger step."),
    ("too many samples", "Ask for fewer GPUs or a shorter time; the server limits samples (--query.max-samples)."),
    ("timed out", "Ask for fewer GPUs or a shorter time; the server limits the time of a query."),
    ("too many", "Ask for fewer GPUs or a shorter time."),
)


class AnswerSeries(NamedTuple):
    """One series of an answer: its labels and its values, each with its time in seconds since 1970."""

    labels: Mapping[str, str]
    values: tuple[tuple[float, float], ...]


class Answer(NamedTuple):
    """An answer: its series, and warnings, such as that a part of the data is missing."""

    series: tuple[AnswerSeries, ...]
    warnings: tuple[str, ...] = ()


def read_answer(reply: HttpReply, host: str) -> Answer:
    """Return the series of a response to a query.

    They are read one by one: a thread that reads all at once would block the others of its process meanwhile.

    Raises:
        NetworkError: If the server refuses, is not ready, or sent something else than an answer.
        PlannerError: If it says that the query is wrong or too large.
    """
    text = reply.content.decode("utf-8", "replace")
    found = _RESULT.search(text) if reply.status < 400 else None
    if found is None:
        envelope = _envelope(text, reply, host)
        if isinstance(envelope.get("data"), dict):
            raise NetworkError(f"{host} answered without a result", "Its address may be of another API.")
        raise _error(envelope, reply, host)
    reader = _SeriesReader(text, found.end(), host)
    series = tuple(reader)
    envelope = _envelope(f"{text[: found.end()]}{text[reader.index :]}", reply, host)
    return Answer(series, _warnings(envelope))


def read_build(reply: HttpReply) -> str:
    """Return the version of the server from its `buildinfo`; empty if the server has none."""
    try:
        data = parse_json(reply.content)["data"]
        return str(data["version"])[:40] if reply.status == 200 else ""
    except (UnreadableFileError, KeyError, TypeError):
        return ""


def scrape_content(reply: HttpReply, host: str) -> bytes:
    """Return the text of an exporter's metrics.

    Raises:
        NetworkError: If the exporter refuses, is not ready, or sent a web page.
    """
    text = reply.content[:2_000].decode("utf-8", "replace")
    if reply.status >= 400 or "<html" in text.lower():
        raise _not_json(text, reply, host)
    return reply.content


class _SeriesReader:
    """Iterates over the series of a JSON text from `index` on, up to the end of their list."""

    def __init__(self, text: str, index: int, host: str) -> None:
        self._text, self.index, self._host = text, index, host

    def __iter__(self) -> Iterator[AnswerSeries]:
        text, count = self._text, 0
        while True:
            while text[self.index : self.index + 1] in _BETWEEN and self.index < len(text):
                self.index += 1
            if text[self.index : self.index + 1] == "]":
                return
            try:
                one, self.index = _DECODER.raw_decode(text, self.index)
                points = one["values"] if "values" in one else (one["value"],)
                values = tuple([(_time(at), float(value)) for at, value in points])
                series = AnswerSeries(_labels(one["metric"]), values)
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
                what = "ends" if self.index >= len(text) or isinstance(error, json.JSONDecodeError) else "has a fault"
                message = f"the answer of {self._host} {what} in series {count + 1:,}"
                raise NetworkError(message, "Try again; a proxy between may cut long answers.") from error
            if points:
                yield series
            count += 1


def _labels(labels: dict[str, Any]) -> dict[str, str]:
    if not {*map(type, labels.values())} <= {str}:
        raise TypeError("a label is not text")
    return labels


def _time(seconds: float) -> float:
    if not 0 <= seconds < _LATEST_SECONDS:  # nor NaN
        raise ValueError("a time is out of range")
    return seconds


def _envelope(text: str, reply: HttpReply, host: str) -> dict[str, Any]:
    try:
        envelope = parse_json(text)
    except UnreadableFileError as error:
        raise _not_json(text, reply, host) from error
    if not isinstance(envelope, dict):
        raise _not_json(text, reply, host)
    return envelope


def _not_json(text: str, reply: HttpReply, host: str) -> NetworkError:
    if reply.status in _STATUSES:
        what, hint = _STATUSES[reply.status]
        return NetworkError(f"{host} {what}", hint)
    if "<html" in text[:2_000].lower() or "<!doctype" in text[:200].lower():
        title = _TITLE.search(text)
        named = f" (“{title[1].strip()}”)" if title else ""
        return NetworkError(
            f"{host} answered with a web page{named} instead of data (status {reply.status})",
            "It may be a page to sign in, or the address lacks the prefix of the API.",
        )
    first = text.strip().partition("\n")[0][:_SHOWN]
    return NetworkError(
        f"{host} answered with status {reply.status} and no JSON: {first or 'nothing'}",
        _CHECK_ADDRESS,
    )


def _error(envelope: Mapping[str, Any], reply: HttpReply, host: str) -> PlannerError:
    stated = str(envelope.get("error") or envelope.get("message") or "")[:_SHOWN]
    if reply.status in _STATUSES:
        what, hint = _STATUSES[reply.status]
        return NetworkError(f"{host} {what}{f': {stated}' if stated else ''}", hint)
    hint = next((hint for words, hint in _LIMITS if words in stated.lower()), "Look into the log of that server.")
    return PlannerError(f"{host} refuses the query ({reply.status}): {stated or 'no reason stated'}", hint)


def _warnings(envelope: Mapping[str, Any]) -> tuple[str, ...]:
    warnings = envelope.get("warnings") or ()
    partial = (
        ("the answer is partial: a part of the data was not reached",) if envelope.get("isPartial") is True else ()
    )
    return (*partial, *(str(one)[:_SHOWN] for one in (warnings if isinstance(warnings, list) else ())))
