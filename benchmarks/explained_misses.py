"""Explanations of rows that miss the target: one mechanism per row, and by what it was shown.

A mechanism is in the source of the software that ran, in the row's own notes, or follows from other rows of the same
table. It is shown where a run of it, in a trace or by what other figures leave over, meets the row
(`shown_mechanisms.py`, `traced_kernels.py`), or where a second source says it; otherwise it is supposed. Nothing here
changes a prediction.
"""

import re
from typing import Final, NamedTuple

_RUN: Final = "python benchmarks/shown_mechanisms.py"


class Mechanism(NamedTuple):
    """The rows that it explains, as a regular expression of their names, what it is, and by what it was shown."""

    rows: str
    reason: str
    shown_by: str | None = None


_MECHANISMS: Final = (
    Mechanism(
        r"exllama-0(09|10)",
        "the rows of groups of 128 and of 32 changed places: each is within 0.4 % of the other's estimate",
        "TheBloke's files of fine-tuned Llama 2 70B (TheBloke/StableBeluga2-70B-GPTQ, "
        "vigogne-2-70B-chat-GPTQ): 36.65 GB in groups of 128, 40.66 in groups of 32, 3.7 GiB more; the rows "
        "differ by 3.8 the other way round",
    ),
    Mechanism(
        r"mcore-043",
        "its attention is not named: with unfused attention, as in mcore-039, 1.79 GiB are estimated",
        f"{_RUN} mcore-043",
    ),
    Mechanism(
        r"mcore-072",
        "it overlaps the reduction of gradients and the gathering of parameters: mcore-073, the same without, is met",
        "mcore-073: 0.19 GiB less without the two",
    ),
    Mechanism(
        r"fluxq-0(01|05|09|11)",
        "reserved memory: no level's feature maps in the decoder fit into the blocks of the one before, what "
        "the denoiser reserved stays, and up to 3.3 GiB of what was quantised while loading",
        f"{_RUN} fluxq",
    ),
    Mechanism(
        r"swift-05[3-5]",
        "Baichuan's NormHead normalises its weight in each forward pass, under autocast 2.40 GiB in fp32 and "
        "1.20 in bf16",
        "python benchmarks/traced_kernels.py norm_head,torch,512,5120,125696",
    ),
    Mechanism(
        r"swift-05[67]",
        "at 4,096 tokens 12 times 40 heads · s² · 2 bytes of attention are missing, as with ChatGLM's remote code",
    ),
    Mechanism(
        r"swift-028",
        "the row of 1,024 tokens is 0.95 GiB below it, and is met",
        "swift-029: less for twice the tokens",
    ),
    Mechanism(
        r"litgpt-hub-016",
        "8.10 GiB are less than weights, gradients and the states of AdamW in bf16, 8 bytes for each of 1.24 billion",
    ),
    Mechanism(
        r"rasbt-00[56]",
        "calc_loss_batch of its script drops the logits before the backward pass, 0.77 GiB; its own norms and "
        "GELU, which the rows before had, kept as much",
        f"{_RUN} rasbt",
    ),
    Mechanism(
        r"torchtune-020",
        "torchtune of 2024 cut no loss into chunks: 14 bytes for each of 8,192 × 32,000 logits are 3.4 GiB",
    ),
    Mechanism(
        r"accel-001",
        "read off nvidia-smi in GB of an unstated kind; GPT-J of that version has mask buffers of 0.1 GiB",
    ),
    Mechanism(
        r"ikllama-0(28|30)",
        "a build of ik_llama.cpp without fused operators, on cards that are not named",
    ),
    Mechanism(
        r"bertl-008",
        "Adafactor's step, and layers that are computed again, leave holes of 0.25 GiB in what is reserved",
        f"{_RUN} bertl",
    ),
    Mechanism(
        r"hfbench-",
        "contexts of PyTorch 1.3 to 1.6 with CUDA 10.1 differ by card; by these rows it is 794 to 815 MiB, "
        "877 are assumed",
        "721 to 1,008 MiB in pytorch/pytorch#55277, #49877 and #28394; 723 in discuss.pytorch.org 73021",
    ),
    Mechanism(
        r"optgptq-",
        "a context of 1.2 GiB, as of a version that loads every kernel: as much is left over by the plain "
        "network in fp16",
        f"{_RUN} optgptq",
    ),
    Mechanism(
        r"qwen3-0(02|05|08|11)",
        "the head of the tied model in FP8 is a tensor of its own, 151,936 × 1,024 in bf16; and the prompt is "
        "read in pieces",
        f"{_RUN} qwen3; meta-pytorch/torchtune#2669: of Qwen3's tied models all but 4B store lm_head.weight",
    ),
    Mechanism(
        r"qwen15-04[12]",
        "ExLlamaV2's kernels, whose scratch space is for 8 prompts of 2,048 tokens; its page has 0.46, 0.77 and "
        "0.98 GiB more for GPTQ than for AWQ of 4B, 7B and 14B, where AutoGPTQ asks for 0.45, 0.76 and 0.97, and "
        "0.01, 0.02 and 0.41 for the other sizes, where the first version's buffer is 0.01, 0.02 and 0.38",
        f"{_RUN} qwen15-04",
    ),
    Mechanism(
        r"qwen3-(007|009|010|012|04[1-8]|07[7-9]|080)",
        "weights, a cache that is allocated once, and a cuBLAS workspace are all that it holds: the prompt "
        "was read in pieces (prefill_chunk_size of generate), which its source does not say",
        f"{_RUN} qwen3",
    ),
    Mechanism(
        r"qwen15-052",
        "its own page doubts the figures of this model at long contexts",
    ),
    Mechanism(
        r"qwen2-055",
        "163.8 GiB are more than two cards of 80 GB have, 158.3; with three of them 162.9 are estimated",
        f"{_RUN} qwen2-055",
    ),
    Mechanism(
        r"qwen15-060|qwen2vl-015",
        "a sum of each card's own peak: the fp32 logits come back to the first card, and how much stands "
        "there by then depends on the split, which is not stated",
    ),
    Mechanism(
        r"qwen1-v1-01[6-9]",
        "remote code, and a counter that is not named: in bf16 and in 4 bits, its revision of the README has "
        "3.4 more for 2,048 tokens read, and 2.0 or 2.1 for 8,192 written; two other revisions have 17.7 and "
        "18.1 of 19.0",
    ),
    Mechanism(
        r"qwen1-v1-(006|010|020|024)",
        "remote code, and a counter that is not named; three revisions of one README have 17.7, 18.1 and 19.0",
    ),
    Mechanism(
        r"qwen1-kvq-002",
        "its table has 16.3, 24.1, 31.7 and 48.7 for 1, 4, 16 and 32 sequences: by the others, of which each "
        "takes two caches more than the one before, 4 take 19.4",
    ),
    Mechanism(
        r"qwen1-(inf-002|kvq-01[23]|v1-0(09|25|27))",
        "remote code, and a counter that is not named: 1.1 GiB more at any length is a GPU context",
    ),
    Mechanism(
        r"dsllm-",
        "whether the prompt alone or a generation is not stated; most grow by a cache more, as when generate held two",
    ),
    Mechanism(
        r"sdpa-0(49|5\d|6[0-4])",
        "it is cast on the card, which leaves 8 MiB of ends beside its weights, and its short-lived tensors leave few, "
        "not the 14 MiB of larger networks",
        f"{_RUN} 'sdpa-0[456]'",
    ),
    Mechanism(
        r"swift-03[0-2]",
        "attention of ChatGLM's remote code, whose scores are for all pairs: at 2,048, 4,096 and 8,192 tokens "
        "13, 14 and 12 times 32 heads · s² · 2 bytes are missing",
    ),
    Mechanism(
        r"vllm-008",
        "the checkpoint keeps attention and the first and the last feed-forward block in bf16 "
        "(modules_to_not_convert): 77.1 billion bytes more, which with 8 cards make 56.7 GiB of 47.8",
    ),
    Mechanism(
        r"sdpa-(263|271)",
        "after a short prompt the last step of the generation holds more than the first, with two caches of "
        "prompt and answer, whose length is not stated: about 100 tokens, by the rows of 128",
    ),
    Mechanism(
        r"sdpa-0(1[3-9]|2[0-4])",
        "its script generates (`--is_decoder`), for which BERT has no cache: at the end each step reads 128 "
        "tokens more, and the logits of the step before are still held",
        f"{_RUN} 'sdpa-0[12]'",
    ),
    Mechanism(
        r"sdpa-0(26|28|30|32)",
        "of the two columns that its page heads MB, that of eager attention counts 10⁶ bytes, and this one 2²⁰: "
        "with 256 tokens, where attention is no part of the peak, they differ by 5.9 %",
        f"{_RUN} 'sdpa-0(2[68]|3[02])': so read, all four are within 0.9 % of the loop",
    ),
)


def mechanism_of(row_id: str) -> Mechanism | None:
    """Return the mechanism that explains the error of the row `row_id`, or None if unknown."""
    return next((mechanism for mechanism in _MECHANISMS if re.match(mechanism.rows, row_id)), None)


def reason_for(row_id: str) -> str | None:
    """Return what explains the error of the row `row_id`, or None if unknown."""
    mechanism = mechanism_of(row_id)
    return mechanism.reason if mechanism else None
