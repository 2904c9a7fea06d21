"""Result of a time estimate: the time of a step or a request, its parts and its uncertainty."""

from typing import Literal

from pydantic import Field

from planner.base import Spec
from planner.memory.result import Symbol, TermCertainty

TimeTermName = Literal[
    "matrix_products",
    "attention",
    "elementwise",
    "loss_head",
    "recomputation",
    "dequantisation",
    "images",
    "host",
    "bubble",
    "gradient_exchange",
    "parameter_gathering",
    "tensor_exchange",
    "context_exchange",
    "expert_exchange",
    "pipeline_transfers",
    "drafting",
    "optimizer",
    "offload",
    "input",
    "prefill",
    "weights_read",
    "cache_read",
    "decode_compute",
    "convolutions",
    "generation",
    "scoring",
    "value_model",
    "weight_sync",
]
Bound = Literal["compute", "memory bandwidth", "communication", "host", "input"]
Basis = Literal["measured", "same card", "family", "unmeasured"]
"""Basis of an estimate: `measured` is a speed measured by the user; `same card` and `family` are the closest GPUs on
which the efficiencies were measured; `unmeasured` means that no GPU of the family was."""


class TimeTerm(Spec):
    """A named part of the total time with its formula.

    `overlapped_seconds` of `seconds` overlap with other work and do not lengthen the total.
    """

    name: TimeTermName
    seconds: float = Field(ge=0)
    overlapped_seconds: float = Field(default=0.0, ge=0)
    formula: str
    symbols: tuple[Symbol, ...]
    source: str
    certainty: TermCertainty

    @property
    def exposed_seconds(self) -> float:
        """Return the seconds by which the term lengthens the total time."""
        return self.seconds - self.overlapped_seconds


class TimeResult(Spec):
    """Time of one training step, or of one request to a service, on all GPUs together.

    Tokens and samples per second are those of all GPUs together. Figures that are unknown, or make no sense for the
    workload, are `None`.
    """

    task: Literal["training", "inference"]
    """Whether the time is that of training or of inference."""
    kind: Literal["step", "service"]
    """A training `step`, or a request to a `service`."""
    seconds: float | None = Field(default=None, gt=0, description="time of one optimizer step, or of one request")
    low_seconds: float | None = None
    """One case in ten is faster."""
    high_seconds: float | None = None
    """One case in ten is slower."""
    tokens_per_second: float | None = None
    """Tokens of all GPUs together."""
    low_tokens_per_second: float | None = None
    """One case in ten is slower."""
    high_tokens_per_second: float | None = None
    """One case in ten is faster."""
    samples_per_second: float | None = Field(default=None, description="sequences, images or requests per second")
    samples: Literal["samples", "images", "prompts", "pairs"] = Field(
        default="samples", description="what samples per second count"
    )
    requests_at_once: int | None = Field(default=None, description="requests that a replica processes together")
    prompt_tokens: int | None = Field(default=None, description="tokens of the prompt of each request")
    first_token_seconds: float | None = None
    """Time until the first output token, in which the prompt is read."""
    low_first_token_seconds: float | None = None
    """One case in ten is faster."""
    high_first_token_seconds: float | None = None
    """One case in ten is slower."""
    output_token_seconds: float | None = Field(default=None, description="time between two tokens of one answer")
    low_output_token_seconds: float | None = None
    """One case in ten is faster."""
    high_output_token_seconds: float | None = None
    """One case in ten is slower."""
    bound: Bound | None = Field(default=None, description="resource that takes most of the time")
    first_token_bound: Bound | None = Field(
        default=None, description="resource that takes most of the time until the first output token"
    )
    token_bound: Bound | None = Field(
        default=None, description="resource that takes most of the time of an output token"
    )
    basis: Basis = "family"
    """What the estimate is based on: a measured speed, this GPU, its family, or other families."""
    terms: tuple[TimeTerm, ...] = ()
    """Parts of the time, whose exposed seconds sum to `seconds`."""
    flops_per_step: float | None = Field(
        default=None, description="FLOPs of the model on all GPUs, without recomputation"
    )
    mfu_fraction: float | None = Field(
        default=None, description="share of the GPUs' dense rate that the model's FLOPs use"
    )
    unsupported: str | None = None
    """Reason if there is no time at all."""
    notes: tuple[str, ...] = ()
    """Assumptions and warnings, as sentences."""

    def term(self, name: str) -> TimeTerm | None:
        """Return the term with the name `name`, or None."""
        return next((term for term in self.terms if term.name == name), None)
