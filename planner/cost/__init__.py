"""Cost of jobs: rental offers, ownership, break-even, and sensitivity of the rent-or-buy decision."""
