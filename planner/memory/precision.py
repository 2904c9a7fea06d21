"""Bytes per element of parameters and activations under a precision setting such as bf16 or amp-bf16."""

from typing import NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.workload.defaults import default_weight_format
from planner.workload.formats import autocasts, product_format
from planner.workload.workload import Inference, Training


class Precision(NamedTuple):
    """Bytes per element of parameters, of inputs and outputs of matrix products, and of the residual stream.

    `half` means that matrix products are in fp16, which a softmax in fp32 reads as it is.
    """

    parameter_bytes: int
    compute_bytes: int
    residual_bytes: int
    autocast: bool
    half: bool = False


def training_precision(workload: Training) -> Precision:
    """Return the bytes per element of parameters and activations in the training `workload`.

    **Assumes** that under autocast the residual stream stays in the format of the parameters, since additions and
    norms run in fp32 there, while matrix products read and write the autocast format; and that the unquantized
    parameters of a quantized network are in fp32 (peft `prepare_model_for_kbit_training`).
    """
    parameter = ELEMENT_BYTES.get(workload.weights or default_weight_format(workload), ELEMENT_BYTES["fp32"])
    autocast = autocasts(workload.compute) and parameter == 4
    compute = ELEMENT_BYTES[product_format(workload.compute)]
    return Precision(parameter, compute, 4 if autocast else compute, autocast)


def inference_precision(workload: Inference) -> Precision:
    """Return the bytes per element of parameters and activations in the inference `workload`."""
    size = ELEMENT_BYTES[workload.compute]
    return Precision(size, size, size, autocast=False, half=workload.compute == "fp16")
