"""Networks of many families, each traced as a CUDA build runs it and put beside the formulas."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import pytest

from planner.memory.estimate import fullest_timeline
from planner.memory.inference.timeline import inference_timeline
from planner.memory.precision import training_precision
from planner.memory.software import training_memory
from planner.memory.training.full import head_matrix_elements
from planner.models.architecture import Architecture
from planner.models.readers.config_json import read_config
from planner.trace.analysis.memory import facts_of
from planner.trace.recording import CATEGORIES, TraceRecording
from planner.trace.request import TraceRequest
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference, Training

COMMON: dict[str, Any] = {
    "num_hidden_layers": 4,
    "hidden_size": 512,
    "intermediate_size": 1408,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 8000,
    "max_position_embeddings": 1024,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MULTI_HEAD = {"num_key_value_heads": 8}
PLAIN_MLP = MULTI_HEAD | {"intermediate_size": 2048}
LATENT = MULTI_HEAD | {
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 256,
    "first_k_dense_replace": 1,
    "q_lora_rank": 128,
    "kv_lora_rank": 64,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
}
ROUTED = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 256}
T5 = {
    "d_model": 512,
    "d_ff": 1408,
    "d_kv": 64,
    "num_layers": 4,
    "num_decoder_layers": 4,
    "num_heads": 8,
    "decoder_start_token_id": 0,
}
BART = {
    "d_model": 512,
    "encoder_layers": 4,
    "decoder_layers": 4,
    "encoder_ffn_dim": 2048,
    "decoder_ffn_dim": 2048,
    "encoder_attention_heads": 8,
    "decoder_attention_heads": 8,
}
DROPOUTS = (
    "attn_pdrop",
    "embd_pdrop",
    "resid_pdrop",
    "hidden_dropout",
    "attention_dropout",
    "dropout",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
)


@dataclass(frozen=True, eq=False)
class Family:
    """A model type, with what its configuration has beside or instead of the common sizes."""

    model_type: str
    sizes: dict[str, Any] = field(default_factory=dict)
    dropout: bool = False

    def config(self) -> Any:
        """Return its configuration."""
        from transformers import AutoConfig

        config = AutoConfig.for_model(self.model_type, **COMMON | self.sizes)
        for name in () if self.dropout else DROPOUTS:
            if hasattr(config, name):
                setattr(config, name, 0.0)
        return config


FAMILIES = {
    "llama": Family("llama"),
    "qwen2": Family("qwen2"),
    "qwen3": Family("qwen3", {"head_dim": 64}),
    "mistral": Family("mistral", {"sliding_window": 64}),
    "gemma3": Family("gemma3_text", {"head_dim": 64, "sliding_window": 64}),
    "phi3": Family("phi3"),
    "olmo2": Family("olmo2"),
    "gpt2": Family("gpt2", PLAIN_MLP),
    "gpt2-dropout": Family("gpt2", PLAIN_MLP, dropout=True),
    "gpt_neox": Family("gpt_neox", PLAIN_MLP),
    "mixtral": Family("mixtral", {"num_local_experts": 4}),
    "deepseek_v3": Family("deepseek_v3", LATENT),
    "falcon": Family("falcon", MULTI_HEAD),
    "bert": Family("bert", MULTI_HEAD),
    "bert-dropout": Family("bert", MULTI_HEAD, dropout=True),
    "gemma": Family("gemma", {"head_dim": 64}),
    "gemma2": Family("gemma2", {"head_dim": 64}),
    "vaultgemma": Family("vaultgemma", {"head_dim": 64}),
    "cwm": Family("cwm", {"head_dim": 64, "sliding_window": 64}),
    "jais2": Family("jais2", MULTI_HEAD),
    "nemotron": Family("nemotron", {"num_key_value_heads": 2}),
    "phi": Family("phi", MULTI_HEAD),
    "starcoder2": Family("starcoder2"),
    "stablelm": Family("stablelm"),
    "granite": Family("granite"),
    "glm": Family("glm", {"head_dim": 64}),
    "glm4": Family("glm4", {"head_dim": 64}),
    "cohere": Family("cohere"),
    "opt": Family("opt", PLAIN_MLP | {"ffn_dim": 2048, "word_embed_proj_dim": 512}),
    "bloom": Family("bloom", PLAIN_MLP),
    "gptj": Family("gptj", PLAIN_MLP | {"rotary_dim": 32}),
    "gpt_bigcode": Family("gpt_bigcode", PLAIN_MLP),
    "qwen2_moe": Family("qwen2_moe", ROUTED | {"shared_expert_intermediate_size": 512}),
    "qwen3_moe": Family("qwen3_moe", ROUTED | {"head_dim": 64}),
    "olmoe": Family("olmoe", ROUTED),
    "gpt_oss": Family("gpt_oss", {"head_dim": 64, "num_local_experts": 8, "num_experts_per_tok": 2}),
    "llama4": Family("llama4_text", {"head_dim": 64, "num_local_experts": 4, "intermediate_size_mlp": 1408}),
    "roberta": Family("roberta", MULTI_HEAD | {"max_position_embeddings": 1026}),
    "distilbert": Family("distilbert", {"dim": 512, "n_heads": 8, "n_layers": 4, "hidden_dim": 2048}),
    "t5": Family("t5", T5),
    "mt5": Family("mt5", T5),
    "bart": Family("bart", BART),
    "whisper": Family("whisper", BART | {"max_target_positions": 1024}),
    "vit": Family("vit", MULTI_HEAD),
    "dinov3": Family("dinov3_vit", MULTI_HEAD | {"num_register_tokens": 4}),
    "eurobert": Family("eurobert"),
    "jina": Family("jina_embeddings_v3", MULTI_HEAD),
    "mistral4": Family("mistral4", LATENT),
}
SHAPES = {"1x128": (1, 128), "2x512": (2, 512), "8x256": (8, 256)}


class Comparison(NamedTuple):
    """Bytes by the trace and by the formulas: the peak of a step, and what a forward pass of the body keeps."""

    traced_peak: int
    predicted_peak: int
    traced_saved: int
    predicted_saved: int


def compare(family: Family, workload: Training, count: int = 1) -> Comparison:
    """Return what the trace and the formulas say of `workload`, which has a micro-batch and a length, on a card."""
    config = family.config()
    architecture = read_config(config.to_dict(), family.model_type)
    request = _request(family.model_type, config.to_json_string(), **_step(workload), **_ranks(workload, count))
    recording = _record(request)
    return Comparison(
        traced_peak=facts_of(recording).allocated_bytes,
        predicted_peak=_predicted_peak(architecture, with_defaults(workload, architecture, count)),
        traced_saved=kept_by_the_body(recording, "activations", "inputs"),
        predicted_saved=_predicted_saved(architecture, workload),
    )


def traced(family: Family, workload: Training) -> TraceRecording:
    """Return the recording of a step of `workload`, all of whose defaults are filled in."""
    amp = workload.compute.startswith("amp-")
    how = _step(workload) | {"dtype": None if amp and workload.weights == "fp32" else workload.weights}
    if workload.lora is not None:
        targets = workload.lora.targets
        how["lora"] = {
            "rank": workload.lora.rank,
            "targets": (targets,) if isinstance(targets, str) else targets,
            "dtype": workload.lora.adapter_dtype,
            "dropout": workload.lora.dropout,
        }
    return _record(_request(family.model_type, family.config().to_json_string(), **how))


def compare_answers(family: Family, workload: Inference) -> dict[str, tuple[int, int]]:
    """Return the peaks of prefill and of decoding, by the trace and by the formulas, with all sizes in `workload`."""
    config = family.config()
    architecture = read_config(config.to_dict(), family.model_type)
    request = _request(family.model_type, config.to_json_string(), **_answers(workload))
    traced = {phase.name: phase.bytes for phase in facts_of(_record(request)).phases}
    predicted: dict[str, int] = {}
    for snapshot in inference_timeline(architecture, with_defaults(workload, architecture, count=1)).snapshots:
        predicted[snapshot.name] = max(predicted.get(snapshot.name, 0), snapshot.total)
    return {name: (traced[name], predicted[name]) for name in ("prefill", "decode")}


def compare_reading(family: Family, workload: Inference) -> tuple[int, int]:
    """Return the peak of an image encoder's forward pass, by the trace and by the formulas."""
    config = family.config()
    architecture = read_config(config.to_dict(), family.model_type)
    asked = {"batch": workload.batch, "dtype": workload.compute, "attention": workload.attention}
    recording = _record(_request(family.model_type, config.to_json_string(), **asked))
    found = inference_timeline(architecture, with_defaults(workload, architecture, count=1)).snapshots
    return facts_of(recording).allocated_bytes, max(snapshot.total for snapshot in found)


def _record(request: TraceRequest) -> TraceRecording:
    """Return the recording of `request`, made with the shape rules of the traces before it, so that it takes less time.

    A rule follows from an operator and its arguments, and all requests are for the same emulated card.
    """
    from planner.trace.worker.fake_tensors import values
    from planner.trace.worker.job import record_trace

    rules = shape_rules()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "ShapeRules", lambda: rules)
        return record_trace(request, lambda *_: None)


@cache
def shape_rules() -> Any:
    """Return the shape rules that all traces add to."""
    from planner.trace.worker.fake_tensors.values import ShapeRules

    return ShapeRules()


def _request(model_type: str, config: str, **changes: Any) -> TraceRequest:
    target = {"kind": "config", "place": model_type, "config": config}
    return TraceRequest.model_validate({"target": target, **changes})


def _step(workload: Training) -> dict[str, Any]:
    amp = workload.compute.startswith("amp-")
    return {
        "task": "training",
        "batch": workload.micro_batch,
        "sequence_length": workload.sequence_length,
        "autocast": workload.compute.removeprefix("amp-") if amp else None,
        "dtype": None if amp else workload.compute,
        "checkpointing": workload.activation_checkpointing,
        "attention": workload.attention,
        "optimizer_arguments": ({"name": "fused", "value": True},),
    }


def _ranks(workload: Training, count: int) -> dict[str, Any]:
    """Return the ranks that replicate or shard the network, as the trace asks for them."""
    if count == 1:
        return {}
    strategy = "fsdp" if workload.parallel.zero == 3 else "ddp"
    resharding = workload.parallel.reshard_after_forward
    return {"parallel": {"ranks": count, "strategy": strategy, "reshard_after_forward": resharding}}


def _predicted_peak(architecture: Architecture, workload: Training) -> int:
    """Return the most bytes that PyTorch's allocator hands out: what NCCL holds is not traced."""
    found = fullest_timeline(architecture, workload)
    return max(snapshot.total - (0 if snapshot.name == "load" else found.outside_bytes) for snapshot in found.snapshots)


def _answers(workload: Inference) -> dict[str, Any]:
    return {
        "task": "inference",
        "batch": workload.batch,
        "sequence_length": workload.prompt_length,
        "decode_tokens": (workload.context_length or 0) - (workload.prompt_length or 0),
        "dtype": workload.compute,
        "attention": workload.attention,
    }


def kept_by_the_body(recording: TraceRecording, *categories: str) -> int:
    """Return the bytes of `categories` that are alive when the last forward pass ends, logits and their kin aside."""
    end = max(span.end for span in recording.spans if span.name in ("forward", "loss"))
    columns = recording.allocations
    rows = zip(columns.bytes, columns.made, columns.freed, columns.category, columns.shape, strict=True)
    return sum(
        count_bytes
        for count_bytes, made, freed, category, shape in rows
        if made < end
        and (freed < 0 or freed >= end)
        and CATEGORIES[category] in categories
        and str(COMMON["vocab_size"]) not in recording.shapes[shape]
    )


def _predicted_saved(architecture: Architecture, workload: Training) -> int:
    filled = with_defaults(workload, architecture, count=1)
    setup = training_memory(filled.profile).setup(architecture, filled)
    casts = sum(term.bytes for term in setup.casts.loss)
    head = head_matrix_elements(architecture) * training_precision(workload).compute_bytes
    return setup.saved.total + (casts - head if casts else 0)
