"""What a person says of a card, in words."""

from planner.hardware.own import CardChange
from planner.present import format as fmt


def change_words(change: CardChange) -> str:
    """Return what is said of a card, such as: paid $720, limited to 250 W, bought used."""
    paid = "" if change.purchase_price_usd is None else f"paid {fmt.money(change.purchase_price_usd)}"
    limit = "" if change.power_limit_watts is None else f"limited to {change.power_limit_watts:,.0f} W"
    return ", ".join(part for part in (paid, limit, change.note or "") if part)
