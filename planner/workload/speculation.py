"""Speculative decoding: a draft guesses tokens, which the model then checks together in one pass."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from planner.base import Spec
from planner.workload.presentation import FieldContext, Presentation, generates_text
from planner.workload.software.registry import serving_support

DraftMethod = Literal["model", "mtp", "eagle", "eagle3", "ngram"]


class DraftKind(NamedTuple):
    """A way of drafting: its title, the usual number of tokens, and the share of them that is accepted by `source`."""

    title: str
    tokens: int
    acceptance: float
    source: str


DRAFTS: Final[Mapping[DraftMethod, DraftKind]] = {
    "model": DraftKind(
        "A smaller model", 3, 0.77, "vLLM's tests (November 2026): Qwen3-0.6B for Qwen3-1.7B, code editing, 2.8 tokens"
    ),
    "mtp": DraftKind(
        "The model's own prediction layer (MTP)",
        1,
        0.85,
        "DeepSeek-V3 (December 2024, arXiv 2412.19437): 85 to 90 % of second tokens",
    ),
    "eagle": DraftKind(
        "EAGLE head",
        3,
        0.64,
        "SpecDecode-Bench (2026) and vllm#20780 (July 2025): Llama 3.1 8B, chats, mathematics, summaries and code "
        "editing, 2.25 to 2.39 tokens",
    ),
    "eagle3": DraftKind(
        "EAGLE-3 head",
        3,
        0.74,
        "vllm#20780 (July 2025) and vLLM's blog (13 March 2026): Llama 3.1 8B and gpt-oss-20b, 2.24 to 2.79 tokens",
    ),
    "ngram": DraftKind(
        "Repeated words (n-gram)",
        3,
        0.27,
        "SpecDecode-Bench (2026): Llama 3.1 8B, 1.16 to 1.39 tokens, and 2.03 where code is edited",
    ),
}
"""Ways of drafting, with the median of published shares. Three tokens are llama.cpp's default (`--spec-draft-n-max`),
one is that of DeepSeek-V3.

**Formula**: sources give the tokens that a check of three yields, 1 + α + α² + α³; `benchmarks/engine_extras.py` lists
them beside what these shares yield.
"""
_SHARES: Final = "; ".join(f"{name} {kind.acceptance}" for name, kind in DRAFTS.items())


def has_drafts(context: FieldContext) -> bool:
    """Return whether the model generates text in an engine with speculative decoding."""
    return generates_text(context) and bool(serving_support(context.workload.profile).drafts)


def _drafts(context: FieldContext) -> bool:
    return bool(context.workload.speculation.method)


class Speculation(Spec):
    """Speculative decoding of an engine: how tokens are drafted, how many, and which share of them is accepted."""

    method: Annotated[
        DraftMethod | None,
        Field(
            title="Draft",
            description="how an engine drafts tokens: model, mtp (the model's own layer), eagle, eagle3 or ngram",
        ),
        Presentation(
            "--draft",
            default="none; model if --draft-model is given",
            explanation="A draft guesses tokens that the model checks in one pass: faster for few requests at a time.",
            choices={name: kind.title for name, kind in DRAFTS.items()},
            placeholder="none",
            brief="{}",
        ),
    ] = None
    model: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=200,
            title="Draft model",
            description="catalog id of the model that drafts, or the checkpoint of an EAGLE head",
        ),
        Presentation(
            "--draft-model",
            metavar="ID",
            explanation="It needs the vocabulary of the model; its weights and KV cache come on top.",
            shown_when=lambda context: context.workload.speculation.method in ("model", "eagle", "eagle3"),
        ),
    ] = None
    tokens: Annotated[
        int | None,
        Field(ge=1, le=64, title="Draft tokens", description="tokens that are drafted before each check"),
        Presentation(
            "--draft-tokens",
            default="3; mtp 1",
            explanation="The model checks all of them, also those after the first that it rejects.",
            stops=(1, 2, 3, 4, 5, 6, 8, 12, 16),
            shown_when=_drafts,
        ),
    ] = None
    acceptance: Annotated[
        float | None,
        Field(ge=0, le=1, title="Acceptance", description="share of the drafted tokens that the model accepts, 0 to 1"),
        Presentation(
            "--acceptance",
            metavar="SHARE",
            default=_SHARES,
            explanation="It depends on the task: servers print it. Unset, it is the median of what was published. "
            + " ".join(f"{kind.title}, {kind.acceptance}: {kind.source}." for kind in DRAFTS.values()),
            stops=(0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9),
            shown_when=_drafts,
        ),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _draft_with_model(cls, fields: object) -> object:
        """Let a draft model that is named without a method draft."""
        if isinstance(fields, dict) and fields.get("model") is not None and fields.get("method") is None:
            return {**fields, "method": "model"}
        return fields

    def with_defaults(self) -> Self:
        """Return the settings with the usual number of tokens and the published share for unset ones."""
        if self.method is None:
            return self
        kind = DRAFTS[self.method]
        share = kind.acceptance if self.acceptance is None else self.acceptance
        return self.evolve(tokens=self.tokens or kind.tokens, acceptance=share)

    @property
    def drafted(self) -> int:
        """Return the tokens that are drafted before each check; 0 without speculative decoding."""
        return 0 if self.method is None else self.tokens or DRAFTS[self.method].tokens

    @property
    def expected_tokens(self) -> float:
        """Return the tokens that one check yields on average: the accepted ones, and one of the model itself.

        **Formula**: (1 − α^(k + 1)) ÷ (1 − α), α the share that is accepted and k the drafted tokens.

        **Source**: Leviathan et al. 2023, arXiv 2211.17192, equation 1.

        **Assumes** that each token is accepted with the same chance, whichever were before it.
        """
        share = self.with_defaults().acceptance or 0.0
        return float(sum(share**place for place in range(self.drafted + 1)))
