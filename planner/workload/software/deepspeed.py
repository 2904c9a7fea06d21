"""Training capabilities of DeepSpeed."""

from typing import Final

from planner.workload.software.software import Software, TrainingSupport

DEEPSPEED: Final = Software(
    name="deepspeed",
    module="deepspeed",
    title="DeepSpeed",
    version="DeepSpeed 0.19",
    training=TrainingSupport(
        zero_limit_in_pipeline=1,  # runtime/pipe/engine.py refuses ZeRO-2 and ZeRO-3
        # runtime/bf16_optimizer.py flattens parameters without ZeRO, too, and SOAP preconditions no flat tensor.
        refused_optimizers=("soap",),
        inputs=("text", "images"),
        aligns=True,
    ),
)
