"""Storage of fetched prices and the user's own offers in the price folder.

The last three snapshots are kept. An unreadable file is skipped and reported, and the snapshot before it is used.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, TypeVar

from pydantic import FailFast, Field, TypeAdapter, ValidationError

from planner.base import Spec
from planner.cost.renting.offer import Offer
from planner.errors import PriceError, SpecError
from planner.parsing import parse_json
from planner.storage import UnreadableFileError, read_regular, read_stored, write_stored
from planner.units import MIB

SCHEMA_VERSION: Final = 1


class ProviderPrices(Spec):
    """Offers of one provider from one price source."""

    provider: str = Field(min_length=1)
    source: str = Field(min_length=3, description="name of the price source")
    url: str
    fetched_at: str = Field(description="time of the download, ISO 8601, UTC")
    bytes: int = Field(ge=0, description="size of the fetched file in bytes")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    offers: Annotated[tuple[Offer, ...], FailFast()] = Field(min_length=1)


class PriceSnapshot(Spec):
    """Fetched offers of all providers, each with its own date, since not every update includes all providers."""

    schema_version: Literal[1] = SCHEMA_VERSION
    taken_at: str = Field(pattern=r"^\d{8}T\d{6}Z$", description="time of the update, UTC")
    parts: Annotated[tuple[ProviderPrices, ...], FailFast()] = ()

    def part(self, provider: str) -> ProviderPrices | None:
        """Return the offers of `provider`, or None if the snapshot has no offers of this provider."""
        return next((part for part in self.parts if part.provider == provider), None)

    def with_parts(self, parts: tuple[ProviderPrices, ...], taken_at: str) -> "PriceSnapshot":
        """Return this snapshot with the offers in `parts` in place of the same providers' previous offers."""
        fresh = {part.provider for part in parts}
        unchanged = tuple(part for part in self.parts if part.provider not in fresh)
        return PriceSnapshot(
            taken_at=taken_at, parts=tuple(sorted((*unchanged, *parts), key=lambda part: part.provider))
        )


KEPT_SNAPSHOTS: Final = 3
_MOST_BYTES: Final = 64 * MIB
_NEW_PRICES_HINT: Final = "Delete the file, or update prices."
_OFFERS_HINT: Final = "Correct that offer: the file is a JSON list, as `gpu-planner prices --json` prints it."
_EMPTY: Final = PriceSnapshot(taken_at="00000000T000000Z")
_HELD, _CHOICE, _OWN = "held.json", "choice.json", "own.json"
_Content = TypeVar("_Content", bound=Spec)


class PriceChoice(Spec):
    """The user's choice between the bundled and the fetched prices, as stored in the price folder."""

    use_bundled: bool = False


class OwnOffers(Spec):
    """The user's own offers, as stored in the price folder."""

    offers: Annotated[tuple[Offer, ...], FailFast()] = ()


class StoredPrices(NamedTuple):
    """Contents of the price folder: `snapshot` has the newest readable prices, `problems` names unreadable files."""

    snapshot: PriceSnapshot
    held: PriceSnapshot
    own: tuple[Offer, ...]
    use_bundled: bool
    problems: tuple[PriceError, ...]


class PriceStore:
    """Folder of price files; every method that changes prices writes the files before it returns.

    Methods that write raise `PriceError` if the folder cannot be written; old files are then unchanged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self) -> StoredPrices:
        """Return the contents of the price folder; unreadable files are skipped and reported."""
        problems: list[PriceError] = []
        snapshots = (self._read_or_report(path, PriceSnapshot, problems) for path in self._snapshot_paths())
        newest = next((snapshot for snapshot in snapshots if snapshot is not None), _EMPTY)
        held = self._read_or_report(self.folder / _HELD, PriceSnapshot, problems) or _EMPTY
        choice = self._read_or_report(self.folder / _CHOICE, PriceChoice, problems) or PriceChoice()
        own = self._read_or_report(self.folder / _OWN, OwnOffers, problems) or OwnOffers()
        return StoredPrices(newest, held, own.offers, choice.use_bundled, tuple(problems))

    def take(self, snapshot: PriceSnapshot) -> None:
        """Save `snapshot` as the prices in use, and keep the two previous snapshots."""
        self._write_price_file(f"snapshot-{snapshot.taken_at}.json", snapshot)
        self.use_bundled(False)
        for old in self._snapshot_paths()[KEPT_SNAPSHOTS:]:
            old.unlink(missing_ok=True)

    def hold(self, snapshot: PriceSnapshot) -> None:
        """Replace the prices held back for the user's decision by `snapshot`; an empty snapshot clears the list."""
        if snapshot.parts:
            self._write_price_file(_HELD, snapshot)
        else:
            (self.folder / _HELD).unlink(missing_ok=True)

    def use_bundled(self, chosen: bool) -> None:
        """Switch to the bundled prices (`chosen`), or back to the fetched prices."""
        self._write_price_file(_CHOICE, PriceChoice(use_bundled=chosen))

    def set_own(self, offers: Iterable[Offer]) -> None:
        """Replace the user's own offers."""
        self._write_price_file(_OWN, OwnOffers(offers=tuple(offers)))

    def _snapshot_paths(self) -> list[Path]:
        try:
            return sorted(self.folder.glob("snapshot-*.json"), reverse=True)
        except OSError:  # the folder cannot be searched, which reading the other files reports
            return []

    def _read_or_report(self, path: Path, kind: type[_Content], problems: list[PriceError]) -> _Content | None:
        try:
            data = read_stored(path, "price file", _MOST_BYTES)
            return None if data is None else kind.model_validate(parse_json(data))
        except UnreadableFileError as error:
            problems.append(PriceError(str(path), error.reason, _NEW_PRICES_HINT))
        except ValidationError as error:
            reason = SpecError.from_validation(error).message
            problems.append(PriceError(str(path), f"is not a price file ({reason})", _NEW_PRICES_HINT))
        return None

    def _write_price_file(self, name: str, content: Spec) -> None:
        try:
            write_stored(self.folder / name, content.model_dump_json(exclude_defaults=True))
        except OSError as error:
            raise PriceError(str(self.folder / name), f"cannot be written ({error.strerror})") from error


def read_offers(path: Path) -> tuple[Offer, ...]:
    """Read the user's own offers: a JSON list as printed by `gpu-planner prices --json`.

    Raises:
        PriceError: If it cannot be read or an offer is invalid; the reason names the field.
    """
    try:
        offers = TypeAdapter(Annotated[tuple[Offer, ...], FailFast()]).validate_python(
            parse_json(read_regular(path, "price file", _MOST_BYTES))
        )
    except UnreadableFileError as error:
        raise PriceError(str(path), error.reason, error.hint) from error
    except ValidationError as error:
        raise PriceError(str(path), SpecError.from_validation(error).message, _OFFERS_HINT) from error
    return tuple(offer.evolve(own=True) for offer in offers)


def offers_in_use(bundled: tuple[Offer, ...], stored: StoredPrices) -> tuple[Offer, ...]:
    """Return the user's own offers, the fetched offers, and the bundled offers that are not replaced.

    A fetched machine replaces the bundled on-demand and spot prices of the same machine; bundled commitments stay, with
    their date, since sources without an account do not publish them.
    """
    fetched = () if stored.use_bundled else tuple(offer for part in stored.snapshot.parts for offer in part.offers)
    replaced = {_machine_key(offer) for offer in fetched}
    remaining = (offer if _machine_key(offer) not in replaced else _commitment_prices_only(offer) for offer in bundled)
    return (*stored.own, *fetched, *(offer for offer in remaining if offer is not None))


def _machine_key(offer: Offer) -> tuple[str, str, float, str | None]:
    return offer.provider, offer.instance, offer.gpu_count, offer.region


def _commitment_prices_only(offer: Offer) -> Offer | None:
    if offer.reserved_1y_price_usd_per_hour is None and offer.reserved_3y_price_usd_per_hour is None:
        return None
    return offer.evolve(on_demand_price_usd_per_hour=None, spot_price_usd_per_hour=None)
