"""Accuracy targets of the estimates for rows of confidence A with a complete configuration, and a check of them."""

from collections.abc import Iterable, Iterator
from statistics import median
from typing import Final, NamedTuple


class Aim(NamedTuple):
    """Maximum deviation of the rows of a kind: of each row without an explained mechanism, and of half of all rows."""

    each: float | None
    middle: float | None


_TRAINING: Final = Aim(each=0.06, middle=0.015)
AIMS: Final = {
    "weights_only": Aim(each=0.003, middle=None),
    "kv_only": Aim(each=0.001, middle=None),
    "activation_only": Aim(each=None, middle=0.03),
    "inference": Aim(each=None, middle=0.03),
    "train_full": _TRAINING,
    "pretrain": _TRAINING,
    "lora": _TRAINING,
    "qlora": _TRAINING,
    "kernel": Aim(each=None, middle=0.01),
}


def limit_of(kind: str) -> float:
    """Return the maximum error of a row of `kind` that is not listed with a reason."""
    aim = AIMS[kind]
    return aim.each or aim.middle or 0.0


class Missed(NamedTuple):
    """A row of the strictest set: its kind, its name, its signed error, and whether a mechanism explains the error."""

    kind: str
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
        for row in members:
            if aim.each is not None and abs(row.error) > aim.each and not row.explained:
                yield f"{kind}: {row.id} is off by {row.error:+.2%}, further than {aim.each:.1%}, and nobody knows why"
