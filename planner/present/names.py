"""Titles of memory terms, phases and certainties, shared by the window and the command line."""

from typing import Final

from planner.memory.result import PhaseName, TermName

# The order of the stacked bar and of the breakdown.
TERM_TITLES: Final[dict[TermName, str]] = {
    "weights": "Weights",
    "draft": "Draft model",
    "master_weights": "Master weights",
    "adapters": "Adapters",
    "gradients": "Gradients",
    "optimizer_states": "Optimizer states",
    "other_models": "Other models",
    "engine": "Inference engine",
    "activations": "Activations",
    "logits": "Logits and loss",
    "kv_cache": "KV cache",
    "state": "Recurrent state",
    "buffers": "Buffers",
    "temporaries": "Temporary tensors",
    "communication": "Communication",
    "framework_overhead": "Framework overhead",
}

PHASE_TITLES: Final[dict[PhaseName, str]] = {
    "load": "Load",
    "generate": "Generate",
    "score": "Score",
    "forward": "Forward",
    "loss": "Loss",
    "backward": "Backward",
    "step": "Step",
    "sync": "Weight sync",
    "prefill": "Prefill",
    "decode": "Decode",
    "encode-text": "Encode text",
    "encode-image": "Encode image",
    "denoise": "Denoise",
    "decode-image": "Decode image",
}

PHASE_MOMENTS: Final[dict[PhaseName, str]] = {
    "load": "while the weights load",
    "generate": "while completions are generated",
    "score": "while completions are scored",
    "forward": "in the forward pass",
    "loss": "at the loss",
    "backward": "in the backward pass",
    "step": "in the optimizer step",
    "sync": "while weights are copied to the engine",
    "prefill": "during prefill",
    "decode": "during decoding",
    "encode-text": "while the prompt is encoded",
    "encode-image": "while the image is encoded",
    "denoise": "while the image is denoised",
    "decode-image": "while the image is decoded",
}

CERTAINTY_TITLES: Final[dict[str, str]] = {
    "exact": "counted exactly",
    "measured": "formula verified in runs",
    "assumed": "assumed",
    "confirmed": "two sources agree",
    "single-source": "one source",
    "conflicting": "sources disagree",
    "preliminary": "preliminary",
    "yours": "yours",
}

OTHER_PROCESSES: Final = "Used by other programs"
FREE: Final = "Free"
RESERVED: Final = "Reserved for more KV cache"
OVERFLOW: Final = "Missing"


def term_title(name: TermName, *, learns: bool) -> str:
    """Return a term's title in a plan that trains (`learns`) or only runs a model, which has no loss."""
    return "Logits" if name == "logits" and not learns else TERM_TITLES[name]


def term_in_sentence(name: TermName, *, learns: bool = True) -> str:
    """Return a term's title for use within a sentence: `logits and loss`, `KV cache`."""
    title = term_title(name, learns=learns)
    return title if title[:2].isupper() else f"{title[0].lower()}{title[1:]}"
