"""Names of cards in places that rent them by a name of their own."""

from collections.abc import Mapping

from planner.errors import SpecError
from planner.hardware.gpu import Gpu


def card_name(gpu: Gpu, names: Mapping[str, str], title: str) -> str:
    """Return the only name of `gpu` in a place, which `title` names.

    Raises:
        SpecError: If the place has no name that means this card alone.
    """
    if gpu.id not in names:
        hint = f"Names that are unambiguous there: {', '.join(names)}."
        raise SpecError("gpu", f"{title} has no name that means {gpu.name} and no other card", hint)
    return names[gpu.id]
