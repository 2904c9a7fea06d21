"""The command that answers a question in plain words, or the command line of another program."""

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import prod
from typing import Final, NamedTuple

from planner.cli.user_catalog import rented_cards
from planner.dtypes import scheme_called
from planner.hardware.names import hardware_family, parse_count
from planner.models.catalog import ModelCatalog, name_parts, split_format
from planner.plan.catalog import Catalog
from planner.workload.fields import all_fields
from planner.workload.software.registry import SOFTWARE, program_started_as
from planner.workload.software.software import Software

_LOADED_AS: Final = "--dtype"
"""Option of other programs for the format of weights that are not quantized."""
_OPTIONS: Final = {
    other: option
    for option, others in {
        "--model": "-m --model-path --model-id --model-name --model-name-or-path --base-model --hf-repo -hf",
        "--gpu": "--gpus --card --cards --device --on",
        "--batch": "--batch-size --bs -b --max-batch-size --parallel -np --slots",
        "--micro-batch": "--per-device-train-batch-size --train-batch-size",
        "--accumulate": "--gradient-accumulation-steps",
        "--context": "--ctx --ctx-size -c --n-ctx --num-ctx --context-length --context-size --max-model-len "
        "--max-total-tokens --max-length --max-context-length",
        "--seq": "--seq-len --max-seq-length --max-seq-len --model-max-length --cutoff-len",
        "--weights": "--quantization --quant -q --quantize --precision",
        _LOADED_AS: "--dtype --torch-dtype",
        "--tp": "--tensor-parallel-size --tensor-parallel -tp --tp-size --num-shard",
        "--pp": "--pipeline-parallel-size -pp --pp-size",
        "--kv-cache": "--kv-cache-dtype --cache-type-k -ctk",
        "--gpu-layers": "--n-gpu-layers -ngl --num-gpu",
        "--lora-rank": "--lora-r -r",
        "--price-under": "--max-price --under --budget",
        "--profile": "--engine --backend --framework",
        "--set engine.memory_utilization": "--gpu-memory-utilization",
        "--set engine.max_num_seqs": "--max-num-seqs",
    }.items()
    for other in others.split()
}
"""Options of other programs, each with the option for it here."""
_SWITCHES: Final = {
    **dict.fromkeys(("--train", "--training"), "--task training"),
    **dict.fromkeys(("--finetune", "--fine-tune", "--lora", "--peft"), "--task training --method lora"),
    "--qlora": "--task training --method qlora",
    "--load-in-4bit": "--weights nf4",
    "--load-in-8bit": "--weights int8",
}
"""Switches of other programs, each with the options for it here."""
_TRAINING_WORDS: Final = {
    **dict.fromkeys(("train", "training", "pretrain", "fsdp"), "--train"),
    **dict.fromkeys(["finetune", "finetuning", "fine-tune", "fine-tuning", "fine-tuned", "lora"], "--lora"),
    "qlora": "--qlora",
}
_FOR_TRAINING: Final = {"--context": "--seq", "--batch": "--micro-batch"}
_FOR_INFERENCE: Final = {option: other for other, option in _FOR_TRAINING.items()}
_SCRIPT_STARTERS: Final = ("python", "python3", "torchrun", "accelerate", "deepspeed")
_DEGREES: Final = ("--tp", "--pp", "--dp")
_MOST_CARDS: Final = 4
_SEVERAL: Final = 2
_UNSAID: Final = ("", "auto", "all", "none")
_ALL_LAYERS: Final = 99
"""From this number on, programs that take a number of layers on the card mean all of them."""
_USUAL_FILE: Final = "Q4_K_M"
"""Format of GGUF files that are named without one. **Source**: most tags of Ollama's library, without a suffix."""
_SHORTEST_NUMBER: Final = 3
"""Digits of the shortest number that people call a card by: 580, 4090."""
_MOST_WORDS: Final = 7
_MARKS: Final = ",;\"'`"
_QUOTES: Final = f"?!()[]{_MARKS}"
_ASSIGNED: Final = re.compile(r"\b[a-z]\w*=.+")
_FOUR_BITS: Final = re.compile(r"(int|fp|q|bnb-)?4-?bits?|int4|q4|4bpw", re.IGNORECASE)
_EIGHT_BITS: Final = re.compile(r"(int|bnb-)?8-?bits?|q8", re.IGNORECASE)
_FILES_BY_BITS: Final = {"q2": "Q2_K", "q3": "Q3_K_M", "q5": "Q5_K_M", "q6": "Q6_K"}
_LENGTH: Final = re.compile(r"(\d[\d,.]*k?)-?(tokens?|context|ctx)?", re.IGNORECASE)
_LENGTH_WORDS: Final = frozenset(["context", "ctx", "tokens", "token", "sequence", "seq", "length"])
_MONEY: Final = re.compile(r"\$(\d[\d,.]*k?)|(\d[\d,.]*k?)(?:\$|usd|dollars?|bucks)", re.IGNORECASE)
_MEMORY: Final = re.compile(r"(\d{1,4})(?:g|gb|gib)(?:-?vram)?", re.IGNORECASE)
_SIZE: Final = re.compile(r"\d+(?:\.\d+)?b", re.IGNORECASE)
_SITE: Final = re.compile(r"(https?://)?(www\.)?(huggingface\.co|hf\.co|ollama\.com/library)/|^hf:", re.IGNORECASE)
_REPOSITORY: Final = re.compile(r"\w[\w.-]*/[\w.-]+(?<!\.gguf)(?<!\.safetensors)")
_SHORTEST_WORD: Final = 3


class _Found(NamedTuple):
    """A card, or a model with the weight formats in its name; without a name, none was found."""

    name: str
    formats: tuple[str, ...] = ()


def option_here(name: str) -> str:
    """Return the option that corresponds to the option `name` of another program, or "" if there is none."""
    option = _SWITCHES.get(name) or _OPTIONS.get(name, "")
    return "--weights" if option == _LOADED_AS else option


def suggested_command(words: Sequence[str], catalog: Catalog, command: str = "fit", own: Collection[str] = ()) -> str:
    """Return the command that answers `words`, or "" if they name neither a model nor a card nor a limit.

    Args:
        words: A question, such as `can I run llama 3.1 8b on a 3060`, or another program's command line, such as
            `vllm serve MODEL --max-model-len 8192`.
        catalog: The models and cards that may be named.
        command: The command for a model.
        own: Options of that command.
    """
    plain, options, switches = _split(words, own)
    switches += [_TRAINING_WORDS[word.lower()] for word in plain if word.lower() in _TRAINING_WORDS]
    flags = next((_SWITCHES[switch] for switch in reversed(switches)), "")
    is_training = flags.startswith("--task") or options.get("--task") == "training"
    program = SOFTWARE.get(next(filter(None, map(program_started_as, (options.pop("--profile", ""), *plain))), ""))
    price, plain = _first(plain, _MONEY, options.pop("--price-under", ""))
    model, plain = _model(options.pop("--model", ""), plain, catalog.models, program)
    cards, plain = _cards(options.pop("--gpu", ""), plain, catalog)
    memory, plain = _first(plain, _MEMORY)
    given = (options.pop("--weights", ""), *model.formats, *plain, options.pop(_LOADED_AS, ""))
    weights = "" if is_training else _weights(given, program)
    shared = [part for part in (flags, f"--weights {weights}" if weights else "") if part]
    if length := _length(plain):
        options.setdefault("--context", length)
    if not model.name:
        if script := _traced_script(words, cards):
            return script
        return _without_model(plain, cards, price, memory, catalog, command)
    shared += _spelled_options(options, is_training=is_training)
    if program is not None and (program.training if is_training else program.serving):
        shared.append(f"--profile {program.name}")
    if price or (memory and not cards):
        return _line("gpus --fits", shlex.quote(model.name), *shared, *_bounds(price, memory))
    shared += [f"--gpu {shlex.quote(card)}" for card in cards[:2]]
    cards_needed = prod(int(options[name]) for name in _DEGREES if options.get(name, "").isdigit())
    if cards_needed > 1 and "--count" not in options and all(parse_count(card)[0] is None for card in cards):
        shared.append(f"--count {cards_needed}")
    return _line(command, shlex.quote(model.name), *shared)


def _traced_script(words: Sequence[str], cards: list[str]) -> str:
    """Return the command that traces the Python script which `words` start, or "" without one."""
    parts = words[0].split() if len(words) == 1 else list(words)
    if not any(part.endswith(".py") for part in parts):
        return ""
    while "--gpu" in parts:  # an option of this program
        del parts[(at := parts.index("--gpu")) : at + 2]
    start = next(at for at, part in enumerate(parts) if part in _SCRIPT_STARTERS or part.endswith(".py"))
    gpu = [f"--gpu {shlex.quote(parse_count(card)[1])}" for card in cards[:1]]
    return _line("trace", *gpu, "--", shlex.join(parts[start:]))


def _without_model(plain: list[str], cards: list[str], price: str, memory: str, catalog: Catalog, command: str) -> str:
    """Return the command for a size of models, for cards or for limits alone, or ""."""
    if size := next((word for word in plain if _SIZE.fullmatch(word)), ""):
        families = {part for record in catalog.models.records for part in name_parts(record.id)}
        before = [word for word in plain[: plain.index(size)][-1:] if len(word) >= _SHORTEST_WORD]
        return _line("models", *(word for word in before if word.lower() in families), size)
    if cards and command != "fit":
        return _line("prices --gpu", shlex.quote(parse_count(cards[0])[1]))
    if cards:
        return _line("gpus", "--compare" if len(cards) > 1 else "--show", *map(shlex.quote, cards))
    bounds = _bounds(price, memory)
    return _line("gpus", *bounds) if bounds else ""


def _bounds(price: str, memory: str) -> list[str]:
    return [f"--price-under {price}"] * bool(price) + [f"--where 'memory_gib == {memory}'"] * bool(memory)


def _spelled_options(options: Mapping[str, str], *, is_training: bool) -> Iterator[str]:
    """Yield the options as this program spells them; all layers are the default."""
    spelled = _FOR_TRAINING if is_training else _FOR_INFERENCE
    for option, value in options.items():
        if option != "--gpu-layers" or not value.lstrip("-").isdigit() or 0 < int(value) < _ALL_LAYERS:
            name = spelled.get(option, option)
            yield f"{name}{'=' if name.startswith('--set') else ' '}{shlex.quote(value)}"


def _line(*parts: str) -> str:
    return " ".join(("gpu-planner", *parts))


def _split(words: Sequence[str], own: Collection[str]) -> tuple[list[str], dict[str, str], list[str]]:
    """Return the plain words, the values of the options that have a meaning here, and the switches."""
    parts = list(words) if len(words) > 1 else [part for word in words for part in word.split()]
    here = {field.option.flag for field in all_fields() if field.option.flag} | {"--model", "--gpu", "--count", *own}
    plain: list[str] = []
    options: dict[str, str] = {}
    switches: list[str] = []
    while parts:
        word = parts.pop(0).strip(_QUOTES)
        assigned = _ASSIGNED.search(word)
        name, _, value = (f"--{assigned[0]}" if assigned else word).partition("=")
        option = name.lower().replace("_", "-")
        if not name.startswith("-"):
            plain.extend(part.strip(_QUOTES) for part in word.split())
        elif option in _SWITCHES:
            switches.append(option)
        elif parts and program_started_as(parts[0]):
            continue  # `python -m vllm…` starts a module
        else:
            known = option if option in here else _OPTIONS.get(option, "")
            takes = parts and not parts[0].startswith("--") and (known or parts[0].isdigit())
            value = value.strip(_QUOTES) or (parts.pop(0).strip(_MARKS) if takes else "")
            if known and value.lower() not in _UNSAID:
                options.setdefault(known, value)
    return plain, options, switches


def _longest_run(words: Sequence[str], find: Callable[[str], _Found | None]) -> tuple[_Found, list[str]]:
    """Return what `find` finds in the longest run of words in which it finds anything, and the other words."""
    for length in range(min(len(words), _MOST_WORDS), 0, -1):
        for start in range(len(words) - length + 1):
            if found := find(" ".join(words[start : start + length])):
                return found, [*words[:start], *words[start + length :]]
    return _Found(""), list(words)


def _model(
    given: str, words: Sequence[str], models: ModelCatalog, program: Software | None
) -> tuple[_Found, list[str]]:
    """Return the model in the option or else the words, of the catalog or else the Hub, and the other words."""
    if given:
        return _known_model(given, models) or _repository(given) or _Found(given), list(words)
    found, rest = _longest_run(words, lambda text: _known_model(text, models))
    if found.name == "":
        found, rest = _longest_run(words, _repository)
    if found.name == "" and program is not None:
        # Behind the name of a program that runs models, a word without a number is a family.
        found, rest = _longest_run(words, lambda text: _found(_plainest(models.ids_beginning_with(text))))
    return found, rest


def _known_model(text: str, models: ModelCatalog) -> _Found | None:
    """Return the catalog's model that `text` names, with or without owner, number format and kind of file."""
    bare = _SITE.sub("", text)
    for name in dict.fromkeys((bare, bare.rpartition("/")[2])):
        formats: tuple[str, ...] = ()
        while name:
            if found := _resolved(name, models):
                return _Found(found, formats)
            shorter, stated = split_format(name)
            name, formats = (shorter if shorter != name else ""), (*formats, stated)
    return None


def _resolved(name: str, models: ModelCatalog) -> str:
    """Return the catalog's name for `name`, of several versions the plainest and last, or ""."""
    written = models.names_written_as(name)
    if written or not any(map(str.isdigit, name)):
        return next(iter(written), "")
    return _plainest(models.ids_written_as(name) or models.ids_beginning_with(name))


def _plainest(ids: Sequence[str]) -> str:
    return max(ids, key=lambda each: (-len(name_parts(each.rpartition("/")[2])), each), default="")


def _found(name: str) -> _Found | None:
    return _Found(name) if name else None


def _repository(text: str) -> _Found | None:
    """Return the name of a repository as it is read from the Hugging Face Hub."""
    name = _SITE.sub("", text)
    return _Found(f"hf:{name}") if _REPOSITORY.fullmatch(name) else None


def _cards(given: str, words: Sequence[str], catalog: Catalog) -> tuple[list[str], list[str]]:
    """Return the cards in the option or else the words, and the other words."""

    def card(text: str) -> _Found | None:
        number, kind = parse_count(text)
        too_short = kind.isdigit() and len(kind) < _SHORTEST_NUMBER
        if (
            too_short
            or number == 0
            or not any(map(str.isdigit, kind))
            or _MEMORY.fullmatch(kind)
            or _SIZE.fullmatch(kind)
        ):
            return None
        family = hardware_family(catalog.hardware, kind)
        if not family and rented_cards(kind, catalog) is None:
            return None
        name = kind if len(family) < _SEVERAL else family[0].id
        return _Found(name if number is None else f"{number} x {name}")

    cards: list[str] = []
    left = [given] if given else list(words)
    while len(cards) < _MOST_CARDS:
        found, left = _longest_run(left, card)
        if found.name == "":
            break
        cards.append(found.name)
    return (cards or [given], list(words)) if given else (cards, left)


def _first(words: list[str], form: re.Pattern[str], given: str = "") -> tuple[str, list[str]]:
    """Return the first value of this form, or `given`, and the words without it."""
    for at, word in enumerate(() if given else words):
        if found := form.fullmatch(word):
            return next(filter(None, found.groups())), [*words[:at], *words[at + 1 :]]
    return given, words


def _weights(words: Sequence[str], program: Software | None) -> str:
    """Return the first weight format that is named among the words, as `--weights` takes it, or ""."""
    containers = () if program is None or program.serving is None else program.serving.containers
    in_files = not containers or containers[0] == "gguf"
    for word in words:
        if name := scheme_called(word) or _FILES_BY_BITS.get(word.lower()):
            return name
        if _FOUR_BITS.fullmatch(word):
            return _USUAL_FILE if in_files else "awq4-128"
        if _EIGHT_BITS.fullmatch(word):
            return "Q8_0" if in_files else "int8"
    return _USUAL_FILE if containers == ("gguf",) else ""


def _length(words: Sequence[str]) -> str:
    """Return the number of tokens that is named as such, as in `32k context` or `context of 8192`, or ""."""
    for at, word in enumerate(words):
        found = _LENGTH.fullmatch(word)
        near = {other.lower() for other in words[max(at - 2, 0) : at + 2]}
        if found and (found[2] or near & _LENGTH_WORDS):
            return found[1]
    return ""
