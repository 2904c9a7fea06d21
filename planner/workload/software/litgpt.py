"""Capabilities of LitGPT in training and in generating."""

from typing import Final

from planner.workload.software.software import ServingSupport, Software, TrainingSupport

LITGPT: Final = Software(
    name="litgpt",
    module="litgpt",
    title="LitGPT",
    version="LitGPT 0.3 to 0.4",
    training=TrainingSupport(
        loss="chunked",
        compute=("fp32", "tf32", "bf16", "fp16", "amp-bf16", "amp-fp16"),
        quantised_compute=("bf16", "fp16"),  # it keeps the rest in 16 bits, where transformers keeps it in fp32
        most_cards=1,
    ),
    serving=ServingSupport(
        cache_formats=("fp32", "bf16", "fp16"),
        weight_formats=("bf16", "fp16", "fp32", "nf4", "nf4-dq"),
        networks=("decoder",),
        ignored_fields=("prompt_logits", "attention"),
    ),
)
