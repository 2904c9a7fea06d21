"""Time of a request: processing the prompt in chunks, then one pass for each token of the answer."""

from math import ceil
from typing import NamedTuple

from planner.memory.inference.kv_cache import deferred_kv_cache_term, state_term
from planner.models.architecture import Architecture
from planner.performance.inference.gpu_speed import GpuSpeed
from planner.performance.inference.kernels import (
    PassKernels,
    RoutedKernels,
    kernels_time,
    prompt_experts_seconds,
)
from planner.performance.inference.passes import ModelSplit, PassBatch, PassTime, pass_time
from planner.performance.inference.work import PassWork


class ServedModel(NamedTuple):
    """A model in a serving engine on its GPUs, with its KV-cache format.

    `encoder_tokens` is the number of encoder outputs that a decoder's cross-attention reads. `kernels` are the measured
    kernels of the engine, if they cover the network and the GPU; else `experts` may be those of the routed experts.
    `chunk_tokens` is the most tokens of one pass of a prompt if the workload sets it, None for the engine's own.
    `draft` drafts tokens that each decoding step checks.
    """

    architecture: Architecture
    work: PassWork
    speed: GpuSpeed
    split: ModelSplit
    cache: str
    encoder_tokens: int = 0
    kernels: PassKernels | None = None
    experts: RoutedKernels | None = None
    chunk_tokens: int | None = None
    draft: "Drafter | None" = None

    @property
    def tokens_per_step(self) -> float:
        """Return the tokens that a sequence gets in a decoding step on average: 1 without speculative decoding."""
        return 1.0 if self.draft is None else self.draft.expected_tokens

    @property
    def most_pass_tokens(self) -> int | None:
        """Return the most tokens of one pass of a prompt: the workload's or else the engine's, None for no limit."""
        return self.chunk_tokens or self.speed.engine.chunk_tokens

    @property
    def rows_per_sequence(self) -> int:
        """Return the tokens of a sequence that a decoding step computes: the drafted ones, and one more."""
        return 1 if self.draft is None else self.draft.tokens + 1


class Drafter(NamedTuple):
    """Drafting before each decoding step: the drafted tokens, those that a step yields, and the network, if any."""

    tokens: int
    expected_tokens: float
    model: ServedModel | None


def served_pass_time(served: ServedModel, batch: PassBatch) -> PassTime:
    """Return the time of one pass over `batch`: the sum of the kernels if they were measured, else by classes."""
    measured = (
        None if served.kernels is None else kernels_time(served.kernels, served.work, served.speed, served.split, batch)
    )
    experts = None
    if served.experts is not None:
        experts = prompt_experts_seconds(served.experts, served.work, served.speed, served.split.tensor, batch)
    return pass_time(served.work, served.speed, served.split, batch, measured, experts)


def prompt_time(served: ServedModel, sequences: float, tokens: float) -> PassTime:
    """Return the time to process `sequences` prompts of `tokens` tokens, with logits for the last token of each prompt.

    **Formula**: the chunks of all prompts one after the other; those of a pipeline's stages overlap as the engine lets
    them. Attention of chunk i of n takes (2 i + 1) ÷ n of the mean.

    With weights that the CPU multiplies llama.cpp has one copy of a chunk's inputs, so that stages do not overlap
    (src/llama-context.cpp, `pipeline_parallel`).

    Attention that is not fused computes all scores between the tokens of one chunk: 1 + 1/n as many for n chunks.

    **Assumes** that the chunks of several prompts grow as those of one. A network that drafts reads the prompts, too.
    """
    if served.draft is not None:
        reading = prompt_time(served._replace(draft=None), sequences, tokens)
        if served.draft.model is None:
            return reading
        return reading.followed_by(PassTime(drafting=prompt_time(served.draft.model, sequences, tokens).seconds))
    rows = sequences * tokens
    chunk = served.most_pass_tokens or rows
    chunks = max(1, ceil(rows / chunk))
    batch = PassBatch(
        rows=rows / chunks,
        sequences=sequences / chunks,
        outputs=sequences / chunks,
        cached_bytes=0.0,
        attention_flops=sequences * served.work.attention_flops(tokens) / chunks,
        scores=sequences * served.work.scores(tokens) * (1 + 1 / ceil(tokens / chunk)) / chunks,
        tokens=tokens,
    )
    one, stages = served_pass_time(served, batch), served.split.stages
    if stages == 1 or served.split.offloaded.uses_cpu:
        return one.repeated(chunks)
    grown = one.attention / one.seconds
    costs = [1 + grown * ((2 * chunk + 1) / chunks - 1) for chunk in range(chunks)]
    return one.repeated(served.speed.engine.passes_in_stages(served.work, costs, stages))


def encoder_pass_time(served: ServedModel, work: PassWork, sequences: float, tokens: float) -> PassTime:
    """Return the time of one encoder pass, in which tokens attend to all tokens: twice the query-key pairs of a prompt.

    `work` is that of the encoder, which may precede the main stack of `served`.
    """
    batch = PassBatch(
        rows=sequences * tokens,
        sequences=sequences,
        outputs=sequences,
        cached_bytes=0.0,
        attention_flops=2 * sequences * work.attention_flops(tokens),
        scores=2 * sequences * work.scores(tokens),
        tokens=tokens,
    )
    return pass_time(work, served.speed, served.split, batch)


def decoding_step_time(served: ServedModel, sequences: float, context: float) -> PassTime:
    """Return the time in which each of `sequences` sequences, which hold `context` tokens, gets one more.

    Pipeline stages run one after the other, so they do not shorten it.

    **Formula**: with a draft (t(b · (k + 1) rows) + k · t_draft) ÷ E: a step checks k drafted tokens of each sequence,
    whose cache it reads once, and yields E on average.

    **Source**: Leviathan et al. 2023, arXiv 2211.17192, theorem 3.8, with the times of both passes for c.
    """
    rows = sequences * served.rows_per_sequence
    batch = PassBatch(
        rows=rows,
        sequences=sequences,
        outputs=rows,
        cached_bytes=sequences * cached_bytes(served, context),
        attention_flops=0.0,
        scores=0.0,
        tokens=context,
    )
    step = served_pass_time(served, batch)
    if served.draft is None:
        return step
    if served.draft.model is not None:
        drafting = served.draft.tokens * decoding_step_time(served.draft.model, sequences, context).seconds
        step = step.followed_by(PassTime(drafting=drafting))
    return step.repeated(1 / served.tokens_per_step)


def cached_bytes(served: ServedModel, context: float) -> float:
    """Return the bytes of one sequence's KV cache and state that a decoding step reads, on all GPUs together."""
    cache = deferred_kv_cache_term(served.architecture, 1, max(1, round(context)), served.encoder_tokens, served.cache)
    state = state_term(served.architecture, 1)
    return (cache.bytes if cache else 0) + 2 * (state.bytes if state else 0)
