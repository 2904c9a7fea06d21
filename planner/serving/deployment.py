"""Deployment of a model: its replicas, the router before them, and the figures with which they are simulated."""

from typing import Final, Literal, NamedTuple

from pydantic import Field

from planner.base import Spec
from planner.hardware.gpu import Gpu
from planner.memory.result import CachePool, MemoryResult
from planner.models.architecture import Architecture
from planner.performance.efficiency import family_of
from planner.performance.inference.estimate import request_spread_factor, served_model
from planner.performance.inference.request import ServedModel, cached_bytes
from planner.performance.setting import TimeSetting
from planner.serving.scheduling import Scheduling
from planner.serving.software import scheduling_of
from planner.workload.workload import Inference

_IN_BATCHES: Final = "its program answers one batch after the other, so that prompts and answers cannot be separated"
_TOGETHER: Final = (
    "replicas that share experts take their steps together, so that prompts and answers are not separated"
)

Router = Literal["round-robin", "least-loaded", "prefix-aware"]
"""Choice of the replica for a request: in turn, the one with the fewest requests, or one that has its beginning."""


class Disaggregation(Spec):
    """Replicas that only read prompts, and others that only answer: the KV cache is sent from one to the other."""

    prefill_replicas: int = Field(ge=1, le=4_096)
    decode_replicas: int = Field(ge=1, le=4_096)
    link_bytes_per_s: float | None = Field(
        default=None, gt=0, description="bandwidth of the transfer; by default that of the GPUs' own network or links"
    )


class ServingSetup(Spec):
    """The routing of requests to the replicas, and whether these reuse the KV cache of earlier requests."""

    router: Router = "round-robin"
    prefix_cache: bool = Field(default=True, description="where the engine has one")
    over_http: bool = Field(
        default=True, description="times are those of a client; otherwise those between engine and tokens"
    )
    disaggregation: Disaggregation | None = Field(
        default=None, description="separate replicas for prompts and for answers; none: each does both"
    )


class ErrorFactors(NamedTuple):
    """Factors by which times may differ from the estimate, one case in ten beyond each end: prompts and decoding."""

    prompts: float
    decoding: float


class Deployment(NamedTuple):
    """A model on its GPUs, ready to be simulated.

    `cache_blocks` is the capacity of one replica, None if each sequence has a slot of its own. `expert_ranks` replicas
    share the routed experts. `ram_blocks` are the blocks that each replica keeps in RAM.
    """

    architecture: Architecture
    workload: Inference
    gpu: Gpu
    served: ServedModel
    scheduling: Scheduling
    setup: ServingSetup
    replicas: int
    cards_per_replica: int
    cache_blocks: int | None
    expert_ranks: int
    errors: ErrorFactors
    transfer_bytes_per_s: float
    ram_blocks: int = 0

    @property
    def ram_token_seconds(self) -> float:
        """Return the seconds in which the cache of a token comes from RAM, over the buses of all GPUs of a replica.

        **Formula**: (bytes of a block ÷ (GPUs · bandwidth of a bus) + t) ÷ its tokens, t what a copy takes besides.
        """
        tokens = max(self.scheduling.block_tokens, 1)
        buses = self.served.split.links.host_bytes_per_s * self.served.split.tensor
        return (cached_bytes(self.served, tokens) / buses + self.scheduling.block_copy_seconds) / tokens

    @property
    def cache_tokens(self) -> int | None:
        """Return the tokens that the KV cache of one replica holds, None if there is no pool."""
        return None if self.cache_blocks is None else self.cache_blocks * self.scheduling.block_tokens

    def transfer_seconds(self, tokens: int) -> float:
        """Return the seconds in which the cache of a prompt is sent to another replica."""
        return cached_bytes(self.served, tokens) / self.transfer_bytes_per_s


def deploy(
    architecture: Architecture,
    workload: Inference,
    gpu: Gpu,
    memory: MemoryResult,
    setup: ServingSetup,
    timing: TimeSetting,
) -> Deployment | str:
    """Return the deployment of `workload`, with its defaults filled in, on GPUs `gpu`; or why there is none.

    `memory` is its memory estimate, of which the KV cache has its capacity. `parallel.data` is the number of replicas.
    """
    reason = _obstacle(architecture, memory)
    if reason:
        return reason
    served = served_model(architecture, workload, gpu, timing)
    if served is None:
        return f"the memory bandwidth or arithmetic rate of {gpu.name} is unknown"
    scheduling = scheduling_of(workload, architecture, gpu, prefix_cache=setup.prefix_cache)
    parallel, engine, family = workload.parallel, served.speed.engine, family_of(gpu)
    replicas = parallel.data or 1
    split = setup.disaggregation
    if split is not None and split.prefill_replicas + split.decode_replicas != replicas:
        return (
            f"{split.prefill_replicas:,} replicas for prompts and {split.decode_replicas:,} for answers are not the "
            f"{replicas:,} of the plan"
        )
    if split is not None and (scheduling.static_batching or parallel.expert > 1):
        return _TOGETHER if parallel.expert > 1 else _IN_BATCHES
    if served.draft is not None and parallel.expert > 1:
        return "drafts of replicas that share experts are not simulated"
    pool = memory.cache_pool
    links = served.split.links
    node = links.cards_per_node >= 2 * parallel.tensor * parallel.pipeline
    usual = links.point_to_point_bytes_per_s(1 if node else links.cards_per_node) * parallel.tensor
    return Deployment(
        architecture=architecture,
        workload=workload,
        gpu=gpu,
        served=served,
        scheduling=scheduling,
        setup=setup,
        replicas=replicas,
        cards_per_replica=parallel.tensor * parallel.pipeline * parallel.context,
        cache_blocks=None if pool is None else pool.tokens // scheduling.block_tokens,
        expert_ranks=parallel.expert,
        errors=ErrorFactors(
            request_spread_factor("prefill", engine, family), request_spread_factor("decode", engine, family)
        ),
        ram_blocks=_ram_blocks(workload, pool, scheduling),
        transfer_bytes_per_s=(split.link_bytes_per_s if split and split.link_bytes_per_s else usual),
    )


def _ram_blocks(workload: Inference, pool: CachePool | None, scheduling: Scheduling) -> int:
    """Return the blocks of the cache that one replica's RAM holds; `pool` is that of one of its GPUs."""
    if pool is None or not scheduling.caches_prefixes:
        return 0
    cards = workload.parallel.tensor * workload.parallel.pipeline
    return int(workload.cache_in_ram_bytes / cards / pool.bytes * pool.tokens / scheduling.block_tokens)


def _obstacle(architecture: Architecture, memory: MemoryResult) -> str:
    if architecture.kind not in ("decoder", "vision-language"):
        return f"a {architecture.kind} does not answer token by token"
    if memory.unsupported:
        return "; ".join(memory.unsupported)
    if memory.verdict == "does-not-fit":
        return "the model does not fit on these GPUs"
    if memory.cache_pool is not None and memory.cache_pool.tokens < 1:
        return "no memory is left for the KV cache"
    return ""
