"""What came of fetching prices, and which prices are in use, in words."""

from collections.abc import Iterable, Iterator
from datetime import date, datetime
from typing import Final

from planner.cost.refresh.refresh import Outcome, Status
from planner.cost.refresh.store import Part, Stored
from planner.cost.renting.offer import Offer
from planner.present import format as fmt
from planner.present.prices import oldest_words

STATUS_WORDS: Final[dict[Status, str]] = {
    "new": "new prices",
    "unchanged": "as before",
    "held": "held",
    "failed": "failed",
}
_MOST_REFUSED: Final = 3


def outcome_lines(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Yield a line for each provider, with what is odd and what was left out indented below."""
    for outcome in outcomes:
        if outcome.error is not None:
            yield f"{outcome.provider}: {outcome.error.reason}"
            continue
        left_out = f", {len(outcome.refused):,} left out" if outcome.refused else ""
        told = f"{STATUS_WORDS[outcome.status]}, {fmt.plural(outcome.offers, 'offer')}{left_out}"
        yield f"{outcome.provider}: {told} ({outcome.source})"
        if outcome.doubts:
            yield "  these moved so far that the old prices stay in use until you accept them:"
        for doubt in outcome.doubts:
            yield f"  {doubt}"
        for refused in outcome.refused[:_MOST_REFUSED]:
            yield f"  left out: {refused.what}: {refused.reason}"
        if len(outcome.refused) > _MOST_REFUSED:
            yield f"  and {len(outcome.refused) - _MOST_REFUSED:,} more left out"


def state_lines(stored: Stored, bundled: tuple[Offer, ...], today: date) -> Iterator[str]:
    """Yield which prices are in use, provider by provider, what is held, and what could not be read."""
    if not stored.snapshot.parts:
        yield "The bundled prices are in use; none were fetched."
    elif stored.use_bundled:
        yield "The bundled prices are in use, by choice; fetched ones are kept."
    else:
        yield "Fetched prices are in use, and bundled ones where none were fetched."
    yield f"bundled: {fmt.plural(len(bundled), 'offer')}, {oldest_words(bundled, today)}"
    for part in stored.snapshot.parts:
        yield _part_line(part, today)
    if stored.own:
        yield f"your own: {fmt.listing(tuple(offer.id for offer in stored.own))}"
    for part in stored.held.parts:
        yield f"held until you say so: {_part_line(part, today)}"
    for problem in stored.problems:
        yield f"passed over: {problem.message}"


def _part_line(part: Part, today: date) -> str:
    fetched = fmt.date(datetime.fromisoformat(part.fetched_at).date().isoformat())
    offers = fmt.plural(len(part.offers), "offer")
    return f"{part.provider}: {offers}, {oldest_words(part.offers, today)}, fetched on {fetched} from {part.source}"
