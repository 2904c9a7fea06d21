"""Twenty-five jobs, and what an expert would name for each, with the reason.

An expectation is a property that holds whatever today's prices and speeds are: families of cards, renting or owning,
ranges of numbers. It is no copied answer.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from planner.cost.terms import BuyTerms, CostTerms, DailyHours, Job, Run, Service
from planner.hardware.gpu import Gpu
from planner.plan.plan import ModelChoice, Plan
from planner.plan.recommend.option import HardwareOption, Wish
from planner.units import GIB
from planner.workload.workload import Inference, Training, Workload

Check = Callable[[HardwareOption, Gpu], bool]
LLAMA_8B: Final = "meta-llama/Llama-3.1-8B"
LLAMA_70B: Final = "meta-llama/Llama-3.3-70B-Instruct"
QWEN_32B: Final = "Qwen/Qwen3-32B"


def anything(_option: HardwareOption, _gpu: Gpu) -> bool:
    return True


def together(*checks: Check) -> Check:
    return lambda option, gpu: all(check(option, gpu) for check in checks)


def cards(least: int, most: int) -> Check:
    return lambda option, _gpu: least <= option.cards <= most


def memory(least_gib: float, most_gib: float = 1e9) -> Check:
    """Hold for cards whose memory together is in this range."""
    return lambda option, gpu: least_gib <= option.count * (gpu.memory_bytes or 0) / GIB <= most_gib


def segment(*names: str) -> Check:
    return lambda _option, gpu: gpu.segment in names


def having(name: str) -> Check:
    return lambda option, _gpu: option.having == name


def costs(least_usd: float, most_usd: float) -> Check:
    return lambda option, _gpu: least_usd <= option.usd <= most_usd


def sharded(option: HardwareOption, _gpu: Gpu) -> bool:
    return bool(option.sharing)


def changed(option: HardwareOption, _gpu: Gpu) -> bool:
    return bool(option.changes)


def among(*starts: str) -> Check:
    return lambda option, _gpu: option.gpu.startswith(starts)


class ExpertJob(NamedTuple):
    """A job with what is expected of the cheapest, the fastest and the best value, of every option, and why.

    A job with `nothing` has no option within its limits; then `nearest` holds for the closest one.
    """

    name: str
    why: str
    plan: Plan
    wish: Wish
    cheapest: Check = anything
    fastest: Check = anything
    best_value: Check = anything
    every: Check = anything
    nothing: bool = False
    nearest: Check = anything


def plan_of(model: str, workload: Workload, job: Job, **terms: object) -> Plan:
    return Plan(model=ModelChoice(id=model), workload=workload, cost=CostTerms.model_validate({"job": job, **terms}))


def tokens(amount: float) -> Run:
    return Run(amount=amount, unit="tokens")


GAMING: Final = segment("consumer")
BOARDS: Final = segment("consumer", "workstation")
LARGE_GIB: Final = 75.0
QLORA: Final = Training(method="qlora", activation_checkpointing="full", micro_batch=4, sequence_length=2_048)
UNCHECKED: Final = Training(method="qlora", sequence_length=2_048)
LORA_7B: Final = Training(method="lora", micro_batch=2, sequence_length=1_024)
FULL_8B: Final = Training(method="full", activation_checkpointing="full", sequence_length=4_096)
PRETRAIN: Final = Training(micro_batch=8, sequence_length=2_048)
PRETRAIN_7B: Final = Training(micro_batch=4, sequence_length=4_096, activation_checkpointing="selective")
LAB_LORA: Final = Training(method="lora", micro_batch=4, sequence_length=2_048, activation_checkpointing="full")
BERT: Final = Training(micro_batch=32, sequence_length=128)
VLLM: Final = Inference(profile="vllm", context_length=4_096)
GGUF: Final = Inference(profile="llama.cpp", weights="Q4_K_M", context_length=8_192)
DESK: Final = BuyTerms(place="desk")
RENT: Final = ("rent",)
OWN: Final = ("own",)
JOBS: Final[tuple[ExpertJob, ...]] = (
    ExpertJob(
        "QLoRA of 8B under 20 USD in a day",
        "weights of 5.5 GB in 4 bits and small activations: one rented 24 GB GPU overnight, for a few dollars",
        plan_of(LLAMA_8B, QLORA, tokens(50e6)),
        Wish(budget_usd=20, deadline_hours=24),
        cheapest=together(having("rent"), cards(1, 1), GAMING, memory(16, 32), costs(0.5, 6)),
        fastest=together(having("rent"), segment("datacenter"), memory(LARGE_GIB)),
        best_value=together(having("rent"), cards(1, 1), costs(0.5, 12)),
        every=lambda option, _gpu: option.usd <= 20 and option.hours <= 24,
    ),
    ExpertJob(
        "QLoRA of 8B that was planned without checkpointing",
        "checkpointing or a smaller micro-batch costs only speed: 24 GB are enough, and an A100 is not needed",
        plan_of(LLAMA_8B, UNCHECKED, tokens(50e6)),
        Wish(),
        cheapest=together(having("rent"), cards(1, 1), GAMING, memory(16, 32), changed),
    ),
    ExpertJob(
        "the same plan, which must stay as it is",
        "the logits and activations of 2,048 tokens do not fit in 24 GB: a GPU of 40 GB or more",
        plan_of(LLAMA_8B, UNCHECKED, tokens(50e6)),
        Wish(having=RENT, counts=(1,), change_plan=False),
        cheapest=together(memory(32), segment("datacenter", "workstation")),
        every=lambda option, _gpu: not option.changes,
    ),
    ExpertJob(
        "a small LoRA of 7B on a gaming GPU",
        "weights of 14.5 GB in 16 bits and small activations: one GPU of 24 GB for less than a dollar",
        plan_of("mistralai/Mistral-7B-v0.3", LORA_7B, tokens(10e6)),
        Wish(having=RENT, counts=(1, 2)),
        cheapest=together(GAMING, cards(1, 1), memory(20, 32), costs(0.05, 1)),
    ),
    ExpertJob(
        "QLoRA of 70B",
        "about 40 GB in 4 bits with the adapters: one GPU of 48 GB or more, or several that share it",
        plan_of(LLAMA_70B, QLORA.evolve(micro_batch=1), tokens(10e6)),
        Wish(having=RENT),
        cheapest=together(memory(40), costs(2, 30)),
        every=memory(40),
    ),
    ExpertJob(
        "full fine-tuning of 8B",
        "16 bytes for each parameter make 128 GB, 64 GB with 8-bit states: data-center GPUs, sharing the states",
        plan_of(LLAMA_8B, FULL_8B, tokens(100e6)),
        Wish(having=RENT),
        cheapest=together(segment("datacenter"), memory(LARGE_GIB)),
        fastest=together(segment("datacenter"), cards(8, 8)),
        every=memory(64),
    ),
    ExpertJob(
        "full fine-tuning of 8B on two 48 GB GPUs at a lab",
        "two GPUs of 48 GB share the states, and an 8-bit optimizer makes room: nothing smaller does",
        plan_of(LLAMA_8B, FULL_8B.evolve(sequence_length=2_048), DailyHours(hours_per_day=8)),
        Wish(having=OWN, counts=(2,), vendors=("NVIDIA",)),
        cheapest=together(memory(64), sharded),
        every=memory(64),
    ),
    ExpertJob(
        "pretraining of 1.3B on 30B tokens under 5,000 USD",
        "6 × 1.3e9 × 30e9 = 2.3e20 FLOP: some 200 hours of an H100; eight fast GPUs do it in a day or two",
        plan_of("facebook/opt-1.3b", PRETRAIN, tokens(30e9)),
        Wish(budget_usd=5_000, having=RENT),
        cheapest=together(cards(1, 8), costs(100, 1_500)),
        fastest=together(cards(8, 8), segment("datacenter"), lambda option, _gpu: 5 <= option.hours <= 72),
        best_value=costs(100, 2_500),
    ),
    ExpertJob(
        "pretraining of 7B on 1T tokens in a month",
        "4e22 FLOP: 28,000 H100 hours at 400 TFLOP/s, so at least 64 GPUs in eight machines, with a network",
        plan_of("meta-llama/Llama-2-7b-hf", PRETRAIN_7B, tokens(1e12)),
        Wish(deadline_hours=720, having=RENT, counts=(8, 64, 128)),
        cheapest=together(cards(64, 128), segment("datacenter"), costs(30_000, 500_000)),
        every=lambda option, _gpu: option.machines >= 8 and option.network_bytes_per_s is not None,
    ),
    ExpertJob(
        "an impossible deadline",
        "nothing trains on a billion tokens in 36 seconds; the closest is a machine of eight of the fastest GPUs",
        plan_of(LLAMA_8B, QLORA, tokens(1e9)),
        Wish(deadline_hours=0.01),
        nothing=True,
        nearest=together(cards(8, 8), segment("datacenter")),
    ),
    ExpertJob(
        "an impossible budget",
        "five cents pay for no GPU for hours; the closest is the cheapest gaming GPU",
        plan_of(LLAMA_8B, QLORA, tokens(50e6)),
        Wish(budget_usd=0.05),
        nothing=True,
        nearest=together(GAMING, cards(1, 1), having("rent")),
    ),
    ExpertJob(
        "no budget, only speed",
        "a machine of eight of the newest data-center GPUs",
        plan_of(LLAMA_8B, QLORA, tokens(50e6)),
        Wish(having=RENT),
        fastest=together(cards(8, 8), among("b200", "b300", "gb200", "h200", "h100")),
    ),
    ExpertJob(
        "70B to 50 users",
        "141 GB in 16 bits and 50 contexts: at least 160 GB, shared by tensors, fast enough to read",
        plan_of(LLAMA_70B, VLLM.evolve(batch=50), Service(requests_per_day=20_000)),
        Wish(min_tokens_per_second=20),
        cheapest=together(memory(160), segment("datacenter", "workstation")),
        fastest=together(cards(4, 8), segment("datacenter"), sharded),
        every=lambda option, _gpu: option.output_token_seconds <= 1 / 20,
    ),
    ExpertJob(
        "70B to 50 users, quantized",
        "40 GB in 4 bits and 50 contexts of 1.3 GB each: about 100 GB, one large GPU or several",
        plan_of(LLAMA_70B, VLLM.evolve(batch=50, weights="awq4-128"), Service(requests_per_day=20_000)),
        Wish(having=RENT),
        cheapest=together(memory(90), cards(1, 4)),
        every=memory(90),
    ),
    ExpertJob(
        "70B to 50 users, where fewer bits are allowed",
        "4-bit weights fit on less than half of the GPUs that 16 bits need",
        plan_of(LLAMA_70B, VLLM.evolve(batch=50), Service(requests_per_day=20_000)),
        Wish(having=RENT, quantize=True, counts=(1, 2)),
        cheapest=together(changed, memory(75), cards(1, 4)),
    ),
    ExpertJob(
        "8B to two million requests a day",
        "a machine answers some ten requests a second at best: at the peak several GPUs, and how many is said",
        plan_of(LLAMA_8B, VLLM.evolve(batch=64), Service(requests_per_day=2_000_000)),
        Wish(having=RENT),
        cheapest=cards(2, 64),
        every=lambda option, _gpu: option.machines * option.cards_per_machine >= option.cards,
    ),
    ExpertJob(
        "a chat assistant of 32B at a desk",
        "20 GB in 4 bits: a GPU of 24 to 32 GB, or two smaller ones that split the layers",
        plan_of(QWEN_32B, GGUF, DailyHours(hours_per_day=6), buy=DESK),
        Wish(having=OWN, min_tokens_per_second=15),
        cheapest=together(BOARDS, cards(1, 2), memory(20, 48)),
        every=BOARDS,
    ),
    ExpertJob(
        "70B at a desk within one circuit",
        "42 GB in 4 bits: two GPUs of 24 GB or one of 48 GB, in one machine on 1,800 W",
        plan_of(LLAMA_70B, GGUF.evolve(context_length=4_096), DailyHours(hours_per_day=8), buy=DESK),
        Wish(having=OWN, min_tokens_per_second=5),
        cheapest=together(BOARDS, cards(1, 2), memory(44, 100)),
        every=lambda option, _gpu: option.power_watts * 1.8 <= 1_800 and option.machines == 1,
    ),
    ExpertJob(
        "fine-tuning of 8B at a desk in Germany",
        "GPUs in slots, at most two, on the 3,680 W of a socket there",
        plan_of(LLAMA_8B, QLORA, DailyHours(hours_per_day=8), buy=DESK, region="DE"),
        Wish(having=OWN),
        cheapest=together(BOARDS, cards(1, 2), memory(12)),
        every=together(cards(1, 2), lambda option, _gpu: option.power_watts * 1.8 <= 3_680),
    ),
    ExpertJob(
        "8B for one person",
        "5 GB in 4 bits: an ordinary gaming GPU, faster than one reads",
        plan_of(LLAMA_8B, GGUF, DailyHours(hours_per_day=4), buy=DESK),
        Wish(having=OWN, min_tokens_per_second=20),
        cheapest=together(BOARDS, cards(1, 2), memory(6, 24), costs(5, 60)),
    ),
    ExpertJob(
        "ten thousand images of SDXL",
        "7 GB in 16 bits: a gaming GPU for some hours, for a few dollars",
        plan_of("stabilityai/stable-diffusion-xl-base-1.0", Inference(batch=1), Run(amount=10_000, unit="samples")),
        Wish(having=RENT, counts=(1,), min_samples_per_second=0.05),
        cheapest=together(GAMING, memory(10), costs(1, 15)),
        every=lambda option, _gpu: option.samples_per_second >= 0.05,
    ),
    ExpertJob(
        "images of FLUX at a desk",
        "12 billion parameters and the text encoders take 34 GB in 16 bits: a GPU of 40 GB or more",
        plan_of("black-forest-labs/FLUX.1-dev", Inference(batch=1), DailyHours(hours_per_day=4), buy=DESK),
        Wish(having=OWN),
        cheapest=together(segment("workstation"), cards(1, 1), memory(40)),
        every=together(BOARDS, memory(40)),
    ),
    ExpertJob(
        "embedding of five billion tokens",
        "a model of 0.6 billion parameters: any GPU, so the cheapest one, for a few dollars",
        plan_of("BAAI/bge-m3", Inference(batch=64, context_length=512, prompt_length=512), tokens(5e9)),
        Wish(having=RENT, counts=(1,)),
        cheapest=together(GAMING, costs(0.5, 20)),
    ),
    ExpertJob(
        "a lab buys for three years of daily training",
        "single GPUs can be bought in slots only; modules come in whole servers of eight",
        plan_of(LLAMA_8B, LAB_LORA, DailyHours(hours_per_day=20, days_per_week=7), horizon_years=3),
        Wish(having=OWN),
        cheapest=together(BOARDS, cards(1, 4)),
        fastest=together(segment("datacenter"), cards(8, 8)),
        every=lambda option, gpu: "SXM" not in (gpu.form_factor or "") or option.cards >= 4,
    ),
    ExpertJob(
        "8B in colocation",
        "no gaming GPUs, whose driver is not licensed for data centers: workstation or data-center GPUs",
        plan_of(
            LLAMA_8B,
            VLLM.evolve(batch=32),
            Service(requests_per_day=5_000, prompt_tokens=1_000, output_tokens=300),
            buy=BuyTerms(place="colocation"),
        ),
        Wish(having=OWN, vendors=("NVIDIA",)),
        cheapest=together(segment("workstation", "datacenter"), cards(1, 8)),
        every=segment("workstation", "datacenter"),
    ),
)
