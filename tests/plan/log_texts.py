"""Logs of real runs, for tests that compare them with a plan."""

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
