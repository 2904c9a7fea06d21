"""Requests to a served model: the estimated time of a workload, and a model in a serving engine."""

from known_engines import ENGINES
from small_models import bundled

from planner.performance.estimate import estimate_time
from planner.performance.inference.gpu_speed import gpu_speed
from planner.performance.inference.passes import ModelSplit
from planner.performance.inference.request import ServedModel
from planner.performance.links import links_of
from planner.performance.setting import TimeSetting
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

LLAMA_8B = "meta-llama/Llama-3.1-8B"
CHAT = {"weights": "Q4_K_M", "prompt_length": 512, "context_length": 1024}


def gpu(name):
    return bundled().hardware.gpu(name)


def timed(card="rtx-4090", count=1, model=LLAMA_8B, setting=None, measured_on=None, **changes):
    architecture = bundled().models.model(model)
    workload = with_defaults(Inference(**changes), architecture, count)
    cards = ((card if not isinstance(card, str) else gpu(card), count),)
    return estimate_time(architecture, workload, cards, setting or TimeSetting(), measured_on)


def served(gpu="rtx-4090", engine="llama.cpp", weights="F16", model=LLAMA_8B, cache="fp16", unfused=False, **shares):
    card = bundled().hardware.gpu(gpu)
    architecture = bundled().models.model(model)
    sharing = ModelSplit(links_of(card, TimeSetting()), **shares)
    machine = gpu_speed(card, ENGINES[engine], weights, unfused=unfused)
    return ServedModel(architecture, ENGINES[engine].work(architecture, weights), machine, sharing, cache)
