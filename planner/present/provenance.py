"""Where a figure comes from, in words and as one sign beside it."""

from typing import Final

from planner.hardware.gpu import Provenance
from planner.hardware.software import SoftwareFact
from planner.present import format as fmt
from planner.present.columns import Detail
from planner.present.names import CERTAINTY_WORDS

TWO_SOURCES_MARK: Final = "•"  # no digit, which beside a figure would be read as part of it
ONE_SOURCE_MARK: Final = "◦"
_CERTAINTY_MARKS: Final = {
    "confirmed": TWO_SOURCES_MARK,
    "single-source": ONE_SOURCE_MARK,
    "conflicting": "≠",
    "preliminary": "p",
    "yours": "y",
}
_BASIS_MARKS: Final = {"derived": "ƒ", "measured": "m"}
ASSUMED_MARK: Final = "~"
MARK_MEANINGS: Final = (
    (TWO_SOURCES_MARK, "two sources agree"),
    (ONE_SOURCE_MARK, "one source"),
    ("≠", "sources disagree"),
    ("p", "preliminary"),
    ("ƒ", "derived by a formula"),
    ("m", "measured"),
    ("~", "assumed"),
    ("y", "yours"),
)


def provenance_mark(provenance: Provenance) -> str:
    """Return one sign for how sure a figure is; `MARK_MEANINGS` says what it stands for."""
    return _BASIS_MARKS.get(provenance.basis) or _CERTAINTY_MARKS[provenance.certainty]


def provenance_text(provenance: Provenance) -> str:
    """Return where a figure comes from, a line each."""
    return figure("", "", provenance).tooltip


def figure(title: str, text: str, provenance: Provenance, exact: str = "") -> Detail:
    """Return the line of a figure; what is not known needs no source."""
    if text in (fmt.UNKNOWN, fmt.NOT_PUBLISHED):
        return Detail(title, text)
    is_own = provenance.basis == "yours"
    basis = f"derived: {provenance.formula}" if provenance.formula else "" if is_own else provenance.basis
    certainty = CERTAINTY_WORDS[provenance.certainty]
    as_of = f"{'said' if is_own else 'read'} {fmt.date(provenance.as_of)}"
    return Detail(title, text, provenance.source, basis, certainty, as_of, exact, provenance_mark(provenance))


def lacking_detail(title: str, fact: SoftwareFact) -> Detail:
    """Return the line of a rate that a chip does not have, with who says so."""
    return Detail(title, fmt.NONE, fact.source, as_of=f"read {fmt.date(fact.as_of)}", mark=ONE_SOURCE_MARK)
