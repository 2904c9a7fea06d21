"""Communication between cards in one training step: bytes, seconds, and what it can overlap with."""

from typing import Final, Literal, NamedTuple

from planner.models.architecture import Architecture, Attention, LatentAttention
from planner.performance.links import NETWORK_SHARE, Links
from planner.performance.result import TimeTermName
from planner.performance.software.lookup import training_pace
from planner.workload.training import Training

Behind = Literal["passes", "last pass", "attention", "products", "nothing"]
"""Work that a transfer may overlap with."""


class Transfer(NamedTuple):
    """One kind of communication in a step: bytes sent by each card, number of operations, and time.

    `behind` is the work it may overlap with; `server_seconds` is the time of gradients through a parameter server
    instead.
    """

    name: TimeTermName
    bytes: float
    operations: float
    group: int
    seconds: float
    behind: Behind
    formula: str
    source: str
    server_seconds: float | None = None


_RINGS: Final = (
    "Patarasuk and Yuan 2009 (ring all-reduce); Rajbhandari et al. 2020, arXiv 1910.02054 §7 (1.5 × under ZeRO-3)"
)
_SHOEYBI: Final = "Shoeybi et al. 2019, arXiv 1909.08053 §3: two all-reduces a layer and pass"
_LIU: Final = "Liu et al. 2023, arXiv 2310.01889: keys and values circulate while the local ones are read"
_NARAYANAN: Final = "Narayanan et al. 2021, arXiv 2104.04473 §3.2: each stage passes its output on"
_LEPIKHIN: Final = "Lepikhin et al. 2020, arXiv 2006.16668 §3: two all-to-all exchanges a layer and pass"
_LI: Final = (
    "Li et al. 2014 (parameter server): all gradients arrive and all parameters leave over the link of one host"
)


class Traffic(NamedTuple):
    """Quantities that determine the communication: trained and all parameters of a card's share, and element sizes."""

    architecture: Architecture
    trained_bytes: float
    parameter_bytes: float
    stream_bytes: float
    layers: int
    micro_batches: int
    top_k: int
    expert_layers: int


def step_transfers(traffic: Traffic, workload: Training, links: Links, *, parameter_server: bool) -> list[Transfer]:
    """Return all transfers of one card in a step."""
    parallel = workload.parallel
    found = [_gradient_reduction(traffic, workload, links, parameter_server=parameter_server)]
    if parallel.zero == 3 and parallel.state_shards > 1:
        found.append(_parameter_gathering(traffic, workload, links))
    if parallel.tensor > 1:
        found.append(_tensor_parallel_exchange(traffic, workload, links))
    if parallel.context > 1:
        found.append(_context_parallel_exchange(traffic, workload, links))
    if parallel.expert > 1 and traffic.expert_layers:
        found.append(_expert_dispatch(traffic, workload, links))
    if parallel.pipeline > 1:
        found.append(_stage_transfer(traffic, workload, links))
    return [one for one in found if one.seconds > 0]


def _gradient_reduction(traffic: Traffic, workload: Training, links: Links, *, parameter_server: bool) -> Transfer:
    """Return the reduction of gradients over replicas: once per step, or per micro-batch if they are scattered."""
    parallel = workload.parallel
    group = parallel.state_shards
    total = 2 * traffic.trained_bytes * group
    server = total / (links.network_bytes_per_s if group > links.node else links.host_bytes_per_s)
    if parameter_server and group > 1:
        return Transfer("gradient_exchange", total, 1, group, server, "nothing", "2 × g × G ÷ B", _LI)
    share = (group - 1) / group
    if parallel.zero == 3:
        wire, times = share * traffic.trained_bytes, traffic.micro_batches
        formula = "m × ((g − 1) ÷ g × G ÷ B + u × latency)"
    else:
        wire, times, formula = 2 * share * traffic.trained_bytes, 1, "2 × (g − 1) ÷ g × G ÷ B + u × latency"
    units = traffic.layers + 1 if parallel.zero == 3 else max(traffic.trained_bytes / _BUCKET, 1)
    seconds = times * _ring_seconds(
        _links_between_replicas(links, workload), group, wire, units, gathers=parallel.zero == 3
    )
    behind: Behind = "passes" if parallel.zero == 3 else "last pass"
    return Transfer("gradient_exchange", wire * times, units * times, group, seconds, behind, formula, _RINGS, server)


_BUCKET: Final = 25 * 2**20
"""Bucket size of DistributedDataParallel (`bucket_cap_mb`)."""


def _parameter_gathering(traffic: Traffic, workload: Training, links: Links) -> Transfer:
    """Return the transfer of parameters that ZeRO-3 and FSDP gather for each forward and backward pass."""
    parallel = workload.parallel
    group = parallel.state_shards
    passes = traffic.micro_batches * (2 if parallel.reshard_after_forward else 1)
    wire = (group - 1) / group * traffic.parameter_bytes
    units = traffic.layers + 1
    seconds = passes * _ring_seconds(_links_between_replicas(links, workload), group, wire, units, gathers=True)
    formula = "2 × m × ((g − 1) ÷ g × W ÷ B + u × latency)"
    return Transfer("parameter_gathering", wire * passes, units * passes, group, seconds, "passes", formula, _RINGS)


def _tensor_parallel_exchange(traffic: Traffic, workload: Training, links: Links) -> Transfer:
    group = workload.parallel.tensor
    again = 2 if workload.activation_checkpointing == "full" else 0
    operations = traffic.micro_batches * traffic.layers * (4 + again)
    wire = operations * 2 * (group - 1) / group * traffic.stream_bytes
    seconds = wire / links.bus_bytes_per_s(group) + operations * links.tree_seconds(group)
    behind: Behind = "products" if training_pace(workload).hides_tensor_exchange() else "nothing"
    return Transfer(
        "tensor_exchange", wire, operations, group, seconds, behind, "4 × m × L × 2 × (g − 1) ÷ g × S ÷ B", _SHOEYBI
    )


def _context_parallel_exchange(traffic: Traffic, workload: Training, links: Links) -> Transfer:
    """Return the transfer of circulating keys and values: forward, and together with their gradients backward."""
    parallel = workload.parallel
    group = parallel.context
    width = max([_key_value_width(group_.layer.mixer) for group_ in traffic.architecture.main.groups], default=0)
    block = traffic.stream_bytes * 2 * width / traffic.architecture.hidden
    operations = 3 * traffic.micro_batches * traffic.layers * (group - 1)
    apart = parallel.tensor
    seconds = operations * (block / links.point_bytes_per_s(apart * (group - 1)) + links.latency_seconds(2))
    return Transfer(
        "context_exchange",
        operations * block,
        operations,
        group,
        seconds,
        "attention",
        "3 × m × L × (g − 1) × K ÷ B",
        _LIU,
    )


def _key_value_width(mixer: object) -> int:
    if isinstance(mixer, Attention):
        return mixer.kv_dim
    return mixer.latent_dim if isinstance(mixer, LatentAttention) else 0


def _expert_dispatch(traffic: Traffic, workload: Training, links: Links) -> Transfer:
    """Return the transfer of tokens to their experts and back."""
    parallel = workload.parallel
    group = parallel.expert
    again = 2 if workload.activation_checkpointing == "full" else 0
    operations = (4 + again) * traffic.micro_batches * traffic.expert_layers
    nodes = max(group * parallel.tensor // links.node, 1)
    near, far = mean_copies_sent(traffic.top_k, group // nodes), mean_copies_sent(traffic.top_k, nodes)
    inside = min(group, links.node)
    each = near / links.bus_bytes_per_s(inside, gathers=True) + far / (links.network_bytes_per_s * NETWORK_SHARE)
    wire = operations * traffic.stream_bytes * (near + far)
    seconds = operations * (traffic.stream_bytes * each + links.latency_seconds(inside))
    formula = "4 × m × L × S × (c₁ ÷ B₁ + c₂ ÷ B₂)"
    return Transfer("expert_exchange", wire, operations, group, seconds, "nothing", formula, _LEPIKHIN)


def mean_copies_sent(visits: int, places: int) -> float:
    """Return the mean number of other cards or nodes that a token is sent to if its experts are spread at random.

    **Formula**: (g − 1) · (1 − (1 − 1/g)^k).

    **Source**: deepseek-ai/DeepEP README: tokens cross to another node once and are forwarded over NVLink there.
    """
    return (places - 1) * (1 - (1 - 1 / places) ** visits) if places > 1 else 0.0


def _stage_transfer(traffic: Traffic, workload: Training, links: Links) -> Transfer:
    parallel = workload.parallel
    operations = 2 * traffic.micro_batches * parallel.interleave
    stream = traffic.stream_bytes / (parallel.tensor if parallel.sequence else 1)
    apart = parallel.tensor * parallel.context * (parallel.data or 1)
    seconds = operations * (stream / links.point_bytes_per_s(apart) + links.latency_seconds(2))
    return Transfer(
        "pipeline_transfers",
        operations * stream,
        operations,
        parallel.pipeline,
        seconds,
        "passes",
        "2 × m × v × S ÷ B",
        _NARAYANAN,
    )


def _links_between_replicas(links: Links, workload: Training) -> Links:
    """Return `links` as seen by a group of replicas, whose members are model-parallel groups apart."""
    apart = workload.parallel.tensor
    return links if apart == 1 else links._replace(node=max(links.node // apart, 1))


def _ring_seconds(spanned: Links, group: int, wire: float, units: float, *, gathers: bool) -> float:
    """Return the seconds of a ring collective that runs once for each of `units`."""
    if group < 2:
        return 0.0
    hops = spanned.latency_seconds(group) if gathers else spanned.tree_seconds(group)
    return wire / spanned.bus_bytes_per_s(group, gathers=gathers) + units * hops
