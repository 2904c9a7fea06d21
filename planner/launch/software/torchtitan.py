"""Plans as arguments of torchtitan, which has a configuration for each model and no files of settings.

**Source**: torchtitan 0.3.0 `trainer.py`, `config/configs.py`, `components/{loss,optimizer,checkpointer}`,
`distributed/activation_checkpoint.py`; `models/*/config_registry.py`.
"""

from collections.abc import Iterator
from typing import Final

from planner.errors import SpecError
from planner.launch.settings import TAKES_WHAT_IT_NEEDS, Job, Launcher, LaunchFacts, RawWord, Setting
from planner.plan.plan import Plan
from planner.workload.recipes.torchtitan import CHUNKS, COMPUTE, CONFIGS, IMPLEMENTATIONS, POLICIES
from planner.workload.training import Training

_TITLE: Final = "torchtitan"
_IMAGE: Final = "pytorch/pytorch:2.13.0-cuda13.2-cudnn9-devel"
_ENDPOINT: Final = RawWord('"$MASTER_ADDR:29500"')
_ATTENTION: Final = "the model's configuration sets it (FlexAttention, which saves no tokens × tokens matrix)"


def _write(facts: LaunchFacts) -> Job:
    workload = facts.training
    _refuse_unwritten(facts, workload)
    own = CONFIGS[facts.evaluation.plan.model.id]
    arguments = (
        Setting("--nproc_per_node", facts.cards_per_node, "one process for each GPU of a node", ("count",)),
        *(() if facts.nodes > 1 else (Setting("--standalone", True, "one node"),)),
        Setting("-m", "torchtitan.train", "program; what follows are its own arguments"),
        Setting("--module", own.module, "model", ("model",)),
        Setting("--config", own.name, "model; its other settings are replaced by those below", ("model",)),
        Setting(
            "--hf_assets_path",
            f"./{facts.model.rpartition('/')[2]}",
            "folder of tokenizer and weights; choose yours",
        ),
        Setting("--checkpoint.enable", True, "checkpoints are written, and loaded from"),
        Setting("--checkpoint.initial_load_in_hf", True, "starts from these weights, not from random ones"),
        *_step(facts, workload),
        *_precision(workload),
        *_sharing(workload),
        Setting("--training.disable_cuda_graphs", True, "the estimate is without CUDA graphs, which are the default"),
        Setting("--compile.no-enable", True, "the estimate is without torch.compile"),
        Setting(
            POLICIES[workload.activation_checkpointing],
            True,
            "activation checkpointing; stands last",
            ("activation_checkpointing",),
        ),
    )
    return Job(
        start=("torchrun",),
        requirement="torchtitan==0.3.0",
        arguments=arguments,
        image=_IMAGE,
        in_image=False,
        rendezvous=(
            Setting("--nnodes", facts.nodes, "nodes", ("count",)),
            Setting("--rdzv_backend", "c10d", "the nodes number themselves"),
            Setting("--rdzv_endpoint", _ENDPOINT, "first node"),
        ),
        unexpressed={
            "attention": _ATTENTION,
            **TAKES_WHAT_IT_NEEDS,
            "parallel.gradient_as_bucket_view": "torchtitan decides",
            "parallel.pipeline_layers": "set --parallelism.module_fqns_per_model_part to these stages",
            "profile": "torchtitan has models of its own in plain PyTorch",
        },
    )


def _refuse_unwritten(facts: LaunchFacts, workload: Training) -> None:
    """Refuse what torchtitan has no argument for and what would change the memory."""
    parallel, model, own = workload.parallel, facts.evaluation.plan.model.id, ", ".join(CONFIGS)
    refused = {
        "model": (model not in CONFIGS, f"torchtitan has no plain configuration of {model}", f"It has {own}."),
        "method": (
            workload.adapts or bool(workload.trainable),
            "files are written for torchtitan's training of all parameters only",
            "Plan with --method full, or write for trl, axolotl or llama-factory.",
        ),
        "optimizer": (workload.optimizer != "adamw", "torchtitan's configurations train with AdamW", "Choose adamw."),
        "compute": (
            (workload.compute, workload.weights) not in COMPUTE,
            f"no configuration computes in {workload.compute} with weights in {workload.weights}",
            "Choose amp-bf16 with fp32 weights, bf16 with bf16 weights, or fp32.",
        ),
        "loss": (workload.loss != "chunked", "torchtitan computes the loss in chunks", "Plan with --loss chunked."),
        "attention": (workload.attention == "eager", "torchtitan has no eager attention", "Choose sdpa or flash."),
        "checkpoint_every": (workload.checkpoint_every > 1, "torchtitan checkpoints every layer", "Set it to 1."),
        "parallel.interleave": (
            parallel.interleave > 1,
            "files are written for torchtitan's 1F1B schedule only",
            "Set the groups of layers per stage to 1.",
        ),
        "parallel.zero": (
            parallel.zero in (1, 2),
            f"torchtitan has no ZeRO-{parallel.zero}",
            "Plan with --zero 3 (FSDP2), or --zero 0 (DDP).",
        ),
        "parallel.offload": (
            parallel.offload in ("optimizer", "nvme"),
            "torchtitan offloads parameters, gradients and states together, to RAM",
            "Plan with --offload parameters.",
        ),
    }  # fmt: skip
    for field, (is_refused, reason, hint) in refused.items():
        if is_refused:
            raise SpecError(field, reason, hint)


def _step(facts: LaunchFacts, workload: Training) -> Iterator[Setting]:
    """Yield the arguments of a step; a pipeline's micro-batches are parts of torchtitan's local batch."""
    parallel, sequences = workload.parallel, workload.micro_batch * workload.gradient_accumulation
    replicas = facts.cards // (parallel.tensor * parallel.pipeline * parallel.context)
    if parallel.pipeline > 1:
        key = "--parallelism.pipeline_parallel_microbatch_size"
        yield Setting(key, workload.micro_batch, "sequences in each micro-batch of the pipeline", ("micro_batch",))
        yield Setting(
            "--training.local_batch_size", sequences, "sequences of all micro-batches", ("gradient_accumulation",)
        )
    else:
        key = "--training.local_batch_size"
        yield Setting(key, workload.micro_batch, "sequences on each GPU and forward pass", ("micro_batch",))
    yield Setting(
        "--training.global_batch_size",
        sequences * replicas,
        "sequences of all replicas in each optimizer step",
        ("gradient_accumulation", "parallel.data"),
    )
    yield Setting("--training.seq_len", workload.sequence_length or 1, "sequence length", ("sequence_length",))
    yield Setting("--training.max_norm", 1.0, "largest norm of the gradients", ("gradient_clipping",))
    yield Setting("--loss.num_chunks", workload.loss_chunks, "chunks of the loss", ("loss", "loss_chunks"))
    yield Setting(
        "--optimizer.implementation",
        IMPLEMENTATIONS[workload.optimizer_step or "fused"],
        "step of AdamW",
        ("optimizer", "optimizer_step"),
    )


def _precision(workload: Training) -> tuple[Setting, ...]:
    held, computed = COMPUTE[workload.compute, workload.weights]
    return (
        Setting("--training.dtype", held, "format of parameters, gradients and states", ("weights", "compute")),
        Setting("--training.mixed_precision_param", computed, "compute precision", ("compute",)),
    )


def _sharing(workload: Training) -> Iterator[Setting]:
    """Yield the degrees of parallelism, those of 1 included: a model's configuration has others."""
    parallel = workload.parallel
    replicas, shared = parallel.data or 1, parallel.zero == 3
    degrees = (
        ("data_parallel_shard_degree", replicas if shared else 1, "GPUs that share all states (FSDP2)", "zero"),
        ("data_parallel_replicate_degree", 1 if shared else replicas, "GPUs with the whole model (DDP)", "data"),
        ("tensor_parallel_degree", parallel.tensor, "tensor parallelism", "tensor"),
        ("pipeline_parallel_degree", parallel.pipeline, "pipeline stages", "pipeline"),
        ("context_parallel_degree", parallel.context, "GPUs that share each sequence", "context"),
        ("expert_parallel_degree", parallel.expert, "GPUs that share the experts", "expert"),
    )
    for key, value, comment, name in degrees:
        yield Setting(f"--parallelism.{key}", value, comment, (f"parallel.{name}",))
    if shared:
        freed = parallel.reshard_after_forward
        yield Setting(
            "--parallelism.fsdp_reshard_after_forward",
            "always" if freed else "never",
            "parameters are freed after the forward pass" if freed else "parameters are kept",
            ("parallel.reshard_after_forward",),
        )
    if parallel.tensor > 1:
        word = "enable_sequence_parallel" if parallel.sequence else "no-enable_sequence_parallel"
        yield Setting(f"--parallelism.{word}", True, "norms are split, too; on by default", ("parallel.sequence",))
    if parallel.pipeline > 1:
        yield Setting("--parallelism.pipeline_parallel_schedule", "1F1B", "order of the micro-batches")
        for place in ("first", "last"):
            key = f"--parallelism.pipeline_parallel_{place}_stage_less_layers"
            yield Setting(key, 0, f"no layer less in the {place} stage; the default is one")
    offloads = parallel.offload == "parameters"
    yield Setting(
        f"--training.{'' if offloads else 'no-'}enable_cpu_offload",
        True,
        "parameters, gradients and states in RAM" if offloads else "parameters stay on the GPU",
        ("parallel.offload",),
    )


def _complete(plan: Plan) -> Plan:
    """Return `plan` with what torchtitan always does: clipped gradients, a loss in chunks and a fused AdamW."""
    workload = plan.workload
    assert isinstance(workload, Training)
    changes: dict[str, object] = {"gradient_clipping": True}
    if workload.loss is None:
        changes |= {"loss": "chunked", "loss_chunks": CHUNKS}
    if workload.optimizer == "adamw" and workload.optimizer_step is None:
        changes["optimizer_step"] = "fused"
    return plan.evolve(workload=workload.evolve(**changes))


TORCHTITAN: Final = Launcher("torchtitan", _TITLE, "torchtitan 0.3.0", "training", ("hf",), _write, _complete)
