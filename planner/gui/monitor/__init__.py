"""The Monitor tab: live or recorded readings of the cards."""
