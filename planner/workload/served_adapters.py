"""LoRA adapters that an engine serves beside each other, in slots that it reserves at its start."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from planner.base import Spec
from planner.workload.choices import SERVED_RANK
from planner.workload.presentation import FieldContext, Presentation, doubling, generates_text
from planner.workload.software.registry import serving_support
from planner.workload.training import Lora


def serves_adapters(context: FieldContext) -> bool:
    """Return whether the model generates text in an engine whose slots for adapters are estimated."""
    return generates_text(context) and serving_support(context.workload.profile).adapters


def _has_slots(context: FieldContext) -> bool:
    return bool(context.workload.adapters.slots)


class ServedAdapters(Spec):
    """LoRA adapters of an engine: how many are on the card at once, their highest rank, and the adapted layers."""

    slots: Annotated[
        int,
        Field(ge=0, le=10_000, title="LoRA slots", description="LoRA adapters that are on the card at once"),
        Presentation(
            "--lora-slots",
            explanation="An engine reserves each slot for the highest rank at its start, also while it is empty.",
            stops=(0, *doubling(1, 64)),
            brief="{} LoRA slots",
        ),
    ] = 0
    rank: Annotated[
        int,
        Field(ge=1, le=65_536, title="Highest rank", description="highest rank of the LoRA adapters that are served"),
        Presentation("--lora-rank", stops=doubling(8, 256), shown_when=_has_slots),
    ] = SERVED_RANK
    targets: Annotated[
        Literal["all-linear"] | tuple[str, ...],
        Field(
            title="Target modules",
            description="layers with adapters: all-linear (all that the engine prepares), or q_proj,v_proj",
        ),
        Presentation("--lora-targets", metavar="NAMES", shown_when=_has_slots),
    ] = "all-linear"

    @field_validator("targets", mode="before")
    @classmethod
    def _split_names(cls, value: object) -> object:
        return Lora.split_names(value)
