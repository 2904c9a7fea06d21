"""Memory-saving changes of llama.cpp."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from planner.memory.software.llama_cpp import layers_by_memory
from planner.models.architecture import Architecture
from planner.plan.advice.change import ChangeSequence, PlanChange, smaller_chunks
from planner.plan.advice.inference_changes import PLAIN_FORMATS
from planner.workload.software.llama_cpp import LLAMA_CPP, LlamaCppSettings
from planner.workload.workload import Inference

_GGUF: Final = "llama.cpp tools/quantize/README.md: Q4_K_M has about 4.9 bits per weight"
_Q8_CACHE: Final = "ikawrakow/ik_llama.cpp#173: a KV cache in q8_0 is nearly lossless"
_Q4_CACHE: Final = "lmstudio-ai/lmstudio-bug-tracker#1740: users report worse answers with a KV cache in q4_0"
_OFFLOAD: Final = "llama.cpp --n-gpu-layers: number of layers on the GPU; the others stay in RAM and run on the CPU"
_EXPERTS: Final = (
    "llama.cpp --n-cpu-moe and --override-tensor: routed experts of these layers are in RAM and run on the CPU"
)
_PIECES: Final = "llama.cpp --ubatch-size: number of prompt tokens that are processed at a time"
_TOKENS: Final = 512  # llama.cpp's default: a lower limit is always a change

CHANGES: Final[tuple[PlanChange, ...]] = (
    PlanChange(
        name="Q4_K_M",
        lever="weights",
        sentence="Run a GGUF file with about 4.9 bits per weight.",
        source=_GGUF,
        settings={"weights": "Q4_K_M"},
        applies={"profile": (LLAMA_CPP.name,), "weights": ("F32", "F16", "BF16", "Q8_0", "Q6_K")},
        risk="small",
        needs="a Q4_K_M file of the model",
    ),
    PlanChange(
        name="KV cache in q8_0",
        lever="cache",
        sentence="Quantize the KV cache to 8 bits.",
        source=_Q8_CACHE,
        settings={"kv_cache": "q8_0"},
        applies={"kv_cache": PLAIN_FORMATS, "profile": (LLAMA_CPP.name,)},
        risk="small",
        needs="flash attention",
    ),
    PlanChange(
        name="KV cache in q4_0",
        lever="cache",
        sentence="Quantize the KV cache to 4 bits.",
        source=_Q4_CACHE,
        settings={"kv_cache": "q4_0"},
        applies={"kv_cache": (*PLAIN_FORMATS, "q8_0"), "profile": (LLAMA_CPP.name,)},
        risk="real",
        needs="flash attention",
    ),
)


def change_sequences(workload: Inference, architecture: Architecture) -> Iterator[ChangeSequence]:
    """Yield the changes of llama.cpp to smaller prompt chunks, and to fewer layers on the GPU."""
    settings = workload.engine
    chunk_tokens = settings.n_ubatch if isinstance(settings, LlamaCppSettings) else None
    yield smaller_chunks("n_ubatch", chunk_tokens or _TOKENS, _PIECES)
    if architecture.expert_layers:
        yield _experts_in_ram_changes(workload, architecture)
    yield _fewer_layers_changes(workload, architecture)


def _experts_in_ram_changes(workload: Inference, architecture: Architecture) -> ChangeSequence:
    """Return the changes to routed experts in RAM, of few layers first.

    On one GPU they are the experts of the first layers, on several those of the first layers of each GPU, in
    proportion to the layers with experts that it holds.
    """
    settings = workload.settings_as(LlamaCppSettings)
    experts = architecture.expert_layers
    present = sum(settings.has_experts_in_ram(layer) for layer in experts)
    cards = _layers_by_card(workload, architecture)

    def change_to_layers(count: int) -> PlanChange:
        if len(cards) == 1:
            own: dict[str, object] = {"n_cpu_moe": experts[count - 1] + 1, "cpu_moe_layers": ()}
        else:
            parallel = {"pipeline": len(cards), "pipeline_layers": tuple(map(len, cards))}
            own = {"n_cpu_moe": None, "cpu_moe_layers": _spread_layers(experts, cards, count)}
        return PlanChange(
            name=f"experts of {count:,} of {len(experts):,} layers in RAM",
            lever="offload",
            sentence="Keep these routed experts in RAM, where the CPU runs them; everything else stays on the GPU.",
            source=_EXPERTS,
            settings={"engine": own, **({"parallel": parallel} if len(cards) > 1 else {})},
            cost="time",
            slower_by_about=None,
            costs="tokens wait for RAM",
            needs="RAM for the experts",
            keeps="the outputs",
        )

    return ChangeSequence("offload", range(present + 1, len(experts) + 1), change_to_layers)


def _layers_by_card(workload: Inference, architecture: Architecture) -> list[range]:
    """Return the layers of each GPU, which follow each other."""
    stages = workload.parallel.pipeline
    counts = workload.parallel.pipeline_layers or layers_by_memory(architecture.depth, (1,) * stages)
    ends = list(accumulate(counts))
    return [range(end - count, end) for end, count in zip(ends, counts, strict=True)]


def _spread_layers(experts: tuple[int, ...], cards: list[range], count: int) -> tuple[int, ...]:
    """Return `count` of the layers with `experts`: the first ones of each GPU, in proportion to those that it has."""
    own = [[layer for layer in experts if layer in card] for card in cards]
    ends = [count * sum(map(len, own[: card + 1])) // len(experts) for card in range(len(cards))]
    taken = (layers[: end - start] for layers, start, end in zip(own, [0, *ends], ends, strict=False))
    return tuple(layer for layers in taken for layer in layers)


def _fewer_layers_changes(workload: Inference, architecture: Architecture) -> ChangeSequence:
    """Return the changes to fewer layers on the GPU, the others in RAM."""
    layers = architecture.depth + 1
    present = layers if workload.gpu_layers is None else min(workload.gpu_layers, layers)

    def change_to_layers(count: int) -> PlanChange:
        return PlanChange(
            name=f"{count:,} of {layers:,} layers on the GPU",
            lever="offload",
            sentence="Keep the other layers in RAM, where the CPU runs them.",
            source=_OFFLOAD,
            settings={"gpu_layers": count},
            cost="much-time",
            slower_by_about=None,
            costs=f"{layers - count:,} layers run on the CPU",
            needs="RAM for the other layers",
            keeps="the outputs",
        )

    return ChangeSequence("offload", range(present - 1, -1, -1), change_to_layers)
