"""Changes of how a model is trained."""

from typing import Final

from planner.plan.advice.change import PlanChange

_LIGER: Final = "Hsu et al. 2024, arXiv 2410.10989: exact, and faster than the plain operators"
_CHECKPOINTING: Final = "Chen et al. 2016, arXiv 1604.06174: one more forward pass, a third of a step's operations"
_SELECTIVE: Final = "Korthikanti et al. 2022, arXiv 2205.05198: attention alone costs at most 2.7 % more operations"
_EIGHT_BIT: Final = "Dettmers et al. 2022, arXiv 2110.02861: 8-bit states match 32-bit ones, and are no slower"
_PAGED: Final = "Dettmers et al. 2023, arXiv 2305.14314: states move to the host's memory when the card's is full"
_ADAFACTOR: Final = "Shazeer and Stern 2018, arXiv 1804.04235: sums of rows and columns stand for second moments"
_LION: Final = "Chen et al. 2023, arXiv 2302.06675: one moment; it wants another learning rate"
_GALORE: Final = "Zhao et al. 2024, arXiv 2403.03507: moments of gradients projected to a low rank"
_ADAPTIVE: Final = "Zhang et al. 2020, arXiv 1912.03194: SGD falls behind Adam on attention models"
_PURE_BF16: Final = "Zamirai et al. 2020, arXiv 2010.06192: updates rounded to bf16 get lost"
_AUTOCAST: Final = "Micikevicius et al. 2018, arXiv 1710.03740: mixed precision matches fp32"
_CHUNKED: Final = "torchtune CEWithChunkedOutputLoss: the same loss, of a part of the tokens at a time"
_LORA: Final = "Biderman et al. 2024, arXiv 2405.09673: LoRA learns less than full training, and forgets less"
_QLORA: Final = "Dettmers et al. 2023, arXiv 2305.14314: adapters on NF4 match those on 16 bits"
_QLORA_TIME: Final = "Lightning AI, Insights from hundreds of experiments: QLoRA takes 39 % longer than LoRA"

_ADAMW_32: Final = ("adamw", "adamw-32bit-bnb", "paged-adamw-32bit")
_FULL_PRECISION: Final = ("fp32", "tf32")

TRAINING_CHANGES: Final[tuple[PlanChange, ...]] = (
    PlanChange(
        name="fused loss",
        lever="loss",
        sentence="Compute the head and the loss together, a part of the tokens at a time.",
        source=_LIGER,
        settings={"loss": "fused-linear"},
        applies={"loss": ("full-logits",)},
        needs="liger-kernel",
        keeps="the mathematics",
    ),
    PlanChange(
        name="chunked loss",
        lever="loss",
        sentence="Make the logits of a part of the tokens at a time.",
        source=_CHUNKED,
        settings={"loss": "chunked"},
        applies={"loss": ("full-logits",)},
        needs="a loss in parts, as torchtune has it",
        keeps="the mathematics",
    ),
    PlanChange(
        name="8-bit AdamW",
        lever="optimizer",
        sentence="Keep both moments of AdamW in 8 bits, with a scale for each block.",
        source=_EIGHT_BIT,
        settings={"optimizer": "adamw-8bit"},
        applies={"optimizer": _ADAMW_32},
        risk="small",
        needs="bitsandbytes",
    ),
    PlanChange(
        name="paged 8-bit AdamW",
        lever="optimizer",
        sentence="Keep both moments of AdamW in 8 bits, in memory that moves to the host under pressure.",
        source=_PAGED,
        settings={"optimizer": "paged-adamw-8bit"},
        applies={"optimizer": (*_ADAMW_32, "adamw-8bit")},
        cost="time",
        slower_by_about=None,
        costs="slower while states move",
        risk="small",
        needs="bitsandbytes",
    ),
    PlanChange(
        name="Adafactor",
        lever="optimizer",
        sentence="Keep sums of rows and columns instead of two moments of each parameter.",
        source=_ADAFACTOR,
        settings={"optimizer": "adafactor"},
        applies={"optimizer": (*_ADAMW_32, "adamw-8bit")},
        risk="real",
    ),
    PlanChange(
        name="8-bit Lion",
        lever="optimizer",
        sentence="Keep one moment instead of two, in 8 bits.",
        source=_LION,
        settings={"optimizer": "lion-8bit"},
        applies={"optimizer": (*_ADAMW_32, "adamw-8bit", "lion")},
        risk="real",
        needs="bitsandbytes",
    ),
    PlanChange(
        name="GaLore",
        lever="optimizer",
        sentence="Keep the moments of gradients that are projected to a low rank.",
        source=_GALORE,
        settings={"optimizer": "galore-adamw"},
        applies={"optimizer": _ADAMW_32},
        cost="time",
        slower_by_about=None,
        costs="slower where projections are renewed",
        risk="small",
        needs="galore-torch",
    ),
    PlanChange(
        name="SGD with momentum",
        lever="optimizer",
        sentence="Keep one moment instead of two.",
        source=_ADAPTIVE,
        settings={"optimizer": "sgd-momentum"},
        applies={"optimizer": (*_ADAMW_32, "adamw-8bit")},
        risk="real",
    ),
    PlanChange(
        name="plain SGD",
        lever="optimizer",
        sentence="Keep no moments.",
        source=_ADAPTIVE,
        settings={"optimizer": "sgd"},
        applies={"optimizer": ("sgd-momentum",)},
        risk="real",
    ),
    PlanChange(
        name="selective checkpointing",
        lever="recomputation",
        sentence="Compute the attention again in the backward pass, and keep the rest.",
        source=_SELECTIVE,
        settings={"activation_checkpointing": "selective"},
        applies={"activation_checkpointing": ("none",)},
        cost="time",
        slower_by_about=1.03,
        keeps="the mathematics",
    ),
    PlanChange(
        name="full checkpointing",
        lever="recomputation",
        sentence="Keep only each layer's input, and compute the rest again in the backward pass.",
        source=_CHECKPOINTING,
        settings={"activation_checkpointing": "full"},
        applies={"activation_checkpointing": ("none", "selective")},
        cost="time",
        slower_by_about=4 / 3,
        keeps="the mathematics",
    ),
    *(
        PlanChange(
            name=f"checkpoints every {every} layers",
            lever="recomputation",
            sentence=f"Keep the input of every {nth} layer, and compute the rest again in the backward pass.",
            source=_CHECKPOINTING,
            settings={"activation_checkpointing": "full", "checkpoint_every": every},
            applies={"task": ("training",), "checkpoint_every": (1,)},
            cost="time",
            slower_by_about=4 / 3,
            keeps="the mathematics",
        )
        for every, nth in ((2, "second"), (4, "fourth"))
    ),
    PlanChange(
        name="bf16 autocast",
        lever="precision",
        sentence="Compute in bf16 where that is safe; the parameters stay in fp32.",
        source=_AUTOCAST,
        settings={"compute": "amp-bf16"},
        applies={"task": ("training",), "compute": _FULL_PRECISION},
        risk="small",
        native_bf16=True,
    ),
    PlanChange(
        name="fp16 autocast",
        lever="precision",
        sentence="Compute in fp16 where that is safe, with scaled gradients; the parameters stay in fp32.",
        source=_AUTOCAST,
        settings={"compute": "amp-fp16"},
        applies={"task": ("training",), "compute": _FULL_PRECISION},
        risk="small",
        native_bf16=False,
    ),
    PlanChange(
        name="everything in bf16",
        lever="precision",
        sentence="Keep the parameters, gradients and the optimizer's states in bf16.",
        source=_PURE_BF16,
        settings={"compute": "bf16", "weights": None},
        applies={"task": ("training",), "compute": (*_FULL_PRECISION, "amp-bf16")},
        risk="real",
        native_bf16=True,
    ),
    PlanChange(
        name="LoRA",
        lever="method",
        sentence="Train low-rank adapters beside the linear layers; the model itself is frozen, in 16 bits.",
        source=_LORA,
        settings={"method": "lora", "weights": None, "trainable": ()},
        applies={"method": ("full",)},
        cost="less",
        costs="adapters learn, not the model",
        risk="small",
        needs="peft",
    ),
    PlanChange(
        name="QLoRA",
        lever="method",
        sentence="Train low-rank adapters beside linear layers that are frozen in NF4.",
        source=_QLORA,
        settings={"method": "qlora", "weights": None, "trainable": ()},
        applies={"method": ("full",)},
        cost="less",
        slower_by_about=None,
        costs="adapters learn, not the model; slower than LoRA by about 39 %",
        risk="small",
        needs="peft and bitsandbytes",
    ),
    PlanChange(
        name="QLoRA instead of LoRA",
        lever="method",
        sentence="Freeze the layers under the adapters in NF4.",
        source=_QLORA_TIME,
        settings={"method": "qlora", "weights": None},
        applies={"method": ("lora",)},
        cost="time",
        slower_by_about=1.39,
        risk="small",
        needs="bitsandbytes",
    ),
)


_ZERO: Final = "Rajbhandari et al. 2020, arXiv 1910.02054 §7: ZeRO-1 and 2 send what replicas do, ZeRO-3 half more"
_OFFLOAD: Final = "Ren et al. 2021, arXiv 2101.06840: ZeRO-Offload"
_INFINITY: Final = "Rajbhandari et al. 2021, arXiv 2104.07857: ZeRO-Infinity"

SHARING_CHANGES: Final[tuple[PlanChange, ...]] = (
    PlanChange(
        name="ZeRO-1",
        lever="sharing",
        sentence="Let each replica keep a part of the optimizer's states.",
        source=_ZERO,
        settings={"parallel": {"zero": 1}},
        applies={"task": ("training",), "parallel.zero": (0,)},
        needs="DeepSpeed, or PyTorch's ZeroRedundancyOptimizer",
        keeps="the mathematics",
        shares_states=True,
    ),
    PlanChange(
        name="ZeRO-2",
        lever="sharing",
        sentence="Let each replica keep a part of the states and of the gradients.",
        source=_ZERO,
        settings={"parallel": {"zero": 2}},
        applies={"task": ("training",), "parallel.zero": (0, 1)},
        needs="DeepSpeed, or FSDP",
        keeps="the mathematics",
        shares_states=True,
    ),
    PlanChange(
        name="ZeRO-3",
        lever="sharing",
        sentence="Let each replica keep a part of states, gradients and parameters, and fetch the rest as it goes.",
        source=_ZERO,
        settings={"parallel": {"zero": 3}},
        applies={"task": ("training",), "parallel.zero": (0, 1, 2)},
        cost="time",
        slower_by_about=None,
        costs="half as much communication again",
        needs="DeepSpeed, or FSDP",
        keeps="the mathematics",
        shares_states=True,
    ),
    PlanChange(
        name="optimizer states in RAM",
        lever="offload",
        sentence="Keep the optimizer's states in RAM, where the processor makes the step.",
        source=_OFFLOAD,
        settings={"parallel": {"zero": 2, "offload": "optimizer"}},
        applies={"task": ("training",), "parallel.zero": (0, 1, 2), "parallel.offload": ("none",)},
        cost="much-time",
        slower_by_about=None,
        costs="the processor makes the step",
        needs="DeepSpeed, and RAM for the states",
        keeps="the mathematics",
    ),
    PlanChange(
        name="parameters and states in RAM",
        lever="offload",
        sentence="Keep parameters and states in RAM, and fetch each layer as it goes.",
        source=_INFINITY,
        settings={"parallel": {"zero": 3, "offload": "parameters"}},
        applies={"task": ("training",), "parallel.offload": ("none", "optimizer")},
        cost="much-time",
        slower_by_about=None,
        costs="every layer crosses the bus in each pass",
        needs="DeepSpeed or FSDP, and RAM for both",
        keeps="the mathematics",
    ),
)
