"""Goal -> subtasks -> a loop for each -> synthesis: a request that takes more than one run of the loop."""

from .run import Planner
from .script import PlanScript
from .state import Part, PlanState

__all__ = ["Part", "PlanScript", "PlanState", "Planner"]
