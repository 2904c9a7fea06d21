"""Training capabilities of torchtune."""

from typing import Final

from planner.workload.software.software import Software, TrainingSupport

TORCHTUNE: Final = Software(
    name="torchtune",
    module="torchtune",
    title="torchtune",
    version="torchtune 0.7",
    training=TrainingSupport(
        loss="chunked",
        checkpointing=("none", "full"),  # its own selective checkpoints are every k-th layer's
        offloads=("none", "optimizer", "parameters"),  # FSDP offloads to RAM only
    ),
)
