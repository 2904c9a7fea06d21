"""Tiny networks of transformers that really run on the CPU, with the live bytes of each phase."""

import gc
from dataclasses import dataclass, field
from typing import Any

import torch
from live_bytes import LiveBytes

from planner.models.architecture import Architecture
from planner.models.readers.config_json import read_config
from planner.workload.workload import Inference, Training

SIZES: dict[str, Any] = {
    "num_hidden_layers": 4,
    "hidden_size": 128,
    "intermediate_size": 352,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 2_000,
    "max_position_embeddings": 512,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True, eq=False)
class Network:
    """A model type of transformers with what its configuration has beside, or instead of, the common sizes."""

    model_type: str
    sizes: dict[str, Any] = field(default_factory=dict)

    def config(self) -> Any:
        """Return its configuration, without dropout: the masks on the CPU are not those on a card."""
        from transformers import AutoConfig

        config = AutoConfig.for_model(self.model_type, **SIZES | self.sizes)
        for dropout in ("attn_pdrop", "embd_pdrop", "resid_pdrop", "attention_dropout"):
            if hasattr(config, dropout):
                setattr(config, dropout, 0.0)
        return config

    def architecture(self) -> Architecture:
        """Return it as the estimator sees it."""
        return read_config(self.config().to_dict(), self.model_type)

    def build(self, weights: str, attention: str, live: LiveBytes) -> torch.nn.Module:
        """Make it with parameters in the format `weights`, counted by `live`."""
        from transformers import AutoModelForCausalLM

        torch.set_default_dtype(DTYPES[weights])
        try:
            model = AutoModelForCausalLM.from_config(self.config(), attn_implementation=attention)
        finally:
            torch.set_default_dtype(torch.float32)
        for tensor in (*model.parameters(), *model.buffers()):
            live.watch(tensor)
        gc.collect()
        return model


def training_peak(network: Network, workload: Training) -> int:
    """Return the most bytes alive in two optimizer steps of `workload`, whose open choices are made."""
    with LiveBytes() as live:
        model = network.build(workload.weights, workload.attention, live).train()
        if workload.activation_checkpointing == "full":
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        tokens = torch.zeros(workload.micro_batch, workload.sequence_length, dtype=torch.long)
        live.reset_peak()
        for _ in range(2):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=workload.compute == "amp-bf16"):
                output = model(input_ids=tokens, labels=tokens, use_cache=False)
            output.loss.backward()
            del output
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return live.peak


def inference_peaks(network: Network, workload: Inference) -> dict[str, int]:
    """Return the most bytes alive in the prefill and in the decoding of `workload`, whose open choices are made."""
    with LiveBytes() as live, torch.no_grad():
        model = network.build(workload.compute, workload.attention, live).eval()
        live.reset_peak()
        cache = _one_pass(model, torch.zeros(workload.batch, workload.prompt_length, dtype=torch.long), None)
        peaks = {"prefill": live.peak}
        live.reset_peak()
        for _ in range(workload.context_length - workload.prompt_length):
            cache = _one_pass(model, torch.zeros(workload.batch, 1, dtype=torch.long), cache)
        return peaks | {"decode": live.peak}


def _one_pass(model: torch.nn.Module, tokens: torch.Tensor, cache: Any) -> Any:
    """Do what `generate` does for one token: a forward pass, and the last logits copied to fp32."""
    output = model(input_ids=tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)
    output.logits[:, -1].to(dtype=torch.float32, copy=True)
    return output.past_key_values
