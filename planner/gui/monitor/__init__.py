"""The Monitor tab: what the cards do, live or as it was recorded."""
