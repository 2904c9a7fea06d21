"""Work of one micro-batch on one GPU (products, attention, bytes that others move), and its time by operation."""

from math import hypot
from typing import Final, NamedTuple

from planner.dtypes import SCHEMES
from planner.hardware.gpu import Gpu
from planner.memory.kernels import needs_explicit_mask
from planner.memory.precision import Precision, training_precision
from planner.memory.software import training_memory
from planner.memory.training.adapters.trained import tuning_of
from planner.memory.training.autograd.layer import saved_by_layer
from planner.memory.training.autograd.network import is_frozen, stack_batch, trained_stacks
from planner.memory.weights import parameter_counts, weight_bytes
from planner.models.architecture import Architecture, Attention, LatentAttention
from planner.performance.attainable import limited_share, share_within_power_limit
from planner.performance.efficiency import (
    INPUT_BITS,
    Family,
    InputBits,
    MatrixFormat,
    TrainingEfficiency,
    attention_share,
    class_source,
    family_of,
    gpu_matrix_share,
    matrix_family,
    memory_share,
)
from planner.performance.flops import ForwardWork, MatrixProduct, forward_work, frozen_tower_work
from planner.performance.kernels.times import matmul_time
from planner.performance.setting import Graphs, TimeSetting
from planner.performance.software import training_pace
from planner.workload.choices import Checkpointing, Compute, Loss
from planner.workload.parallel import Parallel
from planner.workload.training import Training

_LOGIT_BYTES: Final[dict[Loss, int]] = {"full-logits": 34, "chunked": 34, "fused-linear": 12}
"""Bytes moved for each logit by the loss implementation: the product writes 2 and a copy in fp32 reads 2 and writes
4; the softmax reads 4 three times; its derivative writes 4, which are read and written as 2 for both products of the
backward pass (4 + 2 + 2 · 2). A fused loss keeps 16-bit logits: 2 written, 2 · 2 read, 2 written in place, 2 · 2
read."""
_BASE_BYTES: Final = 2


class MicroBatch(NamedTuple):
    """Work of one micro-batch on one GPU.

    `saved_bytes` are saved by its forward pass for the backward pass, a measure of what element-wise operations read
    and write. `weight_gradient_share` is the share of the matrices that have gradients of their own; `casts_separately`
    means that kernels of their own cast the matrices of products to fp8, as torchao's do. `ring_sum_bytes` are what a
    pass moves to sum the parts of ring attention. `fused` means that kernels combine several element-wise operations,
    and `graphs` which layers' kernels are launched together. `frozen_tower` has the forward pass of images alone.
    """

    forward: ForwardWork
    tokens: float
    saved_bytes: float
    logit_bytes: float
    cast_bytes: int
    ring_sum_bytes: float
    quantised_bytes: int
    unpacked_bytes: int
    weight_gradient_share: float
    adapted: bool
    sharded: bool
    fused: bool
    compiled: bool
    graphs: Graphs | None
    casts_separately: bool
    frozen_tower: ForwardWork | None = None


def sequences_work(
    architecture: Architecture, sequences: float, length: int, context: int, setting: TimeSetting
) -> ForwardWork:
    """Return the work of a forward pass over a GPU's `length` tokens of each sequence, which `context` GPUs share.

    Every token attends to its whole sequence, on whichever GPU it is, or to its own sample if samples are packed.
    """
    work, whole = forward_work(architecture, sequences, length), length * context
    reads = min(setting.packed_tokens or whole, whole)
    if reads == length:
        return work
    samples = forward_work(architecture, sequences * length / reads, reads)
    return work._replace(attention_flops=samples.attention_flops)


def micro_batch(
    architecture: Architecture, workload: Training, whole: Architecture, parallel: Parallel, setting: TimeSetting
) -> MicroBatch:
    """Return the work of one GPU in a micro-batch; `architecture` is its share of the network `whole`.

    **Source**: the bytes that operators save: `planner.memory.training.autograd.layer`.
    """
    length, sequences = workload.sequence_length or 1, workload.micro_batch
    work = sequences_work(architecture, sequences, length, parallel.context, setting)
    precision = training_precision(workload)
    counts = parameter_counts(architecture)
    quantised = workload.weights is not None and SCHEMES[workload.weights].family != "plain"
    whole_parameters = counts.linear + counts.experts
    return MicroBatch(
        forward=work,
        tokens=float(sequences * length),
        saved_bytes=_saved_bytes(architecture, workload, precision),
        logit_bytes=work.logits * _LOGIT_BYTES[workload.loss or "full-logits"],
        cast_bytes=counts.cast * (precision.parameter_bytes + precision.compute_bytes) if precision.autocast else 0,
        ring_sum_bytes=_ring_sum_bytes(architecture, sequences * length, parallel.context),
        quantised_bytes=weight_bytes(architecture, workload.weights) if quantised and workload.weights else 0,
        unpacked_bytes=whole_parameters * _BASE_BYTES if quantised else 0,
        weight_gradient_share=weight_gradient_share(whole, workload),
        adapted=workload.adapts,
        sharded=parallel.zero == 3 and parallel.state_shards > 1 and not setting.compiled,
        fused=setting.compiled or any(training_memory(workload.profile).fused),
        compiled=setting.compiled,
        graphs=setting.graphs,
        casts_separately=workload.compute == "fp8",
        frozen_tower=frozen_tower_work(architecture, sequences),
    )


_RING_SUM_ELEMENT_BYTES: Final = 10
"""Bytes moved for each element of a part of ring attention that is added to the whole: read in 16 bits, and the sum
read and written in fp32.

**Source**: NVIDIA/TransformerEngine attention/dot_product_attention/context_parallel.py: each pass corrects the output
of every step by its softmax and sums it, and the backward pass sums the derivative of the queries.
"""


def _ring_sum_bytes(architecture: Architecture, tokens: int, context: int) -> float:
    """Return the bytes that a pass moves to sum the parts of ring attention over `context` GPUs; 0 on one GPU."""
    if context == 1:
        return 0.0
    widths = [group.count * _query_width(group.layer.mixer) for group in architecture.main.groups]
    return float(_RING_SUM_ELEMENT_BYTES * context * tokens * sum(widths))


def _query_width(mixer: object) -> int:
    """Return the elements per token that attention of `mixer` puts out; 0 for other mixers."""
    if isinstance(mixer, Attention):
        return mixer.q_dim
    return mixer.heads * mixer.v_head_dim if isinstance(mixer, LatentAttention) else 0


def _saved_bytes(architecture: Architecture, workload: Training, precision: Precision) -> float:
    """Return the saved activation bytes of a micro-batch that separate operations move through memory."""
    length, sequences = workload.sequence_length or 1, workload.micro_batch
    pace, found = training_pace(workload), 0.0
    source = 0
    for stack in trained_stacks(architecture):
        if architecture.kind == "vision-language" and is_frozen(stack):
            continue
        count, tokens, _ = stack_batch(stack, sequences, length)
        for group in stack.groups:
            masked = needs_explicit_mask(group.layer, tokens, workload.attention)
            ledger = pace.moved_activations(
                saved_by_layer(group.layer, stack.hidden, precision, workload.attention, masked)
            )
            found += group.count * ledger.total(count, tokens, source or tokens)
        source = tokens
    return found


def weight_gradient_share(architecture: Architecture, workload: Training) -> float:
    """Return the share of the weights with gradients: 1 in full training, 0 with adapters, between with `trainable`."""
    if workload.adapts:
        return 0.0
    if not workload.trainable:
        return 1.0
    trained = sum([tensor.size * number for tensor, number in tuning_of(architecture, workload).trained])
    return min(trained / max(architecture.parameters, 1), 1.0)


DEQUANTISED_SHARE: Final = 0.25
"""Share of the memory bandwidth that unpacking NF4 reaches: a step takes 79 ms longer for 6.5 billion parameters and
191 ms longer for 12.7 billion; each parameter is read as 0.56 bytes, and written and read as 2 bytes, by bitsandbytes
0.41 on an A100 (litgpt 2685705, resource tables)."""
ADAPTED_LAUNCH_FACTOR: Final = 2.0
"""Launch time of a layer with adapters relative to one without: 4.2 ms per layer and step with LoRA, 2.6 ms with a few
prefix tokens per layer (litgpt 2685705, resource tables, A100)."""
SHARDED_LAUNCH_FACTOR: Final = 1.6
"""Launch time under FSDP, whose hooks gather and free every layer, relative to one GPU: 8.9 ms per layer and step on
two and four GPUs, 5.6 ms on one GPU that also recomputes each layer (litgpt 2685705, resource tables, A100)."""
FUSED_BACKWARD_RATIO: Final = 2.5
"""Ratio of backward to forward time of fused attention: five products instead of two, one of them recomputed (Dao 2023,
arXiv 2307.08691 §3.1)."""
_PLAIN_BACKWARD_RATIO: Final = 2.0
_BYTES: Final[dict[InputBits, float]] = {"32": 4, "19": 4, "16": 2, "8": 2, "4": 2}
"""Bytes per element that matrix products read and write, by input width; narrow formats are cast from 16 bits."""


_CAST_BYTES: Final = 5
_TRANSPOSED_BYTES: Final = 2
"""Bytes moved per element of a matrix that is cast to fp8 at its current scale: read in 16 bits for its largest value,
read again and written in 8; and for a transposed copy of it, read and written in 8.

**Source**: pytorch/ao float8/float8_linear.py `matmul_with_hp_or_float8_args`: inputs and weights are cast in the
forward pass, and inputs, weights and derivatives in the backward pass, where the gradient of the weights needs
derivatives and inputs by column.
"""


_NARROW_ATTENTION_GAIN: Final[dict[Family, float]] = {"Hopper SXM": 1.6, "Hopper PCIe": 1.6}
"""Speed of attention in fp8 relative to 16 bits, with products at twice the rate and softmax in fp32: 1.2 and 0.74
PFLOP/s on an H100 (Shah et al. 2024, arXiv 2407.08608). On other GPUs none is assumed."""


class GpuRates(NamedTuple):
    """Dense rates and memory bandwidth of a GPU, and the share of them that each kind of work achieves.

    `narrow` is the rate of products inside layers, `matrix` that of attention and the head; `memory` what element-wise
    operations reach of `bandwidth`; `source` names the measurements that the shares are fitted to.
    """

    matrix: float
    narrow: float
    bandwidth: float
    memory: float
    matrix_share: float
    narrow_share: float
    attention_share: float
    matrix_bytes: float
    gpu: Gpu
    wide_kernel: str
    narrow_kernel: str
    source: str
    efficiency: TrainingEfficiency


def gpu_rates(gpu: Gpu, compute: Compute, setting: TimeSetting, efficiency: TrainingEfficiency) -> GpuRates | str:
    """Return the rates of `gpu` with the compute precision `compute` and the formats of products in `setting`.

    If the catalog lacks a needed figure, the result is a sentence that names it.
    """
    wide = wide_format(gpu, compute)
    chosen: MatrixFormat = setting.matrix_format or ("fp8" if compute == "fp8" else wide)
    wide_rate, chosen_rate = gpu.rate(wide), gpu.rate(chosen)
    if wide_rate is None or chosen_rate is None:
        return f"The catalog has no dense rate for the {gpu.name} in {chosen if wide_rate else wide}."
    if gpu.bandwidth_bytes_per_s is None:
        return f"The catalog has no memory bandwidth for the {gpu.name}."
    family, units = family_of(gpu), matrix_family(gpu)
    return GpuRates(
        matrix=wide_rate.ops_per_s,
        narrow=chosen_rate.ops_per_s,
        bandwidth=gpu.bandwidth_bytes_per_s,
        memory=gpu.bandwidth_bytes_per_s * memory_share(efficiency, family),
        matrix_share=_reached_matrix_share(gpu, efficiency, INPUT_BITS[wide]),
        narrow_share=_reached_matrix_share(gpu, efficiency, INPUT_BITS[chosen]),
        attention_share=attention_share(efficiency, gpu) * _attention_gain(family, setting),
        matrix_bytes=_BYTES[INPUT_BITS[wide]],
        gpu=gpu,
        wide_kernel=_KERNELS[INPUT_BITS[wide]],
        narrow_kernel=_KERNELS[INPUT_BITS[chosen]],
        source=class_source(units, INPUT_BITS[chosen]),
        efficiency=efficiency,
    )


def _attention_gain(family: Family, setting: TimeSetting) -> float:
    """Return the speed of attention in the format of `setting` relative to that in 16 bits."""
    return _NARROW_ATTENTION_GAIN.get(family, 1.0) if setting.attention_format else 1.0


def _reached_matrix_share(gpu: Gpu, efficiency: TrainingEfficiency, bits: InputBits) -> float:
    share = gpu_matrix_share(efficiency, gpu, bits)
    return share_within_power_limit(gpu, share) if bits in ("16", "19") else limited_share(gpu, share)


def wide_format(gpu: Gpu, compute: Compute) -> MatrixFormat:
    """Return the format of attention and output head; GPUs without bf16 or tf32, or with a slow fp16, use fp32.

    **Source**: NVIDIA architecture whitepapers: bf16 and tf32 since Ampere; fp16: `reach.dense_ops_per_s`.
    """
    asked: MatrixFormat = "fp32"
    if compute in ("bf16", "amp-bf16", "fp8"):
        asked = "bf16"
    elif compute in ("fp16", "amp-fp16"):
        asked = "fp16"
    elif compute == "tf32":
        asked = "tf32"
    rate, wide = gpu.rate(asked), gpu.rate("fp32")
    if wide is None:
        return asked
    emulated = asked in ("bf16", "tf32") if rate is None else rate.ops_per_s < wide.ops_per_s
    return "fp32" if emulated else asked


class MicroBatchTime(NamedTuple):
    """Seconds of one micro-batch by kind of work: forward and backward passes, recomputation and launches.

    `recomputable_seconds` is the time of a recomputation at the cost of a first pass, `size_share` the rate of the
    layers' products relative to large ones, `other_bytes` what casts to fp8 and the merging of ring attention's parts
    move, `visits` how often quantised matrices are unpacked, `moves_per_byte` how often a saved byte is moved in the
    forward pass, and `attention_backward_ratio` the time of attention's backward pass relative to its forward pass.
    `images` is the time of a frozen vision tower.
    """

    products_forward: float
    products_backward: float
    attention_forward: float
    attention_backward: float
    elements_forward: float
    elements_backward: float
    head: float
    recomputed: float
    dequantised: float
    host: float
    recomputable_seconds: float
    size_share: float
    other_bytes: float
    visits: int
    moves_per_byte: float
    attention_backward_ratio: float
    images: float = 0.0

    @property
    def device_seconds(self) -> float:
        """Return the GPU's computation time in seconds, without waits for the host."""
        layers = self.products_forward + self.products_backward + self.attention_forward + self.attention_backward
        elements = self.elements_forward + self.elements_backward
        return layers + elements + self.head + self.recomputed + self.dequantised + self.images

    @property
    def seconds(self) -> float:
        """Return the seconds of GPU and host together: long kernels hide the launches queued behind them.

        **Formula**: √(device² + host²), the longer of both where one is much longer.

        **Source**: litgpt 2685705, resource tables: steps of one to four short samples, with layers of three widths.
        """
        return hypot(self.device_seconds, self.host)

    @property
    def hidden_host_seconds(self) -> float:
        """Return the seconds of launches that overlap with the GPU's work."""
        return self.host - (self.seconds - self.device_seconds)


def micro_batch_time(
    batch: MicroBatch, rates: GpuRates, checkpointing: Checkpointing, *, fused_attention: bool
) -> MicroBatchTime:
    """Return the time of the micro-batch `batch` on a GPU with `rates`.

    **Formula**: forward and 1 + w times forward; w is 1 where weights have gradients. Selective checkpoints compute
    attention and element-wise operations again, full ones the whole layer.
    """
    efficiency, work = rates.efficiency, batch.forward
    forward = sum([product_seconds(product, rates) for product in work.products])
    attention = work.attention_flops / (rates.matrix * rates.attention_share)
    times = efficiency.fused_memory_passes if batch.fused else efficiency.memory_passes
    elements = (batch.saved_bytes * times + batch.cast_bytes) / rates.memory
    casts = [fp8_cast_bytes(product) for product in work.products] if batch.casts_separately else []
    narrowed, narrowed_again = sum([cast[0] for cast in casts]), sum([cast[1] for cast in casts])
    head = sum([product_seconds(product, rates, wide=True) for product in work.head])
    attention_backward_ratio = FUSED_BACKWARD_RATIO if fused_attention else _PLAIN_BACKWARD_RATIO
    full = checkpointing == "full"
    recomputable_seconds = 0.0 if checkpointing == "none" else attention + elements + (forward if full else 0.0)
    visits = 3 if full else 2
    unpacked = batch.quantised_bytes + batch.unpacked_bytes if batch.quantised_bytes else 0
    return MicroBatchTime(
        products_forward=forward,
        products_backward=forward * (1 + batch.weight_gradient_share),
        attention_forward=attention,
        attention_backward=attention * attention_backward_ratio,
        elements_forward=elements + (narrowed + batch.ring_sum_bytes) / rates.memory,
        elements_backward=elements * efficiency.extra_backward_passes
        + (narrowed_again + batch.ring_sum_bytes) / rates.memory,
        head=head * (2 + batch.weight_gradient_share) + batch.logit_bytes / rates.memory,
        recomputed=efficiency.recomputed_fraction * recomputable_seconds,
        dequantised=visits * unpacked / (rates.bandwidth * DEQUANTISED_SHARE),
        host=_launch_seconds(batch, efficiency) * (4 if full else 3),
        recomputable_seconds=recomputable_seconds,
        size_share=_mean_size_share(work.products, rates),
        other_bytes=narrowed + narrowed_again + 2 * batch.ring_sum_bytes,
        visits=visits,
        moves_per_byte=times,
        attention_backward_ratio=attention_backward_ratio,
        images=_frozen_tower_seconds(batch.frozen_tower, rates),
    )


def _frozen_tower_seconds(work: ForwardWork | None, rates: GpuRates) -> float:
    """Return the seconds of the matrix products and the attention of a tower that runs without a backward pass."""
    if work is None:
        return 0.0
    products = sum([product_seconds(product, rates) for product in work.products])
    return products + work.attention_flops / (rates.matrix * rates.attention_share)


def _launch_seconds(batch: MicroBatch, efficiency: TrainingEfficiency) -> float:
    """Return the seconds that the host needs to launch a forward pass; a backward pass takes twice as long."""
    launched = (
        efficiency.fused_layer_launch_seconds if batch.compiled or batch.graphs else efficiency.layer_launch_seconds
    ) * batch.forward.layers
    launched += 0.0 if batch.graphs == "all" else efficiency.expert_launch_seconds * batch.forward.expert_layers
    return launched * (ADAPTED_LAUNCH_FACTOR if batch.adapted else 1) * (SHARDED_LAUNCH_FACTOR if batch.sharded else 1)


def product_seconds(product: MatrixProduct, rates: GpuRates, *, wide: bool = False) -> float:
    """Return the seconds of matrix products of one shape: the longer of computing and moving bytes.

    **Formula**: n · max(2 · m · k · n ÷ (peak · η · σ), bytes ÷ bandwidth).

    **Source**: Williams et al. 2009 (roofline).
    """
    efficiency = rates.efficiency
    peak, share = (rates.matrix, rates.matrix_share) if wide else (rates.narrow, rates.narrow_share)
    if product.expert:
        share *= efficiency.experts_fraction
    computing = product.flops / (peak * share * size_share(product, rates, wide=wide))
    return max(computing, product.moved_bytes(rates.matrix_bytes) / rates.memory)


def fp8_cast_bytes(product: MatrixProduct) -> tuple[float, float]:
    """Return the bytes that casting the matrices of `product` to fp8 moves in a forward and in a backward pass.

    **Formula**: 5 · (inputs + weights) forward, 5 · (inputs + weights + derivatives) + 2 · (inputs + derivatives)
    backward.
    """
    inputs, weights = product.rows * product.inputs, product.inputs * product.outputs
    streams = inputs + product.rows * product.outputs
    backward = _CAST_BYTES * (streams + weights) + _TRANSPOSED_BYTES * streams
    return product.number * _CAST_BYTES * (inputs + weights), product.number * backward


_LARGE_ROWS: Final = 16_384
_EXPERT_COLUMNS: Final = 65_536
"""Columns of routed experts together, which one kernel multiplies, so that the blocks of all fill the GPU."""
_KERNELS: Final[dict[InputBits, str]] = {"32": "bf16", "19": "bf16", "16": "bf16", "8": "fp8", "4": "nvfp4"}
"""Format of the measured products that stand for each input width: products in fp32 and tf32, which were not measured,
are taken to depend on their size as those in bf16 do."""


def size_share(product: MatrixProduct, rates: GpuRates, *, wide: bool = False) -> float:
    """Return the rate of a matrix product relative to that of one with as many columns and many rows.

    **Formula**: (t(16,384) ÷ 16,384) ÷ (t(rows) ÷ rows), and no more than 1.

    **Source**: measured products on this GPU, its family or all GPUs (`planner.performance.kernels`).
    """
    columns = max(product.outputs, _EXPERT_COLUMNS) if product.expert else product.outputs
    kernel, library = rates.wide_kernel if wide else rates.narrow_kernel, rates.efficiency.size_dependence_engine
    if library is None or product.rows >= _LARGE_ROWS:
        return 1.0
    return _size_share(rates.gpu, library, kernel, product.rows, columns, product.inputs)


def _size_share(gpu: Gpu, library: str, kernel: str, rows: float, columns: int, inner: int) -> float:
    own = matmul_time(gpu, library, kernel, rows, columns, inner)
    large = matmul_time(gpu, library, kernel, _LARGE_ROWS, columns, inner)
    return min(large.seconds / _LARGE_ROWS / (own.seconds / rows), 1.0) if own and large else 1.0


def _mean_size_share(products: tuple[MatrixProduct, ...], rates: GpuRates) -> float:
    """Return the rate of all `products` together relative to that of large ones."""
    work = sum([product.flops for product in products])
    return work / sum([product.flops / size_share(product, rates) for product in products]) if work else 1.0
