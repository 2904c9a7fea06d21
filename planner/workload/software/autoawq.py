"""Inference capabilities of AutoAWQ."""

from typing import Final

from planner.workload.software.software import ServingSupport, Software

AUTOAWQ: Final = Software(
    name="autoawq",
    module="autoawq",
    title="AutoAWQ",
    version="AutoAWQ 0.1.6 to 0.2.4",
    serving=ServingSupport(
        cache_formats=("bf16", "fp16"),
        cache_names={"bf16": "fp16"},  # its cache is in FP16
        weight_formats=("awq4-128", "awq4-64"),
        networks=("decoder",),
        ignored_fields=("prompt_logits", "attention"),
    ),
)
