"""Save a small and a large plan to the file in argv in turn, until killed; each is told in a line."""

import sys

from planner.plan.files import save_plan
from planner.plan.plan import ModelChoice, Plan

SMALL = Plan(model=ModelChoice(id="small"))
LARGE = Plan(model=ModelChoice(id="large", path="x" * 4_000_000))

if __name__ == "__main__":
    while True:
        for plan in (LARGE, SMALL):
            save_plan(sys.argv[1], plan)
            sys.stdout.write(f"{plan.model.id}\n")
            sys.stdout.flush()
