"""Capabilities of Hugging Face Transformers in training, with PEFT for adapters, and in inference."""

from typing import Final, get_args

from planner.models.architecture import ModelKind
from planner.workload.software.software import ServingSupport, Software, TrainingSupport

TRANSFORMERS: Final = Software(
    name="hf",
    module="transformers",
    title="Hugging Face Transformers",
    training_title="Hugging Face Transformers and PEFT",
    short_title="Hugging Face",
    version="transformers 5.23",
    log="pytorch",
    started_as=("transformers", "huggingface"),
    training=TrainingSupport(inputs=("text", "images"), aligns=True),
    serving=ServingSupport(
        networks=get_args(ModelKind),
        prompt_inputs=("text", "images"),
        offloads=("none", "parameters"),
    ),
)
