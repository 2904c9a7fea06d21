"""Logs of real runs, for tests that compare them with a plan."""

from planner.memory.corrections import with_correction
from planner.memory.logs.read import read_log
from planner.plan.evaluate import evaluate
from planner.plan.logs.comparison import compare_plan
from planner.plan.logs.log_amounts import suggest_correction
from planner.plan.plan import ModelChoice, Plan
from planner.workload.workload import Inference, Training

RUN = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference(context_length=32_768), gpu="l40s")


TRAIN = Plan(model=ModelChoice(id="meta-llama/Llama-3.2-1B"), workload=Training(), gpu="rtx-4090")


def summary(allocated, reserved):
    return (
        "|                  PyTorch CUDA memory summary, device ID 0                 |\n"
        f"| Allocated memory      |   {allocated} MiB |   {allocated} MiB |      1 MiB |      0 B   |\n"
        f"| GPU reserved memory   |   {reserved} MiB |   {reserved} MiB |      1 MiB |      0 B   |\n"
    )


def smi(used, process, others=0):
    lines = [
        "|   0  NVIDIA GeForce RTX 4090        Off | 00000000:4F:00.0 Off |                  Off |",
        f"| 31%   28C    P8              21W / 450W |   {used}MiB / 24564MiB |      0%      Default |",
        f"|    0   N/A  N/A          884422      C   python                         {process}MiB |",
    ]
    if others:
        lines.append(
            f"|    0   N/A  N/A            1714      G   /usr/lib/xorg/Xorg                      {others}MiB |"
        )
    return "\n".join(lines)


def llama_cpp(context=32_768, cache=4096.0):
    return (
        "load_tensors:   CPU_Mapped model buffer size =   281.81 MiB\n"
        "load_tensors:        CUDA0 model buffer size =  4403.49 MiB\n"
        f"llama_context: n_ctx         = {context}\n"
        f"llama_kv_cache:      CUDA0 KV buffer size =  {cache:.2f} MiB\n"
        "llama_context:      CUDA0 compute buffer size =   560.00 MiB\n"
        "llama_memory_breakdown_print: |   - CUDA0 (L40S)   | 45467 = 35900 + ( 9059 =  4403 +    4096 +     560) + "
        "508 |\n"
    )


# https://github.com/vllm-project/vllm/pull/17122 (weights, tokens) on an L40S; the sizes as vLLM words them
VLLM = """\
INFO 04-24 16:33:00 [gpu_model_runner.py:1316] Model loading took 14.9889 GiB and 3.652170 seconds
INFO 04-24 16:33:09 [gpu_worker.py:227] Memory profiling takes 5.1 seconds. Total non KV cache memory: 17.12GiB; torch \
peak memory increase: 1.19GiB; non-torch forward increase memory: 0.06GiB; weights memory: 14.99GiB.
INFO 04-24 16:33:10 [gpu_worker.py:230] Available KV cache memory: 19.36 GiB
INFO 04-24 16:33:13 [kv_cache_utils.py:634] GPU KV cache size: 158,656 tokens
INFO 04-24 16:33:13 [kv_cache_utils.py:637] Maximum concurrency for 32,768 tokens per request: 4.84x
INFO 04-24 16:33:20 [gpu_model_runner.py:1800] Graph capturing finished in 7 secs, took 0.44 GiB
"""


def corrected(plan, catalog, text):
    """Return the correction that the log `text` suggests, and the plan's evaluation with it."""
    comparison = compare_plan(plan, catalog, read_log(text))
    made = suggest_correction(comparison, evaluate(plan, catalog), "2026-10-03", "0123456789ab")
    assert made is not None
    return made, evaluate(plan.evolve(corrections=with_correction(plan.corrections, made)), catalog)
