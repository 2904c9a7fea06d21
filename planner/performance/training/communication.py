"""Communication between GPUs in one training step: bytes, seconds, and the work that it can overlap with."""

from typing import Final, Literal, NamedTuple

from planner.models.architecture import Architecture, Attention, LatentAttention
from planner.performance.links import NETWORK_SHARE, Links
from planner.performance.result import TimeTermName
from planner.performance.setting import TimeSetting
from planner.performance.software import training_pace
from planner.workload.training import Training

OverlapTarget = Literal["passes", "last pass", "attention", "products", "nothing"]
"""Work that may run during a transfer between GPUs."""


class Transfer(NamedTuple):
    """One kind of communication in a step: bytes sent by each GPU, number of collectives, and seconds.

    `overlaps_with` is the work during which it may run; `server_seconds` is the time of gradients through a parameter
    server instead.
    """

    name: TimeTermName
    bytes: float
    operations: float
    group: int
    seconds: float
    overlaps_with: OverlapTarget
    formula: str
    source: str
    server_seconds: float | None = None


_RING_SOURCE: Final = (
    "Patarasuk and Yuan 2009 (ring all-reduce); Rajbhandari et al. 2020, arXiv 1910.02054 §7 (1.5 × under ZeRO-3)"
)
_TENSOR_PARALLEL_SOURCE: Final = "Shoeybi et al. 2019, arXiv 1909.08053 §3: two all-reduces a layer and pass"
_RING_ATTENTION_SOURCE: Final = (
    "Liu et al. 2023, arXiv 2310.01889: keys and values circulate while the local ones are read"
)
_PIPELINE_SOURCE: Final = "Narayanan et al. 2021, arXiv 2104.04473 §3.2: each stage sends its output to the next one"
_EXPERT_PARALLEL_SOURCE: Final = "Lepikhin et al. 2020, arXiv 2006.16668 §3: two all-to-all exchanges a layer and pass"
_PARAMETER_SERVER_SOURCE: Final = (
    "Li et al. 2014 (parameter server): all gradients arrive and all parameters leave over the link of one host"
)


class LinkTraffic(NamedTuple):
    """Quantities of one GPU's share of the model that determine its communication, such as bytes of gradients."""

    architecture: Architecture
    trained_bytes: float
    parameter_bytes: float
    stream_bytes: float
    layers: int
    micro_batches: int
    top_k: int
    expert_layers: int


def step_transfers(traffic: LinkTraffic, workload: Training, links: Links, setting: TimeSetting) -> list[Transfer]:
    """Return all transfers that one GPU takes part in during a step."""
    parallel = workload.parallel
    found = [_gradient_reduction(traffic, workload, links, parameter_server=setting.parameter_server)]
    if parallel.zero == 3 and parallel.state_shards > 1:
        found.append(_parameter_gathering(traffic, workload, links))
    if parallel.tensor > 1:
        found.append(_tensor_parallel_exchange(traffic, workload, links))
    if parallel.context > 1:
        found.append(_context_parallel_exchange(traffic, workload, links))
    if parallel.expert > 1 and traffic.expert_layers:
        found.append(_expert_dispatch(traffic, workload, links, overlaps=setting.overlaps_experts))
    if parallel.pipeline > 1:
        found.append(_stage_transfer(traffic, workload, links))
    return [one for one in found if one.seconds > 0]


def _gradient_reduction(traffic: LinkTraffic, workload: Training, links: Links, *, parameter_server: bool) -> Transfer:
    """Return the transfer that reduces gradients over replicas: once per step, or per micro-batch under ZeRO-3."""
    parallel = workload.parallel
    group = parallel.state_shards
    total = 2 * traffic.trained_bytes * group
    server = total / (links.network_bytes_per_s if group > links.cards_per_node else links.host_bytes_per_s)
    if parameter_server and group > 1:
        return Transfer(
            "gradient_exchange", total, 1, group, server, "nothing", "2 × g × G ÷ B", _PARAMETER_SERVER_SOURCE
        )
    share = (group - 1) / group
    if parallel.zero == 3:
        wire, times = share * traffic.trained_bytes, traffic.micro_batches
        formula = "m × ((g − 1) ÷ g × G ÷ B + u × latency)"
    else:
        wire, times, formula = 2 * share * traffic.trained_bytes, 1, "2 × (g − 1) ÷ g × G ÷ B + u × latency"
    units = traffic.layers + 1 if parallel.zero == 3 else max(traffic.trained_bytes / _BUCKET_BYTES, 1)
    seconds = times * _ring_seconds(
        _links_between_replicas(links, workload), group, wire, units, gathers=parallel.zero == 3
    )
    overlaps_with: OverlapTarget = "passes" if parallel.zero == 3 else "last pass"
    return Transfer(
        "gradient_exchange", wire * times, units * times, group, seconds, overlaps_with, formula, _RING_SOURCE, server
    )


_BUCKET_BYTES: Final = 25 * 2**20
"""Gradient bucket size of DistributedDataParallel in bytes (`bucket_cap_mb`)."""


def _parameter_gathering(traffic: LinkTraffic, workload: Training, links: Links) -> Transfer:
    """Return the transfer of parameters that ZeRO-3 and FSDP gather for each forward and backward pass."""
    parallel = workload.parallel
    group = parallel.state_shards
    passes = traffic.micro_batches * (2 if parallel.reshard_after_forward else 1)
    wire = (group - 1) / group * traffic.parameter_bytes
    units = traffic.layers + 1
    seconds = passes * _ring_seconds(_links_between_replicas(links, workload), group, wire, units, gathers=True)
    formula = "2 × m × ((g − 1) ÷ g × W ÷ B + u × latency)"
    return Transfer(
        "parameter_gathering", wire * passes, units * passes, group, seconds, "passes", formula, _RING_SOURCE
    )


def _tensor_parallel_exchange(traffic: LinkTraffic, workload: Training, links: Links) -> Transfer:
    """Return the transfer of partial sums between tensor-parallel GPUs."""
    group = workload.parallel.tensor
    again = 2 if workload.activation_checkpointing == "full" else 0
    operations = traffic.micro_batches * traffic.layers * (4 + again)
    wire = operations * 2 * (group - 1) / group * traffic.stream_bytes
    seconds = wire / links.bus_bytes_per_s(group) + operations * links.all_reduce_latency_seconds(group)
    overlaps_with: OverlapTarget = "products" if training_pace(workload).hides_tensor_exchange() else "nothing"
    return Transfer(
        "tensor_exchange",
        wire,
        operations,
        group,
        seconds,
        overlaps_with,
        "4 × m × L × 2 × (g − 1) ÷ g × S ÷ B",
        _TENSOR_PARALLEL_SOURCE,
    )


def _context_parallel_exchange(traffic: LinkTraffic, workload: Training, links: Links) -> Transfer:
    """Return the transfer of ring attention: keys and values forward, together with their gradients backward."""
    parallel = workload.parallel
    group = parallel.context
    width = max([_key_value_width(group_.layer.mixer) for group_ in traffic.architecture.main.groups], default=0)
    block = traffic.stream_bytes * 2 * width / traffic.architecture.hidden
    operations = 3 * traffic.micro_batches * traffic.layers * (group - 1)
    apart = parallel.tensor
    seconds = operations * (
        block / links.point_to_point_bytes_per_s(apart * (group - 1)) + links.ring_latency_seconds(2)
    )
    return Transfer(
        "context_exchange",
        operations * block,
        operations,
        group,
        seconds,
        "attention",
        "3 × m × L × (g − 1) × K ÷ B",
        _RING_ATTENTION_SOURCE,
    )


def _key_value_width(mixer: object) -> int:
    """Return the elements per token of a mixer's keys (equal to its values) or of its latent; 0 without a cache."""
    if isinstance(mixer, Attention):
        return mixer.kv_dim
    return mixer.latent_dim if isinstance(mixer, LatentAttention) else 0


def _expert_dispatch(traffic: LinkTraffic, workload: Training, links: Links, *, overlaps: bool) -> Transfer:
    """Return the transfer of tokens to their experts on other GPUs and back.

    **Source**: NVIDIA-NeMo/Megatron-Bridge docs/training/communication-overlap.md (`overlap_moe_expert_parallel_comm`:
    while the tokens of one micro-batch are sent, another one is computed).
    """
    parallel = workload.parallel
    group = parallel.expert
    again = 2 if workload.activation_checkpointing == "full" else 0
    operations = (4 + again) * traffic.micro_batches * traffic.expert_layers
    nodes = max(group * parallel.tensor // links.cards_per_node, 1)
    near, far = mean_copies_sent(traffic.top_k, group // nodes), mean_copies_sent(traffic.top_k, nodes)
    inside = min(group, links.cards_per_node)
    each = near / links.bus_bytes_per_s(inside, gathers=True) + far / (links.network_bytes_per_s * NETWORK_SHARE)
    wire = operations * traffic.stream_bytes * (near + far)
    seconds = operations * (traffic.stream_bytes * each + links.ring_latency_seconds(inside))
    formula = "4 × m × L × S × (c₁ ÷ B₁ + c₂ ÷ B₂)"
    overlaps_with: OverlapTarget = "passes" if overlaps else "nothing"
    return Transfer(
        "expert_exchange", wire, operations, group, seconds, overlaps_with, formula, _EXPERT_PARALLEL_SOURCE
    )


def mean_copies_sent(experts_per_token: int, destinations: int) -> float:
    """Return the mean number of other GPUs or nodes that a token is sent to if its experts are chosen at random.

    **Formula**: (g − 1) · (1 − (1 − 1/g)^k).

    **Source**: deepseek-ai/DeepEP README: tokens cross to another node once and are forwarded over NVLink there.
    """
    return (destinations - 1) * (1 - (1 - 1 / destinations) ** experts_per_token) if destinations > 1 else 0.0


def _stage_transfer(traffic: LinkTraffic, workload: Training, links: Links) -> Transfer:
    """Return the transfer of activations and gradients between neighboring pipeline stages."""
    parallel = workload.parallel
    operations = 2 * traffic.micro_batches * parallel.interleave
    stream = traffic.stream_bytes / (parallel.tensor if parallel.sequence else 1)
    apart = parallel.tensor * parallel.context * (parallel.data or 1)
    seconds = operations * (stream / links.point_to_point_bytes_per_s(apart) + links.ring_latency_seconds(2))
    return Transfer(
        "pipeline_transfers",
        operations * stream,
        operations,
        parallel.pipeline,
        seconds,
        "passes",
        "2 × m × v × S ÷ B",
        _PIPELINE_SOURCE,
    )


def _links_between_replicas(links: Links, workload: Training) -> Links:
    """Return `links` for collectives among replicas: a node holds as many replicas as tensor-parallel groups fit."""
    apart = workload.parallel.tensor
    return links if apart == 1 else links._replace(cards_per_node=max(links.cards_per_node // apart, 1))


def _ring_seconds(spanned: Links, group: int, wire: float, units: float, *, gathers: bool) -> float:
    """Return the seconds of ring collectives that send `wire` bytes in `units` messages."""
    if group < 2:
        return 0.0
    hops = spanned.ring_latency_seconds(group) if gathers else spanned.all_reduce_latency_seconds(group)
    return wire / spanned.bus_bytes_per_s(group, gathers=gathers) + units * hops
