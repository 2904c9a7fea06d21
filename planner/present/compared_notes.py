"""What has to be said beside a comparison: what is shared otherwise, not planned, or assumed of several machines."""

from collections.abc import Iterator, Mapping, Sequence

from planner.performance.links import links_of
from planner.plan.placement import Placement
from planner.present import format as fmt
from planner.present.side_by_side import Entry
from planner.units import GB


def compared_notes(entries: Sequence[Entry], tried: Mapping[str, Placement]) -> tuple[str, ...]:
    """Return the sentences that belong below the comparison of `entries`, with the plan as far as it was tried."""
    unplanned = (
        f"{entry.title} is not planned: {found.reason}."
        for entry in entries
        if (found := tried.get(entry.id)) is not None and found.evaluation is None
    )
    return (*sharing_notes(entries, tried), *unplanned, *_machine_notes(entries, tried))


def sharing_notes(entries: Sequence[Entry], tried: Mapping[str, Placement]) -> tuple[str, ...]:
    """Return a sentence for each entry whose cards hold the plan together, though none of them holds all of it."""
    return tuple(
        f"{entry.title}: the plan has all of the model on each card. Shared evenly it takes at least "
        f"{fmt.plural(cards, 'card')} (not estimated): choose a way to share it."
        for entry in entries
        if (cards := _cards_that_hold(tried.get(entry.id))) is not None and cards <= entry.count
    )


def _cards_that_hold(tried: Placement | None) -> int | None:
    evaluation = None if tried is None else tried.evaluation
    if evaluation is None or evaluation.memory.verdict != "does-not-fit":
        return None
    parallel = evaluation.workload.parallel
    is_whole = parallel.model_shards == 1 and not parallel.zero
    return evaluation.memory.at_least_cards if is_whole else None


def _machine_notes(entries: Sequence[Entry], tried: Mapping[str, Placement]) -> Iterator[str]:
    """Yield what is not known of several machines, and what the time of the plan assumes in its place."""
    for entry in entries:
        found = tried.get(entry.id)
        if entry.machines > 1 and (found is None or found.evaluation is not None):
            assumed = _assumed(entry, found)
            yield f"{entry.title}: the catalog does not say what joins the machines.{assumed}"


def _assumed(entry: Entry, tried: Placement | None) -> str:
    """Return what the time is reckoned with; nothing where the plan has none there."""
    evaluation = None if tried is None else tried.evaluation
    if evaluation is None or entry.row is None or evaluation.memory.verdict not in ("fits", "tight"):
        return ""
    links, said = links_of(entry.row.gpu, evaluation.plan.timing), evaluation.plan.timing.network_bytes_per_s
    speed = fmt.quantity(links.network_bytes_per_s / GB, "GB/s")
    origin = "which the plan says" if said is not None else "which is assumed"
    return (
        f" The time is with {fmt.plural(links.node, 'card')} a machine, and {speed} from each card to other machines, "
        f"{origin}."
    )
