"""Plans as a Modelfile of Ollama, and the environment of its server.

**Source**: ollama/ollama `docs/modelfile.mdx` and `docs/faq.mdx`; since 0.30 the server hands `LLAMA_ARG_…` on to
llama-server (ollama#11772). Whatever is of the server and not of a model has no place in a Modelfile.
"""

from typing import Final

from planner.dtypes import KV_FORMATS
from planner.errors import SpecError
from planner.launch.settings import ConfigFile, Job, Launcher, LaunchFacts, Setting, settings_from
from planner.launch.software.llama_cpp import UNEXPRESSED, complete, model_settings
from planner.plan.plan import Plan
from planner.workload.recipes.servers import OLLAMA_ENVIRONMENT, OLLAMA_OPTIONS, override_of_layers
from planner.workload.software.llama_cpp import LlamaCppSettings
from planner.workload.workload import Inference

_PORT: Final = 11_434
_FILE: Final = "Modelfile"
_NAME: Final = "plan"
_NO_SETTING: Final = "Ollama has no such setting"


def _write(facts: LaunchFacts) -> Job:
    workload = facts.inference
    environment = tuple(settings_from(OLLAMA_ENVIRONMENT, workload))
    if workload.kv_cache not in OLLAMA_ENVIRONMENT[1].values:
        raise SpecError(
            "kv_cache",
            f"Ollama has no cache in {workload.kv_cache}",
            f"Choose one of {', '.join(name for name in KV_FORMATS if name in OLLAMA_ENVIRONMENT[1].values)}.",
        )
    environment = tuple(
        setting._replace(fields=(*setting.fields, "batch")) if setting.key == "OLLAMA_NUM_PARALLEL" else setting
        for setting in environment
    )
    if facts.cards > 1:
        spread = Setting("OLLAMA_SCHED_SPREAD", "1", "the model is split across all GPUs")
        environment = (*environment, spread)
    engine = workload.engine
    if isinstance(engine, LlamaCppSettings) and engine.cpu_moe_layers:
        overrides = override_of_layers(engine.cpu_moe_layers)
        key, fields = "LLAMA_ARG_OVERRIDE_TENSOR", ("engine.cpu_moe_layers",)
        environment = (*environment, Setting(key, overrides, "layers whose routed experts are in RAM", fields))
    settings = (model_settings(facts, "FROM"), *settings_from(OLLAMA_OPTIONS, workload))
    return Job(
        start=("ollama", "create", _NAME),
        requirement="ollama 0.30",
        arguments=(Setting("-f", _FILE, "the model and its settings"),),
        environment=environment,
        configs=(ConfigFile(_FILE, "modelfile", settings),),
        before=("ollama serve &", "sleep 5"),
        rest=(),
        image="ollama/ollama:0.30.0",
        local_files=True,
        places=("shell", "slurm"),
        keep_running="wait",
        expressed=("model",),
        unexpressed={
            **UNEXPRESSED,
            "engine.swa_full": _NO_SETTING,
            "engine.kv_unified": "Ollama decides",
            "parallel.pipeline": "Ollama splits the layers across all GPUs that it sees",
            "count": "Ollama takes the GPUs that it sees; CUDA_VISIBLE_DEVICES chooses them",
            "parallel.pipeline_layers": "Ollama splits the layers itself",
            "gpu_layers": _NO_SETTING,
        },
    )


def _complete(plan: Plan) -> Plan:
    """Return `plan` with a slot for each request; whether they share a cache is Ollama's decision."""
    assert isinstance(plan.workload, Inference)
    own = plan.workload.engine
    settled = complete(plan)
    assert isinstance(settled.workload, Inference)
    unified = getattr(own, "kv_unified", None)
    return settled.evolve(workload=settled.workload.evolve(engine=settled.workload.engine.evolve(kv_unified=unified)))


OLLAMA: Final = Launcher("ollama", "Ollama", "Ollama 0.30", "inference", ("llama.cpp",), _write, _complete)
