"""Places that run a container: Docker Compose with a service, Kubernetes with a Deployment or a Job.

**Source**: docs.docker.com/compose/how-tos/gpu-support; Compose replaces `$` in values, so that it is written twice.
kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus; labels of NVIDIA's GPU feature discovery are the names of
`nvidia-smi` with hyphens.
"""

from collections.abc import Mapping
from typing import Any, Final

from planner.hardware.gpu import Gpu
from planner.hardware.mig import sliced_card_id
from planner.launch.settings import Job, LaunchFacts, LaunchFile, LaunchPlace, PlacedJob
from planner.launch.text import Commented, config_text, container_script, server_words, yaml_text
from planner.units import GIB, ceil_div

_FOLDER: Final = "/work"


def _write_compose(facts: LaunchFacts, job: Job) -> tuple[LaunchFile, ...]:
    service: dict[str, Any] = {"image": Commented(job.image, job.requirement)}
    if job.port is not None:
        start, arguments = server_words(job)
        service["entrypoint"] = [_escaped(word) for word in start]
        service["command"] = [_escaped(word) for word in arguments]
        service["ports"] = [f"{job.port}:{job.port}"]
    else:
        service["entrypoint"] = ["bash", "-c", _escaped(container_script(job))]
    service["working_dir"] = _FOLDER
    service["volumes"] = [Commented(f"./:{_FOLDER}", "the files of this folder, such as weights and settings")]
    service["ipc"] = Commented("host", "processes share memory")
    device = {
        "driver": "nvidia",
        "count": Commented(facts.cards_per_node, "GPUs of the plan"),
        "capabilities": ["gpu"],
    }
    service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return (LaunchFile(name="compose.yaml", text=yaml_text({"services": {"plan": service}})),)


def _escaped(word: Commented | str) -> Commented | str:
    if isinstance(word, Commented):
        return Commented(_escaped(word.value), word.comment)
    return str(word).replace("$", "$$")


def _read_compose(document: Mapping[str, Any]) -> PlacedJob | None:
    if "services" not in document:
        return None
    service = next(iter(document["services"].values()))
    given = (word for key in ("entrypoint", "command") for word in service.get(key) or ())
    words = tuple(word.replace("$$", "$") if isinstance(word, str) else word for word in given)
    devices = service.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices", ({},))
    count = devices[0].get("count")
    cards = count if isinstance(count, int) else None
    return _placed(words, cards=cards)


COMPOSE: Final = LaunchPlace(
    "compose",
    "Docker Compose",
    "Compose 2.30",
    _write_compose,
    _read_compose,
    unexpressed={"gpu": "the service runs on the GPUs of its machine"},
)


_RESOURCES: Final = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu"}
_SLICES: Final = "nvidia.com/mig-"
"""Start of the resources of slices (MIG) with the device plugin's strategy `mixed`; a profile's `+` is a `.` there."""
_PRODUCT: Final = "nvidia.com/gpu.product"
_LABELS: Final = {
    "h100-sxm5-80gb": "NVIDIA-H100-80GB-HBM3",
    "h100-pcie-80gb": "NVIDIA-H100-PCIe",
    "h100-nvl-94gb": "NVIDIA-H100-NVL",
    "h200-sxm-141gb": "NVIDIA-H200",
    "a100-sxm4-80gb": "NVIDIA-A100-SXM4-80GB",
    "a100-sxm4-40gb": "NVIDIA-A100-SXM4-40GB",
    "a100-pcie-80gb": "NVIDIA-A100-80GB-PCIe",
    "a100-pcie-40gb": "NVIDIA-A100-PCIE-40GB",
    "l4": "NVIDIA-L4",
    "l40": "NVIDIA-L40",
    "l40s": "NVIDIA-L40S",
    "a10": "NVIDIA-A10",
    "a10g": "NVIDIA-A10G",
    "a40": "NVIDIA-A40",
    "tesla-t4": "Tesla-T4",
    "rtx-a6000": "NVIDIA-RTX-A6000",
    "rtx-3090": "NVIDIA-GeForce-RTX-3090",
    "rtx-4090": "NVIDIA-GeForce-RTX-4090",
    "rtx-5090": "NVIDIA-GeForce-RTX-5090",
}
_SHARED_MEMORY: Final = "16Gi"
_SETTINGS: Final = "/settings"


def _write_kubernetes(facts: LaunchFacts, job: Job) -> tuple[LaunchFile, ...]:
    name = "plan"
    labels = {"app": name}
    container: dict[str, Any] = {"name": name, "image": Commented(job.image, job.requirement)}
    if job.port is not None:
        container["command"], container["args"] = server_words(job)
        container["env"] = [
            {"name": setting.key, "value": Commented(str(setting.value), setting.comment)}
            for setting in job.environment
        ]
        container["ports"] = [{"containerPort": job.port}]
    else:
        copied = (f"cp {_SETTINGS}/* .",) if job.configs else ()  # a volume of settings cannot be written to
        container["command"] = ["bash", "-c", container_script(job, *copied)]
    resource = _resource(facts.gpu)
    host = facts.evaluation.memory.host_bytes
    limits: dict[str, Any] = {resource: Commented(facts.cards_per_node, _meaning(facts.gpu))}
    if host:
        limits["memory"] = Commented(f"{ceil_div(host, GIB) + 16}Gi", "RAM of the plan, and shared memory")
    container["resources"] = {"limits": limits}
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}]
    volumes: list[dict[str, Any]] = [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": _SHARED_MEMORY}}]
    if job.local_files or job.port is None:
        container["workingDir"] = _FOLDER
        holds = "the weights" if job.local_files else "your script or data, and room for checkpoints"
        mounts.append({"name": "work", "mountPath": _FOLDER})
        claim = {"claimName": Commented("work", f"volume with {holds}; choose yours")}
        volumes.append({"name": "work", "persistentVolumeClaim": claim})
    if job.configs:
        container.setdefault("workingDir", _SETTINGS)  # of a server, which only reads its settings
        mounts.append({"name": "settings", "mountPath": _SETTINGS})
        volumes.append({"name": "settings", "configMap": {"name": name}})
    container["volumeMounts"] = mounts
    pod: dict[str, Any] = {"containers": [container], "volumes": volumes}
    label = _LABELS.get(sliced_card_id(facts.gpu.id) or facts.gpu.id)
    if label is not None:
        pod["nodeSelector"] = {_PRODUCT: Commented(label, facts.gpu.name)}
    pod["tolerations"] = [{"key": resource, "operator": "Exists", "effect": "NoSchedule"}]
    template = {"metadata": {"labels": labels}, "spec": pod}
    if job.port is not None:
        version, kind = "apps/v1", "Deployment"
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    else:
        pod["restartPolicy"] = "Never"
        version, kind, spec = "batch/v1", "Job", {"backoffLimit": 0, "template": template}
    document = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
    files = [LaunchFile(name=f"{kind.lower()}.yaml", text=yaml_text(document))]
    if job.configs:
        data = {config.name: config_text(config) for config in job.configs}
        settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        files.append(LaunchFile(name="settings.yaml", text=yaml_text(settings)))
    return tuple(files)


def _resource(gpu: Gpu) -> str:
    """Return the resource of the device plugin that stands for `gpu`, such as `nvidia.com/mig-3g.40gb`."""
    if gpu.mig_slice is not None:
        return f"{_SLICES}{gpu.mig_slice.profile.replace('+', '.')}"
    return _RESOURCES.get(gpu.vendor, "nvidia.com/gpu")


def _meaning(gpu: Gpu) -> str:
    """Return the comment beside the number of `gpu`."""
    if gpu.mig_slice is None:
        return "GPUs of the plan"
    return "slice of the plan, with the strategy `mixed`; with `single` it is called nvidia.com/gpu"


def _read_kubernetes(document: Mapping[str, Any]) -> PlacedJob | None:
    if "apiVersion" not in document:
        return None
    pod = document["spec"]["template"]["spec"] if document["kind"] in ("Deployment", "Job") else document["spec"]
    container = pod["containers"][0]
    words = (*container.get("command", ()), *container.get("args", ()))
    limits = container.get("resources", {}).get("limits", {})
    slice_name = next((name for name in limits if name.startswith(_SLICES)), None)
    cards = next((int(limits[name]) for name in (*_RESOURCES.values(), slice_name) if name in limits), None)
    profile = slice_name.removeprefix(_SLICES) if slice_name else None
    environment = {item["name"]: str(item["value"]) for item in container.get("env", ()) if "value" in item}
    label = pod.get("nodeSelector", {}).get(_PRODUCT)
    return _placed(words, environment=environment, cards=cards, card_name=label, profile=profile)


def _placed(words: tuple[Any, ...], **stated: Any) -> PlacedJob:  # noqa: ANN401  # fields of `PlacedJob`, not yet validated
    """Return the job whose container starts with `words`, which may run a script."""
    if words[:2] == ("bash", "-c"):
        return PlacedJob(script=words[2], **stated)
    return PlacedJob(words=words, **stated)


KUBERNETES: Final = LaunchPlace(
    "kubernetes",
    "Kubernetes",
    "Kubernetes 1.34",
    _write_kubernetes,
    _read_kubernetes,
    card_names=_LABELS,
    holds_configs=True,
)
