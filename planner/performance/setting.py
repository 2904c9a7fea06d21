"""Settings that affect the time of a workload but not its memory: links, input, and measured speeds."""

from typing import Literal

from pydantic import Field

from planner.base import Spec

CardLink = Literal["nvlink", "nvlink-pair", "xgmi", "pcie"]
Graphs = Literal["dense", "all"]
"""Kernels that are launched together as CUDA graphs: those of `dense` layers alone, or `all`, routed experts too."""


class MeasuredSpeed(Spec):
    """A speed measured by the user, to which the estimate is scaled.

    It was measured with the same plan on `count` GPUs of `gpu`, by default those of the plan. For other GPUs it is
    scaled by the ratio of the two GPUs' estimates.
    """

    value: float = Field(gt=0, description="measured speed in `unit`")
    unit: Literal["tokens/s", "samples/s", "seconds/step"]
    gpu: str | None = Field(default=None, description="catalog id of the GPU on which the speed was measured")
    count: int | None = Field(default=None, ge=1)
    note: str = Field(default="", max_length=500)


class TimeSetting(Spec):
    """Settings that affect the time but not the memory; `None` is the default of the GPUs."""

    cards_per_node: int | None = Field(
        default=None, ge=1, le=1024, description="GPUs in one node; by default 8, or all GPUs of a rack"
    )
    link: CardLink | None = Field(
        default=None, description="link between the GPUs in one node; by default from the catalog"
    )
    network_bytes_per_s: float | None = Field(
        default=None,
        gt=0,
        description="bandwidth from each GPU to other nodes; by default one network port of the GPU's generation",
    )
    matrix_format: Literal["fp8", "fp4"] | None = Field(
        default=None,
        description="format of the layers' matrix products in Transformer Engine, whatever the stored format",
    )
    attention_format: Literal["fp8"] | None = Field(
        default=None, description="format of attention's products in Transformer Engine; by default 16 bits"
    )
    packed_tokens: int | None = Field(
        default=None,
        ge=1,
        description="mean length of the samples that are packed into a sequence, each attending to itself alone; "
        "by default attention reads the whole sequence",
    )
    graphs: Graphs | None = Field(
        default=None, description="kernels that training launches together as CUDA graphs; by default none"
    )
    overlaps_experts: bool = Field(
        default=False,
        description="whether tokens are sent to experts on other GPUs while another micro-batch is computed",
    )
    compiled: bool = Field(default=False, description="whether the network is compiled (torch.compile)")
    channels_last: bool = Field(
        default=False, description="whether a convolutional network is trained with torch.channels_last"
    )
    diffusion_steps: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="denoising steps of an image, each with one or two passes; by default 30",
    )
    input_samples_per_second: float | None = Field(
        default=None, gt=0, description="loading rate in sequences or images per second, for all GPUs together"
    )
    parameter_server: bool = Field(
        default=False, description="whether gradients are summed on one host instead of by a collective"
    )
    measured: MeasuredSpeed | None = None
