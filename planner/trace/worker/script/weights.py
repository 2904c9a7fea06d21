"""Loading and saving in a script: networks are built without weights, checkpoints are shapes, downloads are refused."""

import importlib.util
import io
import os
import pickle
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any, Final

import torch
from torch import nn
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.nn.modules.module import _IncompatibleKeys

from planner.errors import PlannerError, TraceError
from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.hugging_face import hide_fake_tensors
from planner.trace.worker.observer import map_tensors
from planner.trace.worker.script.host import changed_on_import

_MARK: Final = b"tensors without data\n"


@contextmanager
def checkpoints_without_data() -> Iterator[None]:
    """Save the shapes of tensors in place of their data, and load such files as new tensors."""
    original_load = torch.load

    def save(obj: object, f: Any, *_args: Any, **_kwargs: Any) -> None:
        if hasattr(f, "write"):
            _write(obj, f)
        else:
            with open(f, "wb") as file:
                _write(obj, file)

    def load(f: Any, map_location: object = None, *args: Any, **kwargs: Any) -> Any:
        if hasattr(f, "read"):
            content = _loaded(f, original_load, args, kwargs)
        else:
            with open(f, "rb") as file:
                content = _loaded(file, original_load, args, kwargs | {"mmap": None})
        if isinstance(map_location, str | torch.device):
            return map_tensors(content, lambda tensor: tensor.to(map_location))
        return content

    with ExitStack() as stack:
        stack.enter_context(patched_attributes(torch, save=save, load=load))
        if importlib.util.find_spec("safetensors") is not None:
            import safetensors.torch as safetensors

            stack.enter_context(
                patched_attributes(
                    safetensors,
                    save_file=lambda tensors, filename, metadata=None: save(tensors, filename),
                    load_file=_load_file(safetensors),
                )
            )
        yield


def _loaded(file: Any, original_load: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what is in a checkpoint, with new tensors for those that were saved."""
    start = file.tell()
    if file.read(len(_MARK)) != _MARK:
        file.seek(start)
        with unset_fake_temporarily():
            content = original_load(file, "meta", *args, **kwargs)
        file = io.BytesIO()
        _write(content, file)
        file.seek(len(_MARK))
    return _ShapeUnpickler(file).load()


def _load_file(safetensors: Any) -> Any:
    """Return the replacement of `safetensors.torch.load_file`."""

    def load_file(filename: str | os.PathLike[str], *_args: Any, **_kwargs: Any) -> Any:
        with open(filename, "rb") as file:
            if file.read(len(_MARK)) == _MARK:
                return _ShapeUnpickler(file).load()
        with safetensors.safe_open(filename, framework="pt") as content:
            slices = {name: content.get_slice(name) for name in content.keys()}  # noqa: SIM118  # no mapping
            return {
                name: torch.empty(part.get_shape(), dtype=safetensors._TYPES[part.get_dtype()])
                for name, part in slices.items()
            }

    return load_file


def _write(obj: object, file: IO[bytes]) -> None:
    content = io.BytesIO()
    _ShapePickler(content).dump(obj)
    file.write(_MARK + content.getvalue())


class _ShapePickler(pickle.Pickler):
    """Pickler that writes the shape of a tensor, and which storage it is a view of."""

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, torch.Tensor):
            return None
        storage = obj.untyped_storage()
        view = (tuple(obj.shape), obj.stride(), obj.storage_offset())
        return storage._cdata, storage.nbytes(), obj.dtype, view, isinstance(obj, nn.Parameter), obj.requires_grad


class _ShapeUnpickler(pickle.Unpickler):
    """Unpickler that makes a tensor for each shape; views of one storage share one again."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self._storages: dict[int, torch.Tensor] = {}

    def persistent_load(self, pid: Any) -> torch.Tensor:
        key, size, dtype, (shape, stride, offset), is_parameter, requires_grad = pid
        if key not in self._storages:
            self._storages[key] = torch.empty(size // dtype.itemsize, dtype=dtype)
        tensor = self._storages[key].as_strided(shape, stride, offset)
        return nn.Parameter(tensor, requires_grad) if is_parameter else tensor.requires_grad_(requires_grad)


_LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1", "", None)
_WANTED_NAMES: Final = ("repo_id", "pretrained_model_name_or_path", "path_or_repo_id", "path_or_repo", "url", "fullurl")
"""Names of variables in which urllib, requests, httpx, torch.hub, torchvision and Hugging Face keep what they load."""

_OFFLINE_ERRORS: Final = ("OfflineModeIsEnabled", "LocalEntryNotFoundError")
"""Errors of huggingface_hub when its offline mode, which a trace sets, lacks a file."""
DOWNLOAD_HINT: Final = (
    "A trace has no network. Let the script run once until the file is on this machine, or let it build the model from "
    "a configuration and use random data of the same shape."
)


class DownloadRefusedError(OSError):
    """Raised for a connection to another machine."""


@contextmanager
def refused_downloads() -> Iterator[None]:
    """Refuse connections to other machines, and name what a script wanted to load if it ends for that."""
    original_lookup, original_connect = socket.getaddrinfo, socket.socket.connect

    def lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host not in _LOCAL_HOSTS:
            raise DownloadRefusedError(f"{host}: a trace has no access to the network")
        return original_lookup(host, *args, **kwargs)

    def connect(connection: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in _LOCAL_HOSTS:
            raise DownloadRefusedError(f"{address[0]}: a trace has no access to the network")
        original_connect(connection, address)

    with patched_attributes(socket, getaddrinfo=lookup), patched_attributes(socket.socket, connect=connect):
        try:
            yield
        except Exception as error:
            wanted = _wanted_download(error)
            if wanted is None or isinstance(error, TraceError):
                raise
            refusal = TraceError("load", f"the script wants to download {wanted}", DOWNLOAD_HINT)
            # With the line of the script that wants it.
            raise refusal.with_traceback(error.__traceback__) from None


def _wanted_download(error: BaseException) -> str | None:
    """Return what could not be loaded, if `error` or one of its causes is a refused download."""
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in chain:
        chain.append(following)
        following = following.__cause__ or following.__context__
    refused = [one for one in chain if isinstance(one, DownloadRefusedError) or type(one).__name__ in _OFFLINE_ERRORS]
    if not refused:
        return None
    frames = [frame for one in chain for frame in _frames(one.__traceback__)]
    names = (frame.f_locals.get(name) for name in _WANTED_NAMES for frame in frames)
    found = next((str(value) for value in names if isinstance(value, str) or hasattr(value, "scheme")), None)
    return found or str(refused[-1]).partition(":")[0]


def _frames(traceback: TracebackType | None) -> Iterator[FrameType]:
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


_BUILDING_OPTIONS: Final = ("dtype", "attn_implementation")
"""Arguments of `from_pretrained` that change the network; others are about where its files are."""

_HUB_OPTIONS: Final = (
    "cache_dir",
    "force_download",
    "proxies",
    "token",
    "local_files_only",
    "revision",
    "trust_remote_code",
    "subfolder",
    "_from_pipeline",
    "_from_auto",
    "_commit_hash",
    "gguf_file",
)
"""Arguments about where a configuration is.

**Source**: `PreTrainedConfig._get_config_dict` in transformers/configuration_utils.py.
"""

AddNote = Callable[[str], None]


@contextmanager
def weights_by_name(add_note: AddNote) -> Iterator[None]:
    """Build networks by the names of their weights, with configurations of the catalog where the files are missing."""
    original_load = nn.Module.load_state_dict

    def load_state_dict(module: nn.Module, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(state_dict, WeightsByName):
            add_note(f"Weights are not downloaded: {state_dict.url}.")
            return _IncompatibleKeys([], [])
        return original_load(module, state_dict, *args, **kwargs)

    with ExitStack() as stack:
        stack.enter_context(patched_attributes(nn.Module, load_state_dict=load_state_dict))
        stack.enter_context(
            patched_attributes(torch.hub, load_state_dict_from_url=lambda url, *_, **__: WeightsByName(url))
        )
        stack.enter_context(
            changed_on_import(
                {
                    "transformers.utils.import_utils": lambda _module: hide_fake_tensors(),
                    "transformers.configuration_utils": _catalog_configurations,
                    "transformers.tokenization_utils_base": _complete_tokenizers,
                    "transformers.modeling_utils": lambda module: _built_networks(module.PreTrainedModel, add_note),
                    "timm.models._builder": lambda module: _without_timm_weights(module, add_note),
                    "torch.utils.tensorboard.writer": lambda module: without_graphs(module, add_note),
                }
            )
        )
        yield


class WeightsByName(Mapping[str, torch.Tensor]):
    """Weights at an address, which only `load_state_dict` accepts."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __getitem__(self, key: str) -> torch.Tensor:
        raise self._refusal()

    def __iter__(self) -> Iterator[str]:
        raise self._refusal()

    def __len__(self) -> int:
        raise self._refusal()

    def _refusal(self) -> TraceError:
        return TraceError(
            "load",
            f"the script reads the weights of {self.url}",
            "A trace downloads no weights, and can only leave them out where load_state_dict gets them as they are.",
        )


def _catalog_configurations(module: Any) -> AbstractContextManager[None]:
    """Let transformers find the catalog's configurations under their names on the Hugging Face Hub."""
    config_class = module.PreTrainedConfig if hasattr(module, "PreTrainedConfig") else module.PretrainedConfig
    original = vars(config_class)["get_config_dict"].__func__

    def get_config_dict(cls: Any, /, name: Any, **kwargs: Any) -> Any:
        fields = None if Path(name).exists() else catalog_config(str(name))
        if fields is None:
            return original(cls, name, **kwargs)
        return dict(fields), {option: value for option, value in kwargs.items() if option not in _HUB_OPTIONS}

    return patched_attributes(config_class, get_config_dict=classmethod(get_config_dict))


def catalog_config(name: str) -> Mapping[str, object] | None:
    """Return the configuration of the catalog's model `name`, None if there is none."""
    # Imported here because few scripts load a model by its name.
    from planner.models.catalog import load_models
    from planner.models.load import load_config
    from planner.paths import catalog_dir

    try:
        return load_config(name, load_models(catalog_dir() / "models"))[1]
    except PlannerError:
        return None


def _complete_tokenizers(module: Any) -> AbstractContextManager[None]:
    """Refuse tokenizers whose files are missing: transformers makes some that know no words."""
    tokenizer_class = module.PreTrainedTokenizerBase
    original = vars(tokenizer_class)["from_pretrained"].__func__

    def from_pretrained(cls: Any, /, name: Any, *args: Any, **kwargs: Any) -> Any:
        tokenizer = original(cls, name, *args, **kwargs)
        if len(tokenizer) <= len(tokenizer.all_special_tokens):
            raise TraceError("load", f"the script wants to download the tokenizer of {name}", DOWNLOAD_HINT)
        return tokenizer

    return patched_attributes(tokenizer_class, from_pretrained=classmethod(from_pretrained))


def _built_networks(network_class: Any, add_note: AddNote) -> AbstractContextManager[None]:
    """Replace `from_pretrained` of a class of transformers: the network is built from the configuration."""

    def from_pretrained(
        cls: Any, /, pretrained_model_name_or_path: Any, *_args: Any, config: Any = None, **kwargs: Any
    ) -> Any:
        name = pretrained_model_name_or_path
        if kwargs.get("quantization_config") is not None or kwargs.get("load_in_4bit") or kwargs.get("load_in_8bit"):
            raise TraceError("load", f"{name} is loaded quantized", "A trace has no kernels for quantized weights.")
        dtype = kwargs.pop("torch_dtype", None)
        options = {option: kwargs.pop(option) for option in _BUILDING_OPTIONS if option in kwargs}
        options["dtype"] = options.get("dtype", dtype)
        device_map = kwargs.pop("device_map", None)
        if config is None or isinstance(config, str | Path):
            # What is no field of the configuration, such as the folder of the cache, does not change the network.
            config, _ = cls.config_class.from_pretrained(config or name, return_unused_kwargs=True, **kwargs)
        if options["dtype"] in (None, "auto"):
            options["dtype"] = config.dtype if hasattr(config, "dtype") else config.torch_dtype
        network = cls._from_config(config, **{option: value for option, value in options.items() if value is not None})
        add_note(f"{name} is built as {type(network).__name__} from its configuration, without weights.")
        network.name_or_path = str(name)
        if device_map is not None and torch.cuda.is_available():
            network.to("cuda")
        return network.eval()

    return patched_attributes(network_class, from_pretrained=classmethod(from_pretrained))


def _without_timm_weights(module: Any, add_note: AddNote) -> AbstractContextManager[None]:
    """Leave out the weights of timm's `create_model(pretrained=True)`.

    **Source**: `load_pretrained` in timm/models/_builder.py, which downloads them and loads them into a built model.
    """

    def load_pretrained(model: nn.Module, *_args: Any, **_kwargs: Any) -> None:
        add_note(f"Weights of timm's {type(model).__name__} are not downloaded.")

    return patched_attributes(module, load_pretrained=load_pretrained)


def without_graphs(module: Any, add_note: AddNote) -> AbstractContextManager[None]:
    """Run a network once where TensorBoard would draw it, for which TorchScript needs data.

    **Source**: `graph` in torch/utils/tensorboard/_pytorch_graph.py, which traces it in evaluation mode.
    """

    def add_graph(_writer: Any, model: nn.Module, input_to_model: Any = None, *_args: Any, **_kwargs: Any) -> None:
        add_note(f"TensorBoard's graph of {type(model).__name__} is not drawn: the network is run once instead.")
        inputs = input_to_model if isinstance(input_to_model, tuple | list) else (input_to_model,)
        was_training = model.training
        model.eval()(*inputs)
        model.train(was_training)

    return patched_attributes(module.SummaryWriter, add_graph=add_graph)
