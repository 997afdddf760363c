"""Studies: what AXS-6 does to the results of whole models, and rounding to the mean of values."""

from axs6.sim.study.accuracy import Run, Study, check_request, study_accuracy
from axs6.sim.study.figure import picture
from axs6.sim.study.models import MODELS
from axs6.sim.study.rounding import RoundingRow, study_rounding
from axs6.sim.study.user import load
from axs6.sim.study.workload import METRICS, Workload

__all__ = [
    "METRICS",
    "MODELS",
    "RoundingRow",
    "Run",
    "Study",
    "Workload",
    "check_request",
    "load",
    "picture",
    "study_accuracy",
    "study_rounding",
]
