"""Reader of metrics in the text format of Prometheus, as exporters and engines show them."""

import math
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from planner.parsing import CORRECT_IT, MAGNITUDE_LIMIT
from planner.storage import UnreadableFileError

_MOST_SAMPLES: Final = 200_000
_MOST_SAMPLE_LINE: Final = 16_384
_LABEL: Final = r'(?P<name>[A-Za-z_]\w*)="(?P<value>(?:[^"\\]|\\.)*)"'
_SAMPLE: Final = (
    r"(?P<name>[A-Za-z_:][\w:]*)"
    r'(?:\{(?P<labels>(?:[A-Za-z_]\w*="(?:[^"\\]|\\.)*",?\s*)*)\})?'
    r"\s+(?P<value>[-+.\w]{1,40})(?:\s+-?[\d.]{1,20})?(?:\s+#.*)?"
)


class MetricSample(NamedTuple):
    """A value of a metric with its labels, as in Prometheus' text format; a bucket may be infinite."""

    name: str
    labels: Mapping[str, str]
    value: float


def parse_prometheus(data: bytes | str) -> tuple[MetricSample, ...]:
    """Return the samples of a scrape in Prometheus' text format, comments and times left out.

    Values that are not finite, as of a gauge that was never set, are left out, too.

    **Source**: prometheus.io, Exposition formats, text-based format 0.0.4; OpenMetrics ends with `# EOF`.

    Raises:
        UnreadableFileError: If a line is not a sample, or there are too many; the reason names the line.
    """
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFileError("is not a scrape of metrics: it is not text in UTF-8", CORRECT_IT) from error
    samples: list[MetricSample] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if len(samples) >= _MOST_SAMPLES:
            raise UnreadableFileError(f"has more than {_MOST_SAMPLES:,} samples", "Choose a smaller file.")
        found = re.fullmatch(_SAMPLE, line.strip()) if len(line) <= _MOST_SAMPLE_LINE else None
        value = _sample_value(found["value"]) if found else None
        if found is None or value is None:
            raise UnreadableFileError(f"is not a scrape of metrics: line {number:,} is not a sample", CORRECT_IT)
        if math.isnan(value) or abs(value) >= MAGNITUDE_LIMIT:
            continue
        labels = {one["name"]: _unescaped(one["value"]) for one in re.finditer(_LABEL, found["labels"] or "")}
        samples.append(MetricSample(found["name"], labels, value))
    return tuple(samples)


def _sample_value(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text) if "\\" in text else text
