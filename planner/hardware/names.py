"""Resolution of accelerator and system names as users and drivers write them: exact after normalization, not fuzzy.

A name is compared as a set of words, so "A100 80GB PCIe", "a100-pcie-80gb" and "NVIDIA A100 PCIe 80 GB" are one name.
Brand words may be omitted but must not be wrong: "4090" is the GeForce RTX 4090, "GTX 4090" matches nothing.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from planner.errors import AmbiguousNameError, SpecError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.kinds import describe_kinds
from planner.hardware.mig import MIG_INFIX, sliced_card_id, split_profile
from planner.hardware.system import System
from planner.records import records_mentioning
from planner.validation import close_names

Words = frozenset[str]

_SUGGESTIONS: Final = 5
_LIST_COMMAND: Final = "`gpu-planner gpus WORDS` lists the accelerators."

# Words that never distinguish two accelerators.
_FILLER_WORDS: Final = frozenset(
    re.split(" ", "accelerator card chip cloud core design edition generation gpu graphics oam tensor with w")
)
# Words that may be omitted, but that must match the record if they are written.
_BRAND_WORDS: Final = frozenset(
    re.split(" ", "amd apple arc aws center data geforce google gtx instinct intel nvidia radeon rtx rx tesla")
)
# Words that name a configuration of a model: "A100" matches every A100 with any of these.
_CONFIGURATION: Final = re.compile(
    r"\d+gb|pcie|sxm\d?|nvl|fhhl|hbm\w+|gddr\w+|server|workstation|maxq|quadro|pro|ada|blackwell|maxwell|pascal|ws"
    r"|grace|hopper|\d+core"
)

_MEMORY_SIZE: Final = re.compile(r"\d+gb")
_MODEL_NUMBER: Final = re.compile(r"\d{3,4}")
_DIGITS: Final = re.compile(r"\d+")
_TRADEMARK: Final = re.compile(r"\((?:r|tm)\)|[®™]")
_NUMBER_AND_UNIT: Final = re.compile(r"\b(\d+)[ -]?g(?:i?b)?\b")
_CORE_COUNT: Final = re.compile(r"\b(\d+)-core\b")
_PREFIXED_NUMBER: Final = re.compile(r"\b(rtx|gtx|rx)(?=\d)")
_SUFFIXED_NUMBER: Final = re.compile(r"\b(\d{3,4})(?=(?:ti|super|xtx?|gre|d)\b)")
_SPELLINGS: Final = {"mobile": "laptop", "notebook": "laptop", "max-q": "maxq"}


class _SplitName(NamedTuple):
    """One spelling of an accelerator's name, split into model words and brand words."""

    gpu: Gpu
    core: Words
    brands: Words


def resolve_gpu(catalog: HardwareCatalog, text: str) -> Gpu:
    """Return the accelerator with the id, name, alias or driver name `text`, in any spelling.

    Raises:
        AmbiguousNameError: If `text` matches several, such as "A100".
        SpecError: If it matches none; the hint suggests similar names.
    """
    exact = next((gpu for gpu in records_mentioning(catalog.gpus, text) if gpu.id == text), None)
    if exact is not None:
        return exact  # plans hold ids: no need to split every name into words
    if sliced_card_id(text) is not None:
        return catalog.gpu(text)
    if (split := split_profile(text)) is not None:
        return _resolve_slice(catalog, text, *split)
    named = find_by_name(catalog, text)
    if len(named) == 1:
        return named[0]
    several = named or find_gpu_candidates(catalog, text)
    if len(several) > 1:
        raise AmbiguousNameError("gpu", text, tuple(gpu.id for gpu in several))
    raise SpecError("gpu", f"no accelerator is called {text!r}", hint=_similar_names_hint(catalog, text, several))


def _resolve_slice(catalog: HardwareCatalog, text: str, card: str, profile: str) -> Gpu:
    """Return the slice `profile` (MIG) of the accelerator with the name `card`; errors name `text`."""
    try:
        cards: tuple[Gpu, ...] = (resolve_gpu(catalog, card),)
    except AmbiguousNameError as error:
        cards = tuple(map(catalog.gpu, error.candidates))
    named = f"{MIG_INFIX}{profile.replace('+', '.')}"
    found = tuple(each for gpu in cards for each in catalog.slices(gpu) if each.id == f"{gpu.id}{named}")
    if len(found) == 1:
        return found[0]
    if found:
        raise AmbiguousNameError("gpu", text, tuple(each.id for each in found))
    profiles = {gpu.name: [each.mig_slice.profile for each in catalog.slices(gpu) if each.mig_slice] for gpu in cards}
    listed = "; ".join(f"{name}: {', '.join(each) or 'none'}" for name, each in profiles.items())
    raise SpecError("gpu", f"no slice of {card} (MIG) is called {profile!r}", hint=f"Profiles of {listed}.")


def resolve_hardware(catalog: HardwareCatalog, text: str) -> Gpu | System:
    """Return the accelerator or system with the name `text`; an unambiguous part of a system's name suffices.

    Raises:
        AmbiguousNameError: If `text` matches several, such as "A100" or "DGX A100".
        SpecError: If it matches none; the hint suggests similar names.
    """
    asked = text.strip().lower()
    systems = records_mentioning(catalog.systems, asked)
    exact = next((each for each in systems if asked in (each.id, each.name.lower())), None)
    if exact is not None:
        return exact
    try:
        return resolve_gpu(catalog, text)
    except AmbiguousNameError:
        raise
    except SpecError:
        # A word of a card's name means the card: "B300" must not become a DGX B300 with eight of them.
        named = () if _names_with_words_of(catalog, text) else systems_named(catalog, text)
        if not named:
            raise
    if len(named) > 1:
        raise AmbiguousNameError("gpu", text, tuple(system.id for system in named))
    return named[0]


def hardware_family(catalog: HardwareCatalog, text: str) -> tuple[Gpu | System, ...]:
    """Return the accelerators that share the name `text`, such as "A100"; else all with its words, and such systems.

    "DGX-1" returns the systems of this name, "TPU" every TPU and every slice of TPUs.
    """
    named = find_by_name(catalog, text) or find_gpu_candidates(catalog, text)
    if named:
        return named
    return (*map(catalog.gpu, _names_with_words_of(catalog, text)), *systems_named(catalog, text))


def systems_named(catalog: HardwareCatalog, text: str) -> tuple[System, ...]:
    """Return the systems named `text`, else those named so without memory size, else those whose name contains `text`.

    "DGX A100" returns both memory sizes and not the DGX Station; "DGX Station" returns all DGX Stations.
    """
    core, brands = _split_brand_words(text)
    if not any(map(str.isalpha, "".join(core))):
        return ()  # a number alone, such as 8, occurs in many names and identifies none
    found = []
    for each in catalog.systems:
        words = _name_words(f"{each.id} {each.name}") - _FILLER_WORDS
        asked = {f"{word}gb" if f"{word}gb" in words else word for word in core}  # "DGX A100 640"
        if asked <= words and brands <= words | {each.vendor.lower()}:
            found.append((each, words - asked - _BRAND_WORDS))
    sizes = [(each, rest) for each, rest in found if all(map(_MEMORY_SIZE.fullmatch, rest))]
    return tuple(each for each, _ in [pair for pair in sizes if not pair[1]] or sizes or found)


def find_gpu_candidates(catalog: HardwareCatalog, text: str) -> tuple[Gpu, ...]:
    """Return the accelerators with the name `text` plus configuration words: "A100" returns all A100s.

    Laptop parts and other models of the same number ("Ti", "SUPER") match only if `text` contains these words.
    """
    core, brands = _split_brand_words(text)
    if not core:
        return ()
    found = {
        name.gpu.id: name.gpu
        for name in _all_names(catalog)
        if core <= name.core and brands <= name.brands and all(map(_CONFIGURATION.fullmatch, name.core - core))
    }
    return tuple(found.values())


def find_by_name(catalog: HardwareCatalog, text: str) -> tuple[Gpu, ...]:
    """Return every accelerator with the name `text`, in any spelling."""
    core, brands = _split_brand_words(text)
    # Splitting names is most of the work and never changes a digit: skip records without these digits.
    digits = _DIGITS.findall(text)
    gpus = records_mentioning(catalog.gpus, *digits)
    names = (name for gpu in gpus if _contains_digits(gpu, digits) for name in _names_of(gpu))
    found = {name.gpu.id: name.gpu for name in names if name.core == core and brands <= name.brands}
    return tuple(found.values())


def _contains_digits(gpu: Gpu, digits: list[str]) -> bool:
    """Return whether a name of `gpu` contains all the numbers in `digits`."""
    written = " ".join((gpu.id, gpu.name, gpu.memory_label, *gpu.aliases))
    return all(run in written for run in digits)


def _similar_names_hint(catalog: HardwareCatalog, text: str, matches: tuple[Gpu, ...]) -> str:
    # A number means a model, whose near names help more than a sentence on its kind.
    if not _DIGITS.search(text) and (about := describe_kinds(text)):
        return f"{about} {_LIST_COMMAND}"
    if (plural := re.fullmatch(r"(.*[a-z]\d+)s", text.strip(), re.IGNORECASE)) and hardware_family(catalog, plural[1]):
        return f"Did you mean {plural[1]!r}? {_LIST_COMMAND}"
    if matches:
        return f"Did you mean {matches[0].id!r} ({matches[0].name})? {_LIST_COMMAND}"
    if size := _NUMBER_AND_UNIT.fullmatch(text.strip().lower()):
        return f"`gpu-planner gpus --where 'memory_gib == {size[1]}'` lists the accelerators with {size[1]} GiB."
    close = _names_with_words_of(catalog, text)
    if not close and (systems := systems_named(catalog, text)):
        named = ", ".join(system.id for system in systems[:_SUGGESTIONS])
        return f"Systems with this name: {named}. `gpu-planner gpus --systems` lists all systems."
    close = close or _names_with_numbers_of(catalog, text)
    if not close and (part := _part_that_is_a_name(catalog, text)):
        return f"Did you mean {part!r}? {_LIST_COMMAND}"
    for machine in sorted({name for gpu in catalog.gpus for name in gpu.machines}):
        if machine.lower() in text.lower():
            chips = [gpu.id for gpu in catalog.gpus if machine in gpu.machines]
            return f"Name its chip, such as {chips[-1]}: `gpu-planner gpus {machine.lower()}` lists {len(chips)}."
    close = close or _names_spelled_alike(catalog, text)
    return f"Close names: {', '.join(close[:_SUGGESTIONS])}. {_LIST_COMMAND}" if close else _LIST_COMMAND


def _names_with_words_of(catalog: HardwareCatalog, text: str) -> tuple[str, ...]:
    """Return the ids of accelerators whose names contain all model words in `text`."""
    core, _ = _split_brand_words(text)
    return tuple(dict.fromkeys(name.gpu.id for name in _all_names(catalog) if core and core <= name.core))


def _names_with_numbers_of(catalog: HardwareCatalog, text: str) -> tuple[str, ...]:
    """Return the ids of accelerators with the model numbers in `text`: "4090 Ti" is close to the RTX 4090."""
    numbers = frozenset(found[0] for found in map(_MODEL_NUMBER.match, _split_brand_words(text)[0]) if found)
    return tuple(dict.fromkeys(name.gpu.id for name in _all_names(catalog) if numbers and numbers <= name.core))


def _part_that_is_a_name(catalog: HardwareCatalog, text: str) -> str:
    """Return the end of `text` that is the name of an accelerator, as in "Google Colab T4", or ""."""
    words = text.split()
    ends = (" ".join(words[start:]) for start in range(1, len(words)))
    return next((end for end in ends if any(map(str.isdigit, end)) and find_by_name(catalog, end)), "")


def _names_spelled_alike(catalog: HardwareCatalog, text: str) -> tuple[str, ...]:
    """Return the ids of accelerators with a name spelled similarly to `text`.

    Those with its digits swapped come first, and those with one left out: "490" is close to the RTX 4090.
    """
    spelt = {name.lower(): gpu.id for gpu in catalog.gpus for name in (gpu.id, gpu.name, *gpu.aliases)}
    close = close_names(text.lower(), spelt, _SUGGESTIONS)
    number = next((number for number in _DIGITS.findall(text) if _MODEL_NUMBER.match(number)), "")
    with_one_more = re.compile(r"(?<!\d)" + r"\d?".join(number) + r"(?!\d)")
    longer = [name for name in spelt if number and with_one_more.search(name)]
    swapped = [name for name in close if sorted(filter(str.isdigit, name)) == sorted(filter(str.isdigit, text))]
    return tuple(dict.fromkeys(spelt[name] for name in (*swapped, *longer, *close)))


# Splitting all names takes tens of milliseconds, and a refresh of prices resolves thousands of cards.
@lru_cache(maxsize=4)
def _all_names(catalog: HardwareCatalog) -> tuple[_SplitName, ...]:
    return tuple(name for gpu in catalog.gpus for name in _names_of(gpu))


def _names_of(gpu: Gpu) -> tuple[_SplitName, ...]:
    """Return all spellings of an accelerator's name, with and without its memory size."""
    parts = [_split_brand_words(text) for text in (gpu.id, gpu.name, *gpu.aliases)]
    brands = frozenset({gpu.vendor.lower()}).union(*(brands for _, brands in parts))
    if gpu.vendor == "NVIDIA" and gpu.segment == "datacenter":
        brands |= {"tesla"}  # the product line's name until 2020, still used for its successors
    cores = dict.fromkeys(form for core, _ in parts if core for form in (core, _with_memory_words(core, gpu)))
    return tuple(_SplitName(gpu, core, brands) for core in cores)


def _with_memory_words(core: Words, gpu: Gpu) -> Words:
    """Return the words `core` plus the card's memory size, which users add to any name: "RTX 4090 24GB"."""
    return core if any(map(_MEMORY_SIZE.fullmatch, core)) else core | _name_words(gpu.memory_label)


def _split_brand_words(text: str) -> tuple[Words, Words]:
    """Return the words of a name that distinguish models, and the brand words in it."""
    words = _name_words(text) - _FILLER_WORDS
    return words - _BRAND_WORDS, words & _BRAND_WORDS


def _name_words(text: str) -> Words:
    plain = _TRADEMARK.sub(" ", text.lower())
    for written, meant in _SPELLINGS.items():
        plain = plain.replace(written, meant)
    plain = _CORE_COUNT.sub(r"\1core", plain.replace("_", " "))
    plain = _NUMBER_AND_UNIT.sub(r"\1gb", plain)
    plain = _SUFFIXED_NUMBER.sub(r"\1 ", _PREFIXED_NUMBER.sub(r"\1 ", plain))
    return frozenset(re.findall(r"[a-z0-9.]+", plain))


_COUNT_WORDS: Final = {"single": 1, "dual": 2, "triple": 3, "quad": 4}
# No card's name begins like this: `7900XTX` and `4060 Ti` have more digits, and `24 GB` is a size.
_COUNTED: Final = re.compile(
    r"(\d{1,6})\s*(?:[x×*]\s+|[×*])(\S.*)|(\d{1,3})x(\S.*)|(\d{1,2})\s+(?!gi?b\b|[x×]\W*$)(\S.*)"
    rf"|({'|'.join(_COUNT_WORDS)})\s+(\S.*)",
    re.IGNORECASE,
)
_COUNTED_AFTER: Final = re.compile(r"(\S.*?)(?:\s+[x×]\s*|\s*[*×]\s*)(\d{1,6})", re.IGNORECASE)


def parse_count(text: str) -> tuple[int | None, str]:
    """Split a count from a name, as in "2 x A100", "A100 x2" or "dual A100"; the count is None if there is none."""
    found = _COUNTED.fullmatch(text.strip())
    if found is None:
        after = _COUNTED_AFTER.fullmatch(text.strip())
        return (None, text) if after is None else (int(after[2]), after[1])
    number, name = (part for part in found.groups() if part is not None)
    return _COUNT_WORDS.get(number.lower()) or int(number), name
