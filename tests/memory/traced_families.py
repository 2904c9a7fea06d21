"""Networks of many families, each traced as a CUDA build runs it and put beside the formulas."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from planner.memory.precision import training_precision
from planner.memory.saved import saved_activations
from planner.memory.tensors import parameter_counts
from planner.memory.training import training_moments
from planner.models.architecture import Architecture
from planner.models.readers.config_json import read_config
from planner.trace.analysis.summary import facts_of
from planner.trace.recording import CATEGORIES, Recording
from planner.trace.request import TraceRequest
from planner.workload.defaults import with_defaults
from planner.workload.workload import Training

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
}
SHAPES = {"1x128": (1, 128), "2x512": (2, 512), "8x256": (8, 256)}


class Comparison(NamedTuple):
    """Bytes by the trace and by the formulas: the peak of a step, and what a forward pass of the body keeps."""

    traced_peak: int
    predicted_peak: int
    traced_saved: int
    predicted_saved: int


def compare(family: Family, workload: Training) -> Comparison:
    """Return what the trace and the formulas say of `workload`, which has a micro-batch and a length."""
    from planner.trace.worker.job import record

    config = family.config()
    architecture = read_config(config.to_dict(), family.model_type)
    recording = record(_request(family.model_type, config.to_json_string(), workload), lambda *_: None)
    return Comparison(
        traced_peak=facts_of(recording).allocated_bytes,
        predicted_peak=training_moments(architecture, with_defaults(workload, architecture, count=1)).peak().total,
        traced_saved=_kept_by_the_body(recording),
        predicted_saved=_predicted_saved(architecture, workload),
    )


def _request(model_type: str, config: str, workload: Training) -> TraceRequest:
    amp = workload.compute.startswith("amp-")
    return TraceRequest.model_validate(
        {
            "target": {"kind": "config", "place": model_type, "config": config},
            "task": "training",
            "batch": workload.micro_batch,
            "sequence_length": workload.sequence_length,
            "autocast": workload.compute.removeprefix("amp-") if amp else None,
            "dtype": None if amp else workload.compute,
            "checkpointing": workload.activation_checkpointing,
            "attention": workload.attention,
            "optimizer_arguments": ({"name": "fused", "value": True},),
        }
    )


def _kept_by_the_body(recording: Recording) -> int:
    """Return the bytes of activations that are alive when the last forward pass ends, logits and their kin aside."""
    end = max(span.end for span in recording.spans if span.name in ("forward", "loss"))
    columns = recording.allocations
    rows = zip(columns.bytes, columns.made, columns.freed, columns.category, columns.shape, strict=True)
    return sum(
        count_bytes
        for count_bytes, made, freed, category, shape in rows
        if made < end
        and (freed < 0 or freed >= end)
        and CATEGORIES[category] == "activations"
        and str(COMMON["vocab_size"]) not in recording.shapes[shape]
    )


def _predicted_saved(architecture: Architecture, workload: Training) -> int:
    precision = training_precision(workload)
    saved = saved_activations(
        architecture,
        workload.micro_batch,
        workload.sequence_length or 0,
        precision,
        workload.attention,
        workload.activation_checkpointing == "full",
    )
    kept_casts = precision.autocast and workload.activation_checkpointing == "none"
    casts = 2 * parameter_counts(architecture).cast if kept_casts else 0
    return saved.total + casts
