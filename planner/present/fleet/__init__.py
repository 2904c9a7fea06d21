"""A fleet as text: rows of cards, the worst first, a headline, servers, and the colors of a heat map."""
