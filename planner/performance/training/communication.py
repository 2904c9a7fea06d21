"""What cards send each other in one step, how long that takes, and what of it can be hidden."""

from typing import Final, Literal, NamedTuple

from planner.models.architecture import Architecture, Attention, LatentAttention
from planner.performance.links import NETWORK_SHARE, Links
from planner.performance.result import TimeTermName
from planner.performance.software.lookup import pace_of
from planner.workload.training import Training

Behind = Literal["passes", "last pass", "attention", "products", "nothing"]
"""What an exchange may pass behind."""


class Sent(NamedTuple):
    """One kind of exchange in a step: the bytes that each card sends, in how many operations, and how long it takes.

    `behind` says what it may hide behind; `server_seconds` is what gradients would take by a parameter server instead.
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
_LIU: Final = "Liu et al. 2023, arXiv 2310.01889: keys and values go round while those here are read"
_NARAYANAN: Final = "Narayanan et al. 2021, arXiv 2104.04473 §3.2: each stage hands its output on"
_LEPIKHIN: Final = "Lepikhin et al. 2020, arXiv 2006.16668 §3: two all-to-all exchanges a layer and pass"
_LI: Final = (
    "Li et al. 2014 (parameter server): all gradients come in and all parameters go out by the link of one host"
)


class Traffic(NamedTuple):
    """What decides how much cards send: trained and all parameters of a card's share, and the size of one number."""

    architecture: Architecture
    trained_bytes: float
    parameter_bytes: float
    stream_bytes: float
    layers: int
    micro_batches: int
    top_k: int
    expert_layers: int


def exchanges(traffic: Traffic, workload: Training, links: Links, *, parameter_server: bool) -> list[Sent]:
    """Return everything that one card sends in a step."""
    parallel = workload.parallel
    found = [_gradients(traffic, workload, links, parameter_server=parameter_server)]
    if parallel.zero == 3 and parallel.state_shards > 1:
        found.append(_gathered(traffic, workload, links))
    if parallel.tensor > 1:
        found.append(_tensor(traffic, workload, links))
    if parallel.context > 1:
        found.append(_context(traffic, workload, links))
    if parallel.expert > 1 and traffic.expert_layers:
        found.append(_experts(traffic, workload, links))
    if parallel.pipeline > 1:
        found.append(_stages(traffic, workload, links))
    return [one for one in found if one.seconds > 0]


def _gradients(traffic: Traffic, workload: Training, links: Links, *, parameter_server: bool) -> Sent:
    """Return the sum of gradients over replicas: once a step, or once a micro-batch where they are scattered."""
    parallel = workload.parallel
    group = parallel.state_shards
    total = 2 * traffic.trained_bytes * group
    server = total / (links.network_bytes_per_s if group > links.node else links.host_bytes_per_s)
    if parameter_server and group > 1:
        return Sent("gradient_exchange", total, 1, group, server, "nothing", "2 × g × G ÷ B", _LI)
    share = (group - 1) / group
    if parallel.zero == 3:
        wire, times = share * traffic.trained_bytes, traffic.micro_batches
        formula = "m × ((g − 1) ÷ g × G ÷ B + u × latency)"
    else:
        wire, times, formula = 2 * share * traffic.trained_bytes, 1, "2 × (g − 1) ÷ g × G ÷ B + u × latency"
    units = traffic.layers + 1 if parallel.zero == 3 else max(traffic.trained_bytes / _BUCKET, 1)
    seconds = times * _ring(_spanned(links, workload), group, wire, units, gathers=parallel.zero == 3)
    behind: Behind = "passes" if parallel.zero == 3 else "last pass"
    return Sent("gradient_exchange", wire * times, units * times, group, seconds, behind, formula, _RINGS, server)


_BUCKET: Final = 25 * 2**20
"""Bytes that DistributedDataParallel sends at a time (`bucket_cap_mb`)."""


def _gathered(traffic: Traffic, workload: Training, links: Links) -> Sent:
    """Return the parameters that ZeRO-3 and FSDP gather for each forward and backward pass."""
    parallel = workload.parallel
    group = parallel.state_shards
    passes = traffic.micro_batches * (2 if parallel.reshard_after_forward else 1)
    wire = (group - 1) / group * traffic.parameter_bytes
    units = traffic.layers + 1
    seconds = passes * _ring(_spanned(links, workload), group, wire, units, gathers=True)
    formula = "2 × m × ((g − 1) ÷ g × W ÷ B + u × latency)"
    return Sent("parameter_gathering", wire * passes, units * passes, group, seconds, "passes", formula, _RINGS)


def _tensor(traffic: Traffic, workload: Training, links: Links) -> Sent:
    group = workload.parallel.tensor
    again = 2 if workload.activation_checkpointing == "full" else 0
    operations = traffic.micro_batches * traffic.layers * (4 + again)
    wire = operations * 2 * (group - 1) / group * traffic.stream_bytes
    seconds = wire / links.bus_bytes_per_s(group) + operations * links.tree_seconds(group)
    behind: Behind = "products" if pace_of(workload).hides_tensor_exchange() else "nothing"
    return Sent(
        "tensor_exchange", wire, operations, group, seconds, behind, "4 × m × L × 2 × (g − 1) ÷ g × S ÷ B", _SHOEYBI
    )


def _context(traffic: Traffic, workload: Training, links: Links) -> Sent:
    """Return keys and values on their way round, forward, and with their gradients backward."""
    parallel = workload.parallel
    group = parallel.context
    width = max([_kept_width(group_.layer.mixer) for group_ in traffic.architecture.main.groups], default=0)
    block = traffic.stream_bytes * 2 * width / traffic.architecture.hidden
    operations = 3 * traffic.micro_batches * traffic.layers * (group - 1)
    apart = parallel.tensor
    seconds = operations * (block / links.point_bytes_per_s(apart * (group - 1)) + links.latency_seconds(2))
    return Sent(
        "context_exchange",
        operations * block,
        operations,
        group,
        seconds,
        "attention",
        "3 × m × L × (g − 1) × K ÷ B",
        _LIU,
    )


def _kept_width(mixer: object) -> int:
    if isinstance(mixer, Attention):
        return mixer.kv_dim
    return mixer.latent_dim if isinstance(mixer, LatentAttention) else 0


def _experts(traffic: Traffic, workload: Training, links: Links) -> Sent:
    """Return tokens on their way to the experts that they visit, and back."""
    parallel = workload.parallel
    group = parallel.expert
    again = 2 if workload.activation_checkpointing == "full" else 0
    operations = (4 + again) * traffic.micro_batches * traffic.expert_layers
    nodes = max(group * parallel.tensor // links.node, 1)
    near, far = copies_sent(traffic.top_k, group // nodes), copies_sent(traffic.top_k, nodes)
    inside = min(group, links.node)
    each = near / links.bus_bytes_per_s(inside, gathers=True) + far / (links.network_bytes_per_s * NETWORK_SHARE)
    wire = operations * traffic.stream_bytes * (near + far)
    seconds = operations * (traffic.stream_bytes * each + links.latency_seconds(inside))
    formula = "4 × m × L × S × (c₁ ÷ B₁ + c₂ ÷ B₂)"
    return Sent("expert_exchange", wire, operations, group, seconds, "nothing", formula, _LEPIKHIN)


def copies_sent(visits: int, places: int) -> float:
    """Return to how many other places of `places` a token goes whose experts are anywhere: once to each.

    **Formula**: (g − 1) · (1 − (1 − 1/g)^k).

    **Source**: deepseek-ai/DeepEP README: tokens cross to another node once and are handed on over NVLink there.
    """
    return (places - 1) * (1 - (1 - 1 / places) ** visits) if places > 1 else 0.0


def _stages(traffic: Traffic, workload: Training, links: Links) -> Sent:
    parallel = workload.parallel
    operations = 2 * traffic.micro_batches * parallel.interleave
    stream = traffic.stream_bytes / (parallel.tensor if parallel.sequence else 1)
    apart = parallel.tensor * parallel.context * (parallel.data or 1)
    seconds = operations * (stream / links.point_bytes_per_s(apart) + links.latency_seconds(2))
    return Sent(
        "pipeline_transfers",
        operations * stream,
        operations,
        parallel.pipeline,
        seconds,
        "passes",
        "2 × m × v × S ÷ B",
        _NARAYANAN,
    )


def _spanned(links: Links, workload: Training) -> Links:
    """Return `links` as a group of replicas sees them, whose members stand model-parallel groups apart."""
    apart = workload.parallel.tensor
    return links if apart == 1 else links._replace(node=max(links.node // apart, 1))


def _ring(spanned: Links, group: int, wire: float, units: float, *, gathers: bool) -> float:
    """Return how long a ring takes that is gone round once for each of `units`."""
    if group < 2:
        return 0.0
    hops = spanned.latency_seconds(group) if gathers else spanned.tree_seconds(group)
    return wire / spanned.bus_bytes_per_s(group, gathers=gathers) + units * hops
