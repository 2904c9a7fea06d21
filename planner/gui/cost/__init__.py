"""The Cost tab: duration, cost, and the decision between renting and buying."""
