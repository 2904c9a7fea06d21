"""A fleet in the Monitor tab: connecting, the heat map, the worst cards, and the past of one card."""
