"""Failures of a trace in words: exceptions from the user's code, and refusals of tensors without data.

A real run would not raise the latter, and their texts speak of PyTorch's insides: what to do instead is said. Errors of
the person's own code keep their texts, with that person's part of the traceback.
"""

import os
import re
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException
from typing import Final, NamedTuple

import planner
from planner.errors import TRACE_STAGES, PlannerError, TraceError
from planner.installation import package_command
from planner.trace.messages import (
    TRACEBACK_HEADING,
    TraceFailure,
    innermost_user_frame,
    outermost_user_frame,
    user_traceback,
)

_MAX_TRACEBACK_CHARACTERS: Final = 1 << 16
_MAX_LINE_CHARACTERS: Final = 500
_MEMORY_EXCEEDED: Final = "the module took more of this machine's memory than allowed"
_MEMORY_HINT: Final = "Traced tensors use no memory; check what else the module allocates, or raise the limit."
_SCRIPT_HINT: Final = 'Move code that only a script needs below: if __name__ == "__main__":'
_NO_INPUT_HINT: Final = "A trace cannot read input: pass the value as an argument."
_NO_NETWORK_HINT: Final = "A trace has no network: build the module from its configuration, without weights."
_KNOWN_ERROR_HINTS: Final = (
    ("couldn't connect to", _NO_NETWORK_HINT),
    ("outgoing traffic has been disabled", _NO_NETWORK_HINT),
    ("offline mode is enabled", _NO_NETWORK_HINT),
)
_KERNEL_PACKAGES: Final = frozenset(
    ("triton", "flash_attn", "xformers", "bitsandbytes", "apex", "deepspeed", "transformer_engine", "mamba_ssm")
)
"""Packages of kernels for cards, which a trace cannot run even if they are installed."""
_KERNEL_HINT: Final = (
    "Its kernels need a GPU, which a trace does not have: let the code run PyTorch's own operators where the package "
    "is missing, such as scaled_dot_product_attention."
)
# Packages that are imported by another name than the one they are installed by.
_PACKAGE_NAMES: Final = {
    "PIL": "pillow",
    "cv2": "opencv-python",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}


def explain_failure(error: BaseException, stage: str, files: Iterable[Path]) -> TraceFailure:
    """Return the failure for `error`, raised in `stage`; `files` are the user's files."""
    files = tuple(files)
    report = TracebackException.from_exception(error, compact=True)
    if stage == "build" and _was_raised_on_import(error, report.stack, files):
        stage = "import"
    refusal = refusal_of(error, report.stack)
    if refusal is not None:
        reason = f"{_place(report.stack, files)}{refusal.what}"
        return _shortened_failure(stage, reason, refusal.instead, _frames_text(report.stack, files), environment=False)
    if not isinstance(error, PlannerError):
        # Before PyTorch is loaded, none of the user's code runs.
        is_environment = stage == "start" and isinstance(error, ImportError | OSError)
        return _shortened_failure(stage, *_reason_and_hint(error), _traceback_text(report, files), is_environment)
    traceback_text = _traceback_text(report, files) if outermost_user_frame(report.stack, files) else ""
    if not isinstance(error, TraceError):
        return _shortened_failure(stage, error.message, error.hint, traceback_text, error.environment)
    stage = error.stage if error.stage in TRACE_STAGES else stage
    return _shortened_failure(stage, error.reason, error.hint, error.traceback or traceback_text, error.environment)


def _place(frames: StackSummary, files: tuple[Path, ...]) -> str:
    """Return the line of the user's files that was running, as the beginning of a sentence."""
    frame = innermost_user_frame(frames, files)
    return "" if frame is None else f"{Path(frame.filename).name}, line {frame.lineno}: "


def _frames_text(frames: StackSummary, files: tuple[Path, ...]) -> str:
    """Return the user's part of the traceback as text, without the error itself."""
    ours = str(Path(planner.__file__).parent)
    while frames and frames[-1].filename.startswith(ours):
        frames = StackSummary.from_list(frames[:-1])
    return "".join([TRACEBACK_HEADING, *user_traceback(frames, files).format()])


def _was_raised_on_import(error: BaseException, frames: StackSummary, files: tuple[Path, ...]) -> bool:
    """Return whether `error` was raised while the user's file was imported."""
    user_frame = outermost_user_frame(frames, files)
    return isinstance(error, SyntaxError) if user_frame is None else user_frame.name == "<module>"


def _shortened_failure(stage: str, reason: str, hint: str, traceback_text: str, environment: bool) -> TraceFailure:
    """Return the failure with reason, hint and traceback cut to their maximum lengths."""
    return TraceFailure(
        stage=stage,
        reason=_shortened_text(reason, _MAX_LINE_CHARACTERS),
        hint=_shortened_text(hint, _MAX_LINE_CHARACTERS),
        traceback=_shortened_text(traceback_text, _MAX_TRACEBACK_CHARACTERS),
        environment=environment,
    )


def _reason_and_hint(error: BaseException) -> tuple[str, str]:
    """Return the reason why `error` was raised, and a hint."""
    text = _error_text(error)
    match error:
        case SyntaxError(filename=str(file), lineno=int(line), msg=message):
            return f"{Path(file).name}, line {line}: {message}", ""
        case ModuleNotFoundError(name=str(name)) if name and not _is_installed(name):
            top = name.partition(".")[0]
            return f"{top} is not installed", _package_hint(top)
        case FileNotFoundError(filename=str(file)):
            return f"there is no file {file}", f"Relative paths start in the working folder, {os.getcwd()}."
        # The RuntimeError is PyTorch's when the system refuses memory for a real tensor.
        case MemoryError() | RuntimeError() if isinstance(error, MemoryError) or "can't allocate memory" in text:
            return _MEMORY_EXCEEDED, _MEMORY_HINT
        case RecursionError():
            return f"the module recurses infinitely: {text}", ""
        case SystemExit(code=code):
            return f"the module's code called sys.exit({'' if code is None else repr(code)})", _SCRIPT_HINT
        case KeyboardInterrupt():
            return "the module's code raised KeyboardInterrupt", ""
        case EOFError() if "reading a line" in text:
            return "the module's code asked for input", _NO_INPUT_HINT
    return text, next((hint for part, hint in _KNOWN_ERROR_HINTS if part in text), "")


def _package_hint(name: str) -> str:
    """Return what to do where the package `name` is missing."""
    if name in _KERNEL_PACKAGES:
        return _KERNEL_HINT
    if name in _PACKAGE_NAMES:
        return f"Install it: {package_command(_PACKAGE_NAMES[name])}"
    return f"Install the package that has it, for {sys.executable}."


def _error_text(error: BaseException) -> str:
    """Return the type and message of `error` on one line."""
    text = " ".join(str(error).split()).replace("'FakeTensor' object", "'Tensor' object")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _is_installed(name: str) -> bool:
    top = name.partition(".")[0]
    # A module that a program created at run time has no file.
    return sys.modules.get(top) is not None or find_spec(top) is not None


def _traceback_text(report: TracebackException, files: Iterable[Path]) -> str:
    """Return the user's part of the traceback as text."""
    _keep_user_frames(report, tuple(files))
    return "".join(report.format())


def _keep_user_frames(report: TracebackException | None, files: tuple[Path, ...]) -> None:
    """Reduce the tracebacks of `report` and its causes to the user's part."""
    if report is not None:
        report.stack = user_traceback(report.stack, files)
        for related in (report.__cause__, report.__context__, *(report.exceptions or ())):
            _keep_user_frames(related, files)


def _shortened_text(text: str, limit: int) -> str:
    # A lone surrogate, as in some file names, cannot be encoded.
    text = text.encode("utf-8", "backslashreplace").decode()
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]} … {text[-half:]}"


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
    "a device is made of a number alone, for which PyTorch asks the driver what kind of GPU it has",
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
    "this asks the GPU's driver for something that no driver answers here", "Leave the call out of what is traced."
)
_MOVED_FROM_META: Final = Refusal(
    "a module is moved from the meta device, where it has no data", "Make its tensors with to_empty(device=…)."
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
    (r"Couldn't swap", _MOVED_FROM_META),
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
    (r"No CUDA GPUs are available|Found no NVIDIA driver|libcuda", _NOT_ON_CARD),
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
