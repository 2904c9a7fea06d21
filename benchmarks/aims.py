"""Accuracy targets of the estimates for rows of confidence A with a complete configuration, and a check of them."""

from collections.abc import Iterable, Iterator
from statistics import median
from typing import Final, NamedTuple


class Aim(NamedTuple):
    """Maximum deviation of a kind: of each row without an explained mechanism, of half of all rows, of half of sources.

    A source is off by the median of its rows, so that one with many rows counts as much as one with few.
    """

    each: float | None
    middle: float | None
    source: float | None = None


SHOWN: Final = 0.95
"""Share of the rows that are far off whose mechanism is shown, not supposed."""
_TRAINING: Final = Aim(each=0.06, middle=0.015, source=0.03)
_ADAPTERS: Final = _TRAINING._replace(source=0.01)
AIMS: Final = {
    "weights_only": Aim(each=0.003, middle=None, source=0.001),
    "kv_only": Aim(each=0.001, middle=None, source=0.001),
    "activation_only": Aim(each=None, middle=0.03),
    "inference": Aim(each=None, middle=0.03, source=0.03),
    "train_full": _TRAINING,
    "pretrain": _TRAINING,
    "lora": _ADAPTERS,
    "qlora": _ADAPTERS,
    "kernel": Aim(each=None, middle=0.01),
}


def limit_of(kind: str) -> float:
    """Return the maximum error of a row of `kind` that is not listed with a reason."""
    aim = AIMS[kind]
    return aim.each or aim.middle or 0.0


class Missed(NamedTuple):
    """A row of the strictest set: its kind, source, name, signed error, and whether a mechanism explains the error."""

    kind: str
    source: str
    id: str
    error: float
    explained: bool


def unmet(rows: Iterable[Missed]) -> Iterator[str]:
    """Yield each aim that `rows` do not meet, as a sentence."""
    by_kind: dict[str, list[Missed]] = {}
    for row in rows:
        by_kind.setdefault(row.kind, []).append(row)
    for kind, members in by_kind.items():
        aim = AIMS[kind]
        middle = median(abs(row.error) for row in members)
        if aim.middle is not None and middle > aim.middle:
            yield f"{kind}: half of {len(members)} rows are off by {middle:.2%} or more, not by {aim.middle:.1%}"
        half = median(source_errors((row.source, row.error) for row in members))
        if aim.source is not None and half > aim.source:
            yield f"{kind}: half of the sources are off by {half:.2%} or more, not by {aim.source:.1%}"
        for row in members:
            if aim.each is not None and abs(row.error) > aim.each and not row.explained:
                yield f"{kind}: {row.id} is off by {row.error:+.2%}, further than {aim.each:.1%}, and nobody knows why"


def unshown(shown: int, far: int) -> Iterator[str]:
    """Yield a sentence if the mechanism of too few of `far` rows that are far off is shown."""
    if shown < SHOWN * far:
        yield f"the mechanism of {shown} of {far} rows that are far off is shown, not of {SHOWN:.0%}"


def source_errors(errors: Iterable[tuple[str, float]]) -> list[float]:
    """Return the median size of the errors of each source, from pairs of source and signed error."""
    by_source: dict[str, list[float]] = {}
    for source, error in errors:
        by_source.setdefault(source, []).append(abs(error))
    return [median(sizes) for sizes in by_source.values()]
