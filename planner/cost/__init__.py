"""Cost of jobs: rental offers, ownership, break-even, and the sensitivity of the decision."""
