"""Memory-saving changes of training workloads, those of alignment objectives among them."""

from collections.abc import Iterator
from typing import Final

from planner.plan.advice.change import ChangeSequence, PlanChange, smaller_powers_of_two
from planner.workload.training import Training

_LIGER: Final = "Hsu et al. 2024, arXiv 2410.10989: Liger kernels are exact, and faster than the plain operators"
_CHECKPOINTING: Final = (
    "Chen et al. 2016, arXiv 1604.06174: recomputation adds a forward pass, a third of a step's operations"
)
_SELECTIVE: Final = (
    "torchtitan's policy by operator recomputes every second product without a bias: of Llama 3 8B keys, output and "
    "up, 2.6 of the 7.5 billion multiplications of a token's forward pass, a ninth of a step's (attention alone, as in "
    "Megatron-LM: at most 2.7 %, Korthikanti et al. 2022, arXiv 2205.05198)"
)
_EIGHT_BIT: Final = (
    "Dettmers et al. 2022, arXiv 2110.02861: 8-bit optimizer states match 32-bit states, and are no slower"
)
_PAGED: Final = "Dettmers et al. 2023, arXiv 2305.14314: paged states move to host memory when the GPU's memory is full"
_ADAFACTOR: Final = "Shazeer and Stern 2018, arXiv 1804.04235: Adafactor replaces second moments by row and column sums"
_LION: Final = "Chen et al. 2023, arXiv 2302.06675: Lion has one moment, and needs another learning rate"
_GALORE: Final = "Zhao et al. 2024, arXiv 2403.03507: GaLore keeps moments of gradients projected to a low rank"
_ADAPTIVE: Final = "Zhang et al. 2020, arXiv 1912.03194: SGD falls behind Adam on attention models"
_PURE_BF16: Final = "Zamirai et al. 2020, arXiv 2010.06192: small updates are lost if parameters are in bf16"
_AUTOCAST: Final = "Micikevicius et al. 2018, arXiv 1710.03740: mixed precision matches fp32"
_CHUNKED: Final = "torchtune CEWithChunkedOutputLoss: the same loss, for a part of the tokens at a time"
_LORA: Final = "Biderman et al. 2024, arXiv 2405.09673: LoRA learns less than full training, and forgets less"
_QLORA: Final = "Dettmers et al. 2023, arXiv 2305.14314: adapters on NF4 weights match adapters on 16-bit weights"
_BEFOREHAND: Final = (
    "diffusers examples: train_text_to_image_sdxl.py computes both beforehand, train_dreambooth_lora_flux.py the "
    "prompts, and with --cache_latents the latent images"
)
_QLORA_TIME: Final = "Lightning AI, Insights from hundreds of experiments: QLoRA took 39 % longer than LoRA"

_ADAMW_32: Final = ("adamw", "adamw-32bit-bnb", "paged-adamw-32bit")
_FULL_PRECISION: Final = ("fp32", "tf32")

TRAINING_CHANGES: Final[tuple[PlanChange, ...]] = (
    PlanChange(
        name="fused loss",
        lever="loss",
        sentence="Compute the output head and the loss together, for a part of the tokens at a time.",
        source=_LIGER,
        settings={"loss": "fused-linear"},
        applies={"loss": ("full-logits",)},
        needs="liger-kernel",
        keeps="the mathematical result",
    ),
    PlanChange(
        name="chunked loss",
        lever="loss",
        sentence="Compute the logits for a part of the tokens at a time.",
        source=_CHUNKED,
        settings={"loss": "chunked"},
        applies={"loss": ("full-logits",)},
        needs="a chunked loss, such as torchtune's",
        keeps="the mathematical result",
    ),
    PlanChange(
        name="8-bit AdamW",
        lever="optimizer",
        sentence="Store both moments of AdamW in 8 bits, with one scale per block.",
        source=_EIGHT_BIT,
        settings={"optimizer": "adamw-8bit"},
        applies={"optimizer": _ADAMW_32},
        risk="small",
        needs="bitsandbytes",
    ),
    PlanChange(
        name="paged 8-bit AdamW",
        lever="optimizer",
        sentence="Store both moments of AdamW in 8 bits, in memory that is paged to the host when the GPU is full.",
        source=_PAGED,
        settings={"optimizer": "paged-adamw-8bit"},
        applies={"optimizer": (*_ADAMW_32, "adamw-8bit")},
        cost="time",
        slower_by_about=None,
        costs="slower while states are paged",
        risk="small",
        needs="bitsandbytes",
    ),
    PlanChange(
        name="Adafactor",
        lever="optimizer",
        sentence="Store row and column sums instead of two moments per parameter.",
        source=_ADAFACTOR,
        settings={"optimizer": "adafactor"},
        applies={"optimizer": (*_ADAMW_32, "adamw-8bit")},
        risk="real",
    ),
    PlanChange(
        name="8-bit Lion",
        lever="optimizer",
        sentence="Store one moment in 8 bits instead of two.",
        source=_LION,
        settings={"optimizer": "lion-8bit"},
        applies={"optimizer": (*_ADAMW_32, "adamw-8bit", "lion")},
        risk="real",
        needs="bitsandbytes",
    ),
    PlanChange(
        name="GaLore",
        lever="optimizer",
        sentence="Store the moments of gradients projected to a low rank.",
        source=_GALORE,
        settings={"optimizer": "galore-adamw"},
        applies={"optimizer": _ADAMW_32},
        cost="time",
        slower_by_about=None,
        costs="slower when projections are updated",
        risk="small",
        needs="galore-torch",
    ),
    PlanChange(
        name="SGD with momentum",
        lever="optimizer",
        sentence="Store one moment instead of two.",
        source=_ADAPTIVE,
        settings={"optimizer": "sgd-momentum"},
        applies={"optimizer": (*_ADAMW_32, "adamw-8bit")},
        risk="real",
    ),
    PlanChange(
        name="plain SGD",
        lever="optimizer",
        sentence="Update parameters with the gradients alone, and store no moments.",
        source=_ADAPTIVE,
        settings={"optimizer": "sgd"},
        applies={"optimizer": ("sgd-momentum",)},
        risk="real",
    ),
    PlanChange(
        name="prompts and latent images computed beforehand",
        lever="components",
        sentence="Run text encoders and autoencoder once for all images, and free them before training.",
        source=_BEFOREHAND,
        settings={"precomputed": "all"},
        applies={"precomputed": ("none", "prompts")},
        cost="less",
        costs="no new crops or captions in later epochs",
        keeps="the mathematical result for the same crops and captions",
    ),
    PlanChange(
        name="selective checkpointing",
        lever="recomputation",
        sentence="Save the outputs of attention and of part of the matrix products, and recompute the rest.",
        source=_SELECTIVE,
        settings={"activation_checkpointing": "selective"},
        applies={"activation_checkpointing": ("none",)},
        cost="time",
        slower_by_about=10 / 9,
        keeps="the mathematical result",
    ),
    PlanChange(
        name="full checkpointing",
        lever="recomputation",
        sentence="Save only each layer's input and recompute the rest in the backward pass.",
        source=_CHECKPOINTING,
        settings={"activation_checkpointing": "full"},
        applies={"activation_checkpointing": ("none", "selective")},
        cost="time",
        slower_by_about=4 / 3,
        keeps="the mathematical result",
    ),
    *(
        PlanChange(
            name=f"checkpointing every {every} layers",
            lever="recomputation",
            sentence=f"Save the input of every {nth} layer and recompute the rest in the backward pass.",
            source=_CHECKPOINTING,
            settings={"activation_checkpointing": "full", "checkpoint_every": every},
            applies={"task": ("training",), "checkpoint_every": (1,)},
            cost="time",
            slower_by_about=4 / 3,
            keeps="the mathematical result",
        )
        for every, nth in ((2, "second"), (4, "fourth"))
    ),
    PlanChange(
        name="BF16 autocast",
        lever="precision",
        sentence="Compute in bf16 where that is safe and keep the parameters in fp32.",
        source=_AUTOCAST,
        settings={"compute": "amp-bf16"},
        applies={"task": ("training",), "compute": _FULL_PRECISION},
        risk="small",
        native_bf16=True,
    ),
    PlanChange(
        name="FP16 autocast",
        lever="precision",
        sentence="Compute in fp16 where that is safe, with loss scaling, and keep the parameters in fp32.",
        source=_AUTOCAST,
        settings={"compute": "amp-fp16"},
        applies={"task": ("training",), "compute": _FULL_PRECISION},
        risk="small",
        native_bf16=False,
    ),
    PlanChange(
        name="BF16 throughout",
        lever="precision",
        sentence="Store parameters, gradients and optimizer states in bf16.",
        source=_PURE_BF16,
        settings={"compute": "bf16", "weights": None},
        applies={"task": ("training",), "compute": (*_FULL_PRECISION, "amp-bf16")},
        risk="real",
        native_bf16=True,
    ),
    PlanChange(
        name="LoRA",
        lever="method",
        sentence="Train low-rank adapters on the linear layers of a model that is frozen in 16 bits.",
        source=_LORA,
        settings={"method": "lora", "weights": None, "trainable": ()},
        applies={"method": ("full",)},
        cost="less",
        costs="only adapters are trained",
        risk="small",
        needs="peft",
    ),
    PlanChange(
        name="QLoRA",
        lever="method",
        sentence="Train low-rank adapters on the linear layers of a model that is frozen in NF4.",
        source=_QLORA,
        settings={"method": "qlora", "weights": None, "trainable": ()},
        applies={"method": ("full",)},
        cost="less",
        slower_by_about=None,
        costs="only adapters are trained; about 39 % longer than LoRA",
        risk="small",
        needs="peft and bitsandbytes",
    ),
    PlanChange(
        name="QLoRA instead of LoRA",
        lever="method",
        sentence="Quantize the frozen linear layers to NF4.",
        source=_QLORA_TIME,
        settings={"method": "qlora", "weights": None},
        applies={"method": ("lora",)},
        cost="time",
        slower_by_about=1.39,
        risk="small",
        needs="bitsandbytes",
    ),
)


_ZERO: Final = (
    "Rajbhandari et al. 2020, arXiv 1910.02054 §7: ZeRO-1 and ZeRO-2 send as much as data parallelism, ZeRO-3 50 % more"
)
_OFFLOAD: Final = "Ren et al. 2021, arXiv 2101.06840: ZeRO-Offload"
_INFINITY: Final = "Rajbhandari et al. 2021, arXiv 2104.07857: ZeRO-Infinity"

SHARING_CHANGES: Final[tuple[PlanChange, ...]] = (
    PlanChange(
        name="ZeRO-1",
        lever="sharing",
        sentence="Shard the optimizer states across the replicas.",
        source=_ZERO,
        settings={"parallel": {"zero": 1}},
        applies={"task": ("training",), "parallel.zero": (0,)},
        needs="DeepSpeed, or PyTorch's ZeroRedundancyOptimizer",
        keeps="the mathematical result",
        shares_states=True,
    ),
    PlanChange(
        name="ZeRO-2",
        lever="sharing",
        sentence="Shard the optimizer states and gradients across the replicas.",
        source=_ZERO,
        settings={"parallel": {"zero": 2}},
        applies={"task": ("training",), "parallel.zero": (0, 1)},
        needs="DeepSpeed, or FSDP",
        keeps="the mathematical result",
        shares_states=True,
    ),
    PlanChange(
        name="ZeRO-3",
        lever="sharing",
        sentence="Shard states, gradients and parameters across the replicas and gather each layer when it runs.",
        source=_ZERO,
        settings={"parallel": {"zero": 3}},
        applies={"task": ("training",), "parallel.zero": (0, 1, 2)},
        cost="time",
        slower_by_about=None,
        costs="50 % more communication",
        needs="DeepSpeed, or FSDP",
        keeps="the mathematical result",
        shares_states=True,
    ),
    PlanChange(
        name="optimizer states in RAM",
        lever="offload",
        sentence="Keep the optimizer states in RAM, where the CPU runs the optimizer step.",
        source=_OFFLOAD,
        settings={"parallel": {"zero": 2, "offload": "optimizer"}},
        applies={"task": ("training",), "parallel.zero": (0, 1, 2), "parallel.offload": ("none",)},
        cost="much-time",
        slower_by_about=None,
        costs="the CPU runs the optimizer step",
        needs="DeepSpeed, and RAM for the optimizer states",
        keeps="the mathematical result",
    ),
    PlanChange(
        name="parameters and states in RAM",
        lever="offload",
        sentence="Keep parameters and optimizer states in RAM and copy each layer to the GPU when it runs.",
        source=_INFINITY,
        settings={"parallel": {"zero": 3, "offload": "parameters"}},
        applies={"task": ("training",), "parallel.offload": ("none", "optimizer")},
        cost="much-time",
        slower_by_about=None,
        costs="every layer is copied over the bus in each pass",
        needs="DeepSpeed or FSDP, and RAM for parameters and optimizer states",
        keeps="the mathematical result",
    ),
)


_SLEEP: Final = (
    "TRL 1.10 (f2cd577) docs/source/reducing_memory_usage.md: vLLM's weights and cache leave the GPU meanwhile"
)
_REFERENCE: Final = "TRL 1.10 (f2cd577) grpo_config.py: with beta 0.0, the default, no reference is loaded"
_PRECOMPUTED: Final = (
    "TRL 1.10 (f2cd577) dpo_trainer.py precompute_ref_log_probs: the model is its own reference before it trains"
)
_ADAPTER: Final = "TRL 1.10 (f2cd577): with PEFT the model with its adapters off is the reference"
_FRACTION: Final = (
    "vLLM takes its fraction of the whole GPU; TRL lowered its default from 0.9 to 0.3 (huggingface/trl#2688)"
)
_SCORED: Final = "verl 0.7 log_prob_micro_batch_size_per_gpu: logits of fewer sequences are alive at once"
_TRAINER: Final = "TRL 1.10 (f2cd577) grpo_trainer.py: without use_vllm the model generates itself"

ALIGNMENT_CHANGES: Final[tuple[PlanChange, ...]] = (
    PlanChange(
        name="vLLM asleep while training",
        lever="engine",
        sentence="Let vLLM free its weights and KV cache while the model scores and trains.",
        source=_SLEEP,
        settings={"alignment": {"engine": "same-cards-asleep"}},
        applies={"alignment.method": ("ppo", "grpo"), "alignment.engine": ("same-cards",)},
        cost="time",
        slower_by_about=None,
        costs="weights are loaded again for each generation",
        keeps="the mathematical result",
    ),
    PlanChange(
        name="generation by the trainer",
        lever="engine",
        sentence="Generate with the trained model itself, without a second copy of it.",
        source=_TRAINER,
        settings={"alignment": {"engine": "none"}},
        applies={"alignment.method": ("ppo", "grpo"), "alignment.engine": ("same-cards", "same-cards-asleep")},
        cost="much-time",
        slower_by_about=None,
        costs="generation without an engine is several times slower",
    ),
    PlanChange(
        name="no reference model",
        lever="reference",
        sentence="Leave out the penalty for distance from the reference, and with it the reference.",
        source=_REFERENCE,
        settings={"alignment": {"reference": "none"}},
        applies={"alignment.method": ("grpo",), "alignment.reference": ("kept",)},
        risk="small",
    ),
    PlanChange(
        name="a reference computed before training",
        lever="reference",
        sentence="Compute the log-probabilities of the reference before training, and drop its copy.",
        source=_PRECOMPUTED,
        settings={"alignment": {"reference": "precomputed"}},
        applies={"alignment.method": ("dpo",), "alignment.reference": ("kept",)},
        keeps="the mathematical result",
    ),
    PlanChange(
        name="the model with adapters off as reference",
        lever="reference",
        sentence="Turn the adapters off for the reference instead of keeping a copy.",
        source=_ADAPTER,
        settings={"alignment": {"reference": "adapter-off"}},
        applies={"method": ("lora", "qlora"), "alignment.reference": ("kept",)},
        keeps="the mathematical result",
    ),
)


def alignment_sequences(workload: Training) -> Iterator[ChangeSequence]:
    """Yield the changes to a smaller share of an engine, and to fewer sequences that are scored together."""
    alignment = workload.alignment
    present = round(100 * alignment.engine_memory)

    def change_to_share(percent: int) -> PlanChange:
        return PlanChange(
            name=f"{percent} % of the GPU for vLLM",
            lever="engine share",
            sentence="Leave vLLM less memory, for fewer completions at once.",
            source=_FRACTION,
            settings={"alignment": {"engine_memory": percent / 100}},
            cost="time",
            slower_by_about=None,
            costs="fewer completions are generated at once",
            keeps="the mathematical result",
        )

    def change_to_scored(sequences: int) -> PlanChange:
        return PlanChange(
            name=f"log-probabilities of {sequences:,} at a time",
            lever="scored",
            sentence="Compute log-probabilities of fewer sequences at a time.",
            source=_SCORED,
            settings={"alignment": {"score_batch": sequences}},
            keeps="the mathematical result",
        )

    if alignment.shares_card:
        smaller = [percent for percent in range(present - present % 10, 0, -10) if percent < present]
        yield ChangeSequence("engine share", smaller, change_to_share)
    if alignment.generates:
        yield ChangeSequence("scored", smaller_powers_of_two(alignment.score_batch or 1, 1), change_to_scored)
