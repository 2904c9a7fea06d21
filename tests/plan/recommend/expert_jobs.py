"""Twenty-five jobs, and what an expert would name for each, with the reason.

An expectation is a property that holds whatever prices and speeds are today: a family of cards, renting or owning, a
range of numbers. It is no copied answer.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from planner.cost.job import DailyHours, Job, Run, Service
from planner.cost.terms import BuyTerms, CostTerms, RentTerms
from planner.plan.plan import ModelChoice, Plan
from planner.plan.recommend.option import HardwareOption, Wish
from planner.workload.workload import Inference, Training, Workload

Check = Callable[[HardwareOption], bool]
LLAMA_8B: Final = "meta-llama/Llama-3.1-8B"
LLAMA_70B: Final = "meta-llama/Llama-3.3-70B-Instruct"
QWEN_32B: Final = "Qwen/Qwen3-32B"


class ExpertJob(NamedTuple):
    """A job with what is expected of the cheapest, the fastest and the best option, and why.

    `anywhere` holds for every option. A job with `nothing` has no option, and `nearest` holds for the closest one.
    """

    name: str
    plan: Plan
    wish: Wish
    why: str
    cheapest: Check = lambda _option: True
    fastest: Check = lambda _option: True
    best_value: Check = lambda _option: True
    anywhere: Check = lambda _option: True
    nothing: bool = False
    nearest: Check = lambda _option: True


def plan_of(model: str, workload: Workload, job: Job, **terms: object) -> Plan:
    return Plan(
        model=ModelChoice(id=model), workload=workload, cost=CostTerms.model_validate({"job": job, **terms})
    )


def tokens(amount: float) -> Run:
    return Run(amount=amount, unit="tokens")


def among(*starts: str) -> Check:
    return lambda option: option.gpu.startswith(starts)


QLORA: Final = Training(method="qlora", activation_checkpointing="full", micro_batch=4, sequence_length=2_048)
CHAT: Final = Service(requests_per_day=5_000, prompt_tokens=1_000, output_tokens=300)
DESK: Final = BuyTerms(place="desk")
JOBS: Final[tuple[ExpertJob, ...]] = (
    ExpertJob(
        "QLoRA of 8B under 20 USD in a day",
        plan_of(LLAMA_8B, QLORA, tokens(50e6)),
        Wish(budget_usd=20, deadline_hours=24),
        "8 GB of weights in 4 bits: one rented consumer card of 24 GB does it overnight for the price of a coffee",
    ),
    ExpertJob(
        "QLoRA of 8B that was planned without checkpointing",
        plan_of(LLAMA_8B, Training(method="qlora", micro_batch=4, sequence_length=2_048), tokens(50e6)),
        Wish(),
        "checkpointing or a smaller micro-batch costs only speed, and a 24 GB card is then enough",
    ),
    ExpertJob(
        "LoRA of 7B on gaming cards",
        plan_of("mistralai/Mistral-7B-v0.3", Training(method="lora", micro_batch=2, sequence_length=1_024), tokens(10e6)),
        Wish(having=("rent",), counts=(1, 2)),
        "16-bit weights of 7B take 14.5 GB: 24 GB of one card",
    ),
    ExpertJob(
        "QLoRA of 70B",
        plan_of(LLAMA_70B, QLORA.evolve(micro_batch=1), tokens(10e6)),
        Wish(having=("rent",)),
        "35 GB in 4 bits and the adapters: a card of 48 GB or more, or two of 24 GB that share it",
    ),
    ExpertJob(
        "full fine-tuning of 8B",
        plan_of(LLAMA_8B, Training(method="full", activation_checkpointing="full", sequence_length=4_096), tokens(100e6)),
        Wish(having=("rent",)),
        "128 GB of weights, gradients and states: several data-center cards that share them",
    ),
    ExpertJob(
        "full fine-tuning of 8B, one card only",
        plan_of(LLAMA_8B, Training(method="full", sequence_length=2_048), tokens(20e6)),
        Wish(having=("rent",), counts=(1,)),
        "one of 141 GB or more",
    ),
    ExpertJob(
        "pretraining 1.3B on 30B tokens under 5,000 USD",
        plan_of("facebook/opt-1.3b", Training(micro_batch=8, sequence_length=2_048), tokens(30e9)),
        Wish(budget_usd=5_000, having=("rent",)),
        "2.3e20 FLOP: some 300 to 1,000 hours of an H100; eight of them for days",
    ),
    ExpertJob(
        "pretraining 7B on 1T tokens in a month",
        plan_of("meta-llama/Llama-2-7b-hf", Training(micro_batch=4, sequence_length=4_096, activation_checkpointing="selective"), tokens(1e12)),
        Wish(deadline_hours=720, having=("rent",), counts=(8, 64, 128, 256)),
        "4e22 FLOP: 90,000 H100 hours and more, so over 100 cards in many machines, with a network",
    ),
    ExpertJob(
        "an impossible deadline",
        plan_of(LLAMA_8B, QLORA, tokens(1e9)),
        Wish(deadline_hours=0.01),
        "nothing trains on a billion tokens in 36 seconds; the closest is a machine of eight of the fastest cards",
        nothing=True,
    ),
    ExpertJob(
        "an impossible budget",
        plan_of(LLAMA_8B, QLORA, tokens(50e6)),
        Wish(budget_usd=0.05),
        "the closest is the cheapest consumer card",
        nothing=True,
    ),
    ExpertJob(
        "no budget, only speed",
        plan_of(LLAMA_8B, QLORA, tokens(50e6)),
        Wish(having=("rent",)),
        "the fastest is eight of the newest data-center cards",
    ),
    ExpertJob(
        "serving 70B to 50 users",
        plan_of(LLAMA_70B, Inference(profile="vllm", batch=50, context_length=4_096), Service(requests_per_day=20_000)),
        Wish(),
        "141 GB of 16-bit weights and 50 contexts: two to eight large cards with tensor parallelism",
    ),
    ExpertJob(
        "serving 70B to 50 users, quantized",
        plan_of(LLAMA_70B, Inference(profile="vllm", weights="awq4-128", batch=50, context_length=4_096), Service(requests_per_day=20_000)),
        Wish(having=("rent",)),
        "40 GB of weights leave room on one card of 80 GB or more",
    ),
    ExpertJob(
        "serving 8B to many, always on",
        plan_of(LLAMA_8B, Inference(profile="vllm", batch=64, context_length=4_096), Service(requests_per_day=500_000)),
        Wish(having=("rent",)),
        "more than one machine at the peak, and how many is said",
    ),
    ExpertJob(
        "a chat assistant at a desk",
        plan_of(QWEN_32B, Inference(profile="llama.cpp", weights="Q4_K_M", context_length=8_192), DailyHours(hours_per_day=6), buy=DESK),
        Wish(having=("own",), min_tokens_per_second=15),
        "20 GB of weights: one card of 24 or 32 GB",
    ),
    ExpertJob(
        "70B at a desk within one circuit",
        plan_of(LLAMA_70B, Inference(profile="llama.cpp", weights="Q4_K_M", context_length=4_096), DailyHours(hours_per_day=8), buy=DESK),
        Wish(having=("own",), min_tokens_per_second=5),
        "42 GB: two cards of 24 GB, or one of 48 GB or more, on 1,800 W",
    ),
    ExpertJob(
        "fine-tuning at a desk in Germany",
        plan_of(LLAMA_8B, QLORA, DailyHours(hours_per_day=8), buy=DESK, region="DE"),
        Wish(having=("own",)),
        "one or two cards in slots, on 3,680 W",
    ),
    ExpertJob(
        "8B for one person",
        plan_of(LLAMA_8B, Inference(profile="llama.cpp", weights="Q4_K_M", context_length=8_192), DailyHours(hours_per_day=4), buy=DESK),
        Wish(having=("own",), min_tokens_per_second=20),
        "5 GB of weights: an ordinary gaming card",
    ),
    ExpertJob(
        "image generation",
        plan_of("stabilityai/stable-diffusion-xl-base-1.0", Inference(batch=1), Run(amount=10_000, unit="samples")),
        Wish(having=("rent",), counts=(1,)),
        "SDXL in 16 bits fits in 12 to 16 GB",
    ),
    ExpertJob(
        "images by FLUX at a desk",
        plan_of("black-forest-labs/FLUX.1-dev", Inference(batch=1), DailyHours(hours_per_day=4), buy=DESK),
        Wish(having=("own",)),
        "12 billion parameters and the text encoder in 16 bits take 34 GB: a card of 48 GB or more",
    ),
    ExpertJob(
        "embedding a corpus",
        plan_of("BAAI/bge-m3", Inference(batch=64, context_length=512, prompt_length=512), Run(amount=5e9, unit="tokens")),
        Wish(having=("rent",), counts=(1,)),
        "a small model: the cheapest cards do it",
    ),
    ExpertJob(
        "BERT fine-tuning",
        plan_of("google-bert/bert-base-uncased", Training(micro_batch=32, sequence_length=128), Run(amount=10_000, unit="steps")),
        Wish(having=("rent",), counts=(1,)),
        "minutes on any card",
    ),
    ExpertJob(
        "DeepSeek-V3 for a team",
        plan_of("deepseek-ai/DeepSeek-V3", Inference(profile="vllm", batch=16, context_length=8_192), DailyHours(hours_per_day=8)),
        Wish(having=("rent",), counts=(8, 16)),
        "671 GB in 8 bits: eight cards of 141 GB, or sixteen of 80 GB in two machines",
    ),
    ExpertJob(
        "a lab buys for three years of daily training",
        plan_of(LLAMA_8B, Training(method="lora", micro_batch=4, sequence_length=2_048, activation_checkpointing="full"), DailyHours(hours_per_day=20, days_per_week=7), horizon_years=3),
        Wish(having=("own",)),
        "cards in slots; modules only as whole servers of eight",
    ),
    ExpertJob(
        "colocation",
        plan_of(LLAMA_8B, Inference(profile="vllm", batch=32, context_length=4_096), CHAT, buy=BuyTerms(place="colocation")),
        Wish(having=("own",)),
        "no gaming cards, whose driver is not licensed for data centers, and none of a cloud",
    ),
)
assert len(JOBS) == 25
