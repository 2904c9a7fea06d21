"""Reader of models from the Hugging Face Hub, which downloads the configuration and only the headers of the weights."""

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from planner.errors import ModelFileError, NetworkError
from planner.models.architecture import Architecture
from planner.models.readers.checkpoint.safetensors import (
    INDEX,
    MAX_INDEX_BYTES,
    SINGLE,
    Checkpoint,
    FileTensor,
    combine_parts,
    read_header,
    read_index,
)
from planner.models.readers.checkpoint.stored import with_stored_sizes
from planner.models.readers.config_json import MAX_FILE_BYTES, parse_config, read_config
from planner.models.readers.diffusers.pipeline import MODEL_INDEX, WEIGHT_NAMES, read_pipeline_files
from planner.models.readers.gguf.header import read_gguf
from planner.models.readers.gguf.model import architecture_of_gguf
from planner.models.readers.hub.repository import HubError, HubSession, RemoteFile, Repository, ShouldStop
from planner.models.readers.model_file import read_model_file

_NAME: Final = re.compile(
    r"hf:(?P<name>[\w.-]{1,96}(?:/[\w.-]{1,96})?)"
    r"(?:@(?P<revision>[\w./-]{1,100}))?"
    r"(?::(?P<file>[\w./ -]{1,200}\.gguf))?",
    re.ASCII,
)
_CONFIG: Final = "config.json"
_AT_ONCE: Final = 8


def read_hub_model(text: str, stop: ShouldStop = lambda: False) -> Architecture:
    """Read the network `hf:owner/name`, `hf:owner/name@revision` or `hf:owner/name:file.gguf`.

    If the Hub cannot be reached, a copy in `huggingface_hub`'s local cache is read instead.

    Raises:
        ModelFileError: If the name is invalid, or the Hub has no such model or denies access.
        MissingPackageError: If `huggingface_hub` is not installed.
        NetworkError: If the Hub cannot be reached, or `stop` returned true.
    """
    repository, gguf = _parse_hub_name(text)
    try:
        return _read_network(HubSession(stop), repository, gguf)
    except NetworkError:
        kept = None if stop() else _cached_path(repository, gguf or _CONFIG)
        if kept is None:
            raise
        return _read_cached_model(kept)


def read_hub_config(text: str) -> Mapping[str, object]:
    """Read the raw configuration of a model on the Hub.

    Raises:
        PlannerError: As `read_hub_model`.
    """
    repository, _ = _parse_hub_name(text)
    return _parse_config_file(_config_file(HubSession(), repository))


def _parse_hub_name(text: str) -> tuple[Repository, str | None]:
    """Return the repository in a Hub name, and the name of a GGUF file in the repository or None."""
    match = _NAME.fullmatch(text)
    if match is None:
        raise ModelFileError(
            text[:200],
            "is not a model name of the Hugging Face Hub",
            "Write hf:owner/name or hf:owner/name@revision.",
        )
    return Repository(match["name"], match["revision"]), match["file"]


def _read_network(hub: HubSession, repository: Repository, gguf: str | None) -> Architecture:
    if gguf is not None:
        file = RemoteFile(hub, repository, gguf)
        return architecture_of_gguf(read_gguf(file), file.place)
    config = _config_or_index(hub, repository)
    if config.file == MODEL_INDEX:
        return _read_pipeline(hub, repository._replace(revision=config.commit or repository.revision), config)
    # All other files are read from the same commit as the configuration.
    fixed = repository._replace(revision=config.commit or repository.revision)
    architecture = read_config(parse_config(config.read(0, config.size), config.place), config.place)
    checkpoint = _read_checkpoint(hub, fixed)
    if checkpoint is None:
        note = "the Hub has no safetensors files of this model: stored sizes follow from its configuration"
        return architecture.evolve(reader_notes=(*architecture.reader_notes, note))
    return with_stored_sizes(architecture, checkpoint.tensors, checkpoint.notes)


def _config_or_index(hub: HubSession, repository: Repository) -> RemoteFile:
    """Return the remote config.json, or the model_index.json of a diffusion pipeline."""
    try:
        return _config_file(hub, repository)
    except HubError as error:
        index = _file_if_present(hub, repository, MODEL_INDEX) if error.missing else None
        if index is None:
            raise
        return index


def _read_pipeline(hub: HubSession, repository: Repository, index: RemoteFile) -> Architecture:
    def read_component_config(name: str) -> Mapping[str, object] | None:
        file = _file_if_present(hub, repository, f"{name}/{_CONFIG}")
        return None if file is None else _parse_config_file(file)

    def read_component_tensors(name: str) -> Iterable[FileTensor] | None:
        found = _first_checkpoint(hub, repository, name)
        return None if found is None else found.tensors

    return read_pipeline_files(_parse_config_file(index), read_component_config, read_component_tensors, index.place)


def _first_checkpoint(hub: HubSession, repository: Repository, folder: str) -> Checkpoint | None:
    """Return the tensors of a component from the first weights file that exists, or None."""
    for name in WEIGHT_NAMES:
        file = _file_if_present(hub, repository, f"{folder}/{name}")
        if file is not None:
            return (
                _read_indexed_checkpoint(hub, repository, file, f"{folder}/")
                if name.endswith(".json")
                else _read_single_checkpoint(file)
            )
    return None


def _parse_config_file(file: RemoteFile) -> Mapping[str, object]:
    _check_size(file, MAX_FILE_BYTES)
    return parse_config(file.read(0, file.size), file.place)


def _check_size(file: RemoteFile, limit: int) -> None:
    """Raise an error if the remote file is larger than `limit` bytes."""
    if file.size > limit:
        raise ModelFileError(file.place, f"has {file.size:,} bytes", f"At most {limit:,} are read.")


def _config_file(hub: HubSession, repository: Repository) -> RemoteFile:
    """Return the remote config.json; a missing file is an error."""
    try:
        file = RemoteFile(hub, repository, _CONFIG)
    except HubError as error:
        if error.missing:
            error.hint = f"For a GGUF file, write {repository.title}:file.gguf with the file's name. {error.hint}"
        raise
    _check_size(file, MAX_FILE_BYTES)
    return file


def _read_checkpoint(hub: HubSession, repository: Repository) -> Checkpoint | None:
    """Return the tensors in the model's safetensors files, or None if there are none."""
    index = _file_if_present(hub, repository, INDEX)
    if index is not None:
        return _read_indexed_checkpoint(hub, repository, index)
    single = _file_if_present(hub, repository, SINGLE)
    return None if single is None else _read_single_checkpoint(single)


def _read_indexed_checkpoint(
    hub: HubSession, repository: Repository, index: RemoteFile, folder: str = ""
) -> Checkpoint:
    """Return the tensors in the safetensors files that the index `index` in `folder` lists."""
    _check_size(index, MAX_INDEX_BYTES)
    listed = read_index(index.read(0, index.size), index.place)
    files = tuple(dict.fromkeys(listed.values()))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        headers = pool.map(lambda name: read_header(RemoteFile(hub, repository, f"{folder}{name}")), files)
        return combine_parts(listed, zip(files, headers, strict=True), index.place)


def _read_single_checkpoint(file: RemoteFile) -> Checkpoint:
    return Checkpoint(read_header(file))


def _file_if_present(hub: HubSession, repository: Repository, file: str) -> RemoteFile | None:
    """Return the remote file, or None if the repository has no such file."""
    try:
        return RemoteFile(hub, repository, file)
    except HubError as error:
        if error.missing:
            return None
        raise


def _cached_path(repository: Repository, file: str) -> Path | None:
    """Return the path of a file in `huggingface_hub`'s local cache, or None."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(repository.name, file, revision=repository.revision)
    return Path(found) if isinstance(found, str) else None


def _read_cached_model(file: Path) -> Architecture:
    found = read_model_file(file.parent if file.name == _CONFIG else file)
    note = "the Hugging Face Hub was not reached; a copy downloaded earlier is used"
    return found.evolve(reader_notes=(*found.reader_notes, note))
