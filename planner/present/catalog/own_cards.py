"""What a person says of a card, in words."""

from planner.hardware.own import CardChange, OwnHardware
from planner.present import format as fmt


def change_words(change: CardChange) -> str:
    """Return what is said of a card, such as: paid $720, limited to 250 W, bought used."""
    paid = "" if change.purchase_price_usd is None else f"paid {fmt.money(change.purchase_price_usd)}"
    limit = "" if change.power_limit_watts is None else f"limited to {change.power_limit_watts:,.0f} W"
    return ", ".join(part for part in (paid, limit, change.note or "") if part)


def loss_words(own: OwnHardware, gpu_id: str) -> str:
    """Return what is lost when a card is forgotten, such as: your own card of 48 GB; what you said: paid $720."""
    card = next((card for card in own.cards if card.id == gpu_id), None)
    change = own.change_of(gpu_id)
    added = "" if card is None else f"your own card of {card.memory_label}"
    said = "" if change is None else f"what you said: {change_words(change)}"
    return "; ".join(part for part in (added, said) if part)
