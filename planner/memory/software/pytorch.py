"""Memory behavior of training with plain PyTorch, as in transformers' Trainer and PEFT.

Programs with their own kernels, layers or optimizers override parts of it.
"""

from collections.abc import Callable, Hashable
from typing import Final

from planner.memory.chance import Spread
from planner.memory.parallel.deepspeed import DEEPSPEED_ZERO
from planner.memory.parallel.fsdp import FSDP
from planner.memory.parallel.layer_splitting import stage_layers
from planner.memory.parallel.sharding import REPLICAS, ShardingStrategy
from planner.memory.phases import PhaseSnapshots
from planner.memory.precision import Precision
from planner.memory.result import TermPart
from planner.memory.segments import unsplit_weight_bytes
from planner.memory.software.base import SoftwareMemory
from planner.memory.training.adapters.settings import Formats, LayerSettings, adapter_settings, formats_of
from planner.memory.training.checkpointing import OPERATORS, Checkpoints
from planner.memory.training.full import as_sixteen_bit_workload, full_setup, with_fp8
from planner.memory.training.losses import (
    FusedKernels,
    LossMemory,
    OutputHead,
    chunked_loss_memory,
    full_loss_memory,
    fused_linear_loss_memory,
    log_probability_memory,
    output_head,
)
from planner.memory.training.partial import partial_setup
from planner.memory.training.step import StepMoments, TrainingSetup, training_step
from planner.models.architecture import Architecture
from planner.workload.parallel import Parallel
from planner.workload.training import Training

Trained = Callable[[Architecture, Training], PhaseSnapshots]
"""Function that returns the memory of a training step of a network on one card, as its replicas share it."""

ALIGNED_SPREAD: Final = Spread(below=0.29, above=0.16)
"""Spread of published whole runs of preference tuning and reinforcement learning, whose sequences are of any length up
to the one that is allowed (`benchmarks/alignment_accuracy.py` leaves one source out at a time)."""


class TrainingMemory(SoftwareMemory[Training]):
    """Training with plain PyTorch, and the base class of all training programs.

    `shares_engine_weights` means that an inference engine on the same card reads the trained model's own weights,
    `scores_in_parts` that log-probabilities without gradients are computed one sequence at a time.
    """

    split_note = "Pipeline stages get equal numbers of layers on any GPUs; set the layers per stage to change that."
    spread = Spread(below=0.055, above=0.04)
    fused = FusedKernels()
    shares_engine_weights: bool = False
    scores_in_parts: bool = False
    selective_source = OPERATORS

    def spread_of(self, workload: Training) -> Spread:
        """Return the spread of measurements of the program, which is wider where it generates or compares answers."""
        return self.spread if workload.alignment.method == "none" else ALIGNED_SPREAD

    def timeline(self, architecture: Architecture, workload: Training, card_class: Hashable = None) -> PhaseSnapshots:
        """Return the memory in each phase of one optimizer step of `workload`, and of what it generates and scores."""

        def trained(architecture: Architecture, workload: Training) -> PhaseSnapshots:
            """Return the memory of forward pass, backward pass and optimizer step."""
            return self.step(architecture, workload).replica_timeline(workload.gradient_accumulation > 1)

        return self.aligned(architecture, workload, trained, card_class)

    def aligned(
        self, architecture: Architecture, workload: Training, trained: Trained, card_class: Hashable
    ) -> PhaseSnapshots:
        """Return the timeline of `trained` with the other models, the engine and the phases of the objective."""
        if workload.alignment.method == "none":
            return trained(architecture, workload)
        from planner.memory.training.alignment import aligned_timeline  # few plans tune preferences

        return aligned_timeline(architecture, workload, self, trained, card_class)

    def step(self, architecture: Architecture, workload: Training) -> StepMoments:
        """Return the moments of one optimizer step of `workload` on a GPU, however its replicas share it."""
        if workload.alignment.method != "none":
            workload = workload.replaced(micro_batch=workload.alignment.sequences(workload.micro_batch))
        unsplit = unsplit_weight_bytes(architecture, workload.weights or "fp32")
        # Gradients have their parameters' shapes and format; adapters and their gradients are small.
        unsplit *= 1 if workload.adapts or workload.trainable else 2
        return training_step(self.setup(architecture, workload), workload, self.selective_source, unsplit)

    def setup(self, architecture: Architecture, workload: Training) -> TrainingSetup:
        """Return the memory inputs of one training step of `workload` (defaults filled in).

        Raises:
            SpecError: If the program cannot train the network with these options.
        """
        if workload.compute == "fp8":
            return with_fp8(self.setup(architecture, as_sixteen_bit_workload(workload)), architecture, workload)
        notes = self.differences_from_transformers(architecture)
        if self._trains_all_by_pytorch(workload):
            return full_setup(architecture, workload, self.loss_memory, notes)
        settings, checkpoints = self.layer_settings(workload), self.checkpoints(workload)
        return partial_setup(architecture, workload, settings, checkpoints, self.loss_memory, notes)

    def differences_from_transformers(self, _architecture: Architecture) -> tuple[str, ...]:
        """Return notes on how the program's memory use differs from transformers, one sentence each."""
        return ()

    def loss_memory(
        self, architecture: Architecture, workload: Training, precision: Precision, *, head_is_trained: bool = True
    ) -> LossMemory:
        """Return the memory of output head and loss in each phase of a training step."""
        head = output_head(architecture, workload, precision)
        if workload.alignment.method != "none":
            trained = head.parameters if head_is_trained else 0
            return log_probability_memory(head, workload, trained, precision.residual_bytes)
        if workload.loss == "chunked":
            gradient_bytes = precision.parameter_bytes if head_is_trained else 0
            return chunked_loss_memory(head, workload.loss_chunks, gradient_bytes)
        if workload.loss == "fused-linear":
            return self.fused_loss_memory(head, precision.residual_bytes, head.parameters if head_is_trained else 0)
        return self.full_loss_memory(architecture, head, precision)

    def full_loss_memory(self, architecture: Architecture, head: OutputHead, precision: Precision) -> LossMemory:
        """Return the memory of a loss that is computed from all logits at once."""
        return full_loss_memory(architecture, head, precision)

    def fused_loss_memory(self, head: OutputHead, input_bytes: int, trained_head_elements: int) -> LossMemory:
        """Return the memory of a loss fused with a head of which `trained_head_elements` elements are trained."""
        return fused_linear_loss_memory(head, input_bytes, trained_head_elements)

    def layer_settings(self, workload: Training) -> LayerSettings:
        """Return the formats, attention, adapters and fused kernels with which layers are computed."""
        formats = self.formats(workload)
        adapters = adapter_settings(workload.lora, formats) if workload.lora else None
        return LayerSettings(formats, workload.attention, adapters, self.fused)

    def formats(self, workload: Training) -> Formats:
        """Return the bytes per element of parameters, stream and matrix products in `workload`."""
        return formats_of(workload)

    def checkpoints(self, workload: Training) -> Checkpoints:
        """Return the activation checkpointing of `workload`: kind, and layers per checkpoint."""
        return Checkpoints(workload.activation_checkpointing, workload.checkpoint_every)

    def sharding_strategy(self, workload: Training) -> ShardingStrategy:
        """Return the software (DDP, FSDP, DeepSpeed) that shards `workload` over its replicas.

        ZeRO-3 is FSDP2 unless the offload is one that only DeepSpeed has; ZeRO-1 and 2 are DeepSpeed's.
        """
        parallel = workload.parallel
        if parallel.zero == 3 and parallel.offload in ("none", "parameters"):
            return FSDP
        return DEEPSPEED_ZERO if parallel.zero else REPLICAS

    def library_buffers(self) -> tuple[TermPart, ...]:
        """Return the buffers that the program's libraries hold throughout when several cards train."""
        return ()

    def split_layers(
        self, architecture: Architecture, workload: Training, free_bytes: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        """Return the number of layers of each stage, as even as possible regardless of the cards' memory."""
        return stage_layers(architecture.depth, workload.parallel.pipeline)

    def communication_group_sizes(self, parallel: Parallel) -> dict[str, int]:
        """Return the number of cards per communication group: gradients, partial sums, sequence parts, experts."""
        return {
            "data": parallel.state_shards,
            "tensor": parallel.tensor,
            "pipeline": parallel.pipeline,
            "context": parallel.context,
            "expert": parallel.expert,
        }

    def _trains_all_by_pytorch(self, workload: Training) -> bool:
        """Return whether plain PyTorch operators train all parameters in one format."""
        checkpointed = workload.activation_checkpointing == "full"
        selective = workload.activation_checkpointing == "selective" or workload.checkpoint_every > 1
        mixed = workload.compute.startswith("amp-") and workload.weights in ("bf16", "fp16")
        whole = not workload.adapts and not workload.trainable
        # With checkpoints transformers lets patches require a gradient, which then passes through a frozen tower.
        whole = whole and not (checkpointed and workload.images and workload.frozen_vision != "none")
        return whole and not any(self.fused) and not selective and not mixed


TRAINING: Final = TrainingMemory()
