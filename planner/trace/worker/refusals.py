"""Refusals in words: the errors of PyTorch that come from tensors without data, and what to do instead.

A real run would not raise these errors, and their texts speak of PyTorch's insides; errors of the person's own code
keep theirs.
"""

import re
from collections.abc import Iterable
from traceback import FrameSummary
from typing import Final, NamedTuple

from planner.errors import PlannerError


class UntraceableError(PlannerError):
    """Something that cannot be traced; the line that does it is added when the failure is explained."""


class Refusal(NamedTuple):
    """A sentence on what cannot be traced, and what to do instead; `{}` is what the error names."""

    what: str
    instead: str

    def naming(self, name: str) -> "Refusal":
        """Return the refusal with the name of what the error is about."""
        return Refusal(self.what.format(name), self.instead.format(name))


_LEAVE_OUT: Final = "Leave this line out of what is traced, or trace the part of the program without it."
_SPARSE: Final = Refusal(
    "a sparse tensor, the size of which depends on its values, cannot be traced",
    "Trace it with a dense tensor of the same shape, for an upper bound, or with index_add_ over the stored elements.",
)
_JAGGED: Final = Refusal(
    "a nested tensor cannot be traced", "Pad its rows to one length, or compute on its values and offsets."
)
_QUANTIZED: Final = Refusal(
    "a quantized tensor cannot be traced",
    "Trace the network as it is before its conversion; its weights take a quarter of those in fp32 afterwards.",
)
_COMPILER: Final = Refusal(
    "PyTorch's compiler cannot follow this code without data",
    "Run it as written: torch.compile(…) and model.compile() themselves are accepted, and leave the code as it is.",
)
_SCRIPTED: Final = Refusal(
    "a saved TorchScript module cannot be loaded without data", "Build the module from its Python class."
)
_NO_DATA: Final = Refusal(
    "the memory of a tensor is read, which has no data in a trace",
    "Use the tensor's own operators, or .numpy() and .tolist(), the values of which are known or assumed.",
)
_OPERATOR: Final = Refusal(
    "the operator {} cannot run without data",
    "Say what it returns, by torch.library.register_fake if it is your own, or leave this line out of what is traced.",
)
_NUMBERED_DEVICE: Final = Refusal(
    "a device is made of a number alone, for which PyTorch asks the driver what kind of card it has",
    "Name the kind: torch.device('cuda', 0).",
)
_HALF_FOURIER: Final = Refusal(
    "a Fourier transform in half precision cannot be traced", "Transform in fp32: x.float(), for an upper bound."
)
SAVING: Final = Refusal(
    "tensors are saved, which have no data in a trace",
    "Leave saving out of the module, or trace the script that saves: its files go to a scratch folder.",
)
_NOT_ON_CARD: Final = Refusal(
    "this asks the card's driver for something that no driver answers here", "Leave the call out of what is traced."
)
_MOVED_TO_META: Final = Refusal(
    "a module is moved to the meta device after it was built, or from it",
    "Build it there, within torch.device('meta'), and make its tensors with to_empty.",
)
_ANY: Final = Refusal("this line cannot run without data", _LEAVE_OUT)

BY_LAYOUT: Final = {
    **dict.fromkeys(("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"), _SPARSE),
    "jagged": _JAGGED,
    "quantized": _QUANTIZED,
    "_mkldnn": Refusal("a tensor in the format of oneDNN cannot be traced", "Leave to_mkldnn() out of what is traced."),
}
"""Refusals of tensors that are not stored element by element."""

_BY_TEXT: Final = (
    (r"Sparse\w*TensorImpl|[Ss]parse \w*[Tt]ensor|_cslt_|compressed tensor", _SPARSE),
    (r"[Qq]uantized", _QUANTIZED),
    (r"[Nn]ested ?[Tt]ensor|_nested_", _JAGGED),
    (r"Couldn't swap", _MOVED_TO_META),
    (r"Cannot access accelerator device", _NUMBERED_DEVICE),
    (r"Unsupported dtype Half", _HALF_FOURIER),
    (r"set the storage of a tensor on device .?\"meta", _SCRIPTED),
    (r"HigherOrderOperator (\w+)", Refusal("{} runs functions that only a compiler follows", _LEAVE_OUT)),
    (
        r"new Tensor subclass (\w+)",
        Refusal("a tensor of a class of its own, {}, cannot be traced", "Use plain tensors in what is traced."),
    ),
    (r"UnsupportedOperatorException: (?:aten\.)?(\S+?)(?:\.default)?$", _OPERATOR),
    (r"Could not run '(?:aten::)?(\S+)' with arguments from", _OPERATOR),
    (r"torch\._C' has no attribute|No module named 'torch\._C|dummy base class", _NOT_ON_CARD),
    (r"compiled with CUDA|support for cuda|ATen_cuda", _NOT_ON_CARD),
    (r"No CUDA GPUs are available|Found no NVIDIA driver", _NOT_ON_CARD),
    (r"data pointer|data_ptr|data is not allocated|_share_fd_|Not available for 'meta'|OpaqueTensorImpl", _NO_DATA),
)
"""Refusals by a pattern of the error's class and text."""
EXTENSION: Final = Refusal(
    "C++ or CUDA code is compiled, which a trace does not do",
    "Install the extension before, and give its operators a rule with torch.library.register_fake, or leave it out.",
)
_BY_FILE: Final = (
    (re.compile(r"torch/(ao|quantization)/"), _QUANTIZED),
    (re.compile(r"torch/(_dynamo|_inductor|_export|export|onnx|_functorch/_aot_autograd)/"), _COMPILER),
)
"""Refusals by the file of PyTorch that was running, if the error's text tells nothing."""
_INSIDE: Final = re.compile(
    r"[Ff]ake ?[Tt]ensor|[Mm]eta ?[Tt]ensor|[\"']meta[\"']|AllocationLedger|torch_dispatch|[Dd]ispatch ?[Kk]ey"
    r"|[Ff]unc[Tt]orch|SymInt|shape_env|ATen|aten[:.]|from the '\w+' backend|torch\._C|TensorImpl|TensorWrapper"
    r"|[Ii]nternal error|INTERNAL ASSERT|file an issue|report a bug|_dynamo|InternalTorchDynamo|mode is active"
    r"|tensor subclass"
)
"""Words that only PyTorch's insides use."""


_BY_HAND: Final = ("raise ", "assert ")
"""Beginnings of lines that raise their own errors."""
_LIST_OF_BACKENDS: Final = "This could be because"


def refusal_of(error: BaseException, frames: Iterable[FrameSummary]) -> Refusal | None:
    """Return what could not be traced when `error` was raised at `frames`, None if a real run would raise it too."""
    if isinstance(error, UntraceableError):
        return Refusal(error.message, error.hint)
    frames = list(frames)
    if isinstance(error, AttributeError) and "'FakeTensor' object" in str(error):
        return None
    if frames and "/torch/" not in frames[-1].filename and (frames[-1].line or "").startswith(_BY_HAND):
        return None
    text = f"{type(error).__name__}: {error}".partition(_LIST_OF_BACKENDS)[0]
    for pattern, refusal in _BY_TEXT:
        found = re.search(pattern, text)
        if found is not None:
            return refusal.naming(found.group(1)) if found.re.groups else refusal
    if _INSIDE.search(text) is None:
        return None if error.__cause__ is None else refusal_of(error.__cause__, ())
    files = [frame.filename.replace("\\", "/") for frame in frames]
    return next((refusal for pattern, refusal in _BY_FILE if any(map(pattern.search, files))), _ANY)
