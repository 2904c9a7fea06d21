"""Analysis of recordings: facts, the peak, live memory over time, and the fit on a card."""
