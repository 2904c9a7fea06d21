"""Models that run on the same cards, as sentences."""

from collections.abc import Iterator, Sequence

from planner.plan.beside import Neighbour
from planner.present import format as fmt
from planner.workload.software.registry import SOFTWARE

NOT_ISOLATED = (
    "Cards that are shared by time slicing isolate neither memory nor time: nothing keeps a program within its part, "
    "and kernels take turns, so that each model is slower than the speeds here, which are of a card alone. MIG slices "
    "isolate both."
)


def beside_sentences(neighbours: Sequence[Neighbour]) -> Iterator[str]:
    """Yield what each neighbour holds of a card, and what sharing a card does not guarantee."""
    for each in neighbours:
        title = SOFTWARE[each.program].title if each.program in SOFTWARE else each.program
        verdict = ", which does not fit in what is left" if each.verdict == "does-not-fit" else ""
        yield (
            f"Beside it on each card: {each.model} in {title}, {fmt.size(each.held_bytes)} "
            f"({fmt.percent(each.fraction)} of it){verdict}."
        )
    yield "Start them one after the other, each once the one before answers: engines measure what is free."
    yield NOT_ISOLATED
