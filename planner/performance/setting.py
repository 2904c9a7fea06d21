"""Settings that affect the time of a workload but not its memory: links, input, and measured speeds."""

from typing import Literal

from pydantic import Field

from planner.base import Spec

CardLink = Literal["nvlink", "nvlink-pair", "xgmi", "pcie"]


class MeasuredSpeed(Spec):
    """A speed measured by the user, which replaces the estimate.

    It was measured with the same plan on `count` cards of `gpu`, by default those of the plan. For other cards it is
    scaled by the ratio of the two cards' estimates.
    """

    value: float = Field(gt=0, description="in `unit`")
    unit: Literal["tokens/s", "samples/s", "seconds/step"]
    gpu: str | None = Field(default=None, description="catalog id of the card that it was measured on")
    count: int | None = Field(default=None, ge=1)
    note: str = Field(default="", max_length=500)


class TimeSetting(Spec):
    """Settings that affect the time but not the memory; for `None` the default of the cards applies."""

    cards_per_node: int | None = Field(default=None, ge=1, le=1024, description="by default 8, or the whole of a rack")
    link: CardLink | None = Field(default=None, description="between the cards of one node; by default the card's own")
    network_bytes_per_s: float | None = Field(
        default=None, gt=0, description="from each card to other nodes; by default one port of its generation"
    )
    matrix_format: Literal["fp8", "fp4"] | None = Field(
        default=None,
        description="what Transformer Engine computes the products of layers in, whatever their inputs are kept in",
    )
    compiled: bool = Field(default=False, description="whether the network is compiled (torch.compile)")
    channels_last: bool = Field(
        default=False, description="whether a convolutional network is trained with torch.channels_last"
    )
    diffusion_steps: int | None = Field(
        default=None, ge=1, le=10_000, description="of an image, each with one pass or two; by default 30"
    )
    input_samples_per_second: float | None = Field(
        default=None, gt=0, description="sequences or images that loading brings, for all cards"
    )
    parameter_server: bool = Field(default=False, description="gradients go through one host instead of a ring")
    measured: MeasuredSpeed | None = None
