"""The names of SAGE's documentation (``sage.libs.finetune.agent``), each a few lines over `adp`.

Code that was written for that page runs with the import changed. docs/coming-from.md says what each
name stands for, and where it does more than its model, such as masks that leave observations out of
the loss.
"""

from __future__ import annotations

from adp.workflows.sage.capability import (
    AgentCapabilityEvaluator,
    CapabilityReport,
    CapabilityScore,
)
from adp.workflows.sage.collecting import (
    CollectorConfig,
    TrajectoryCollector,
    collect_and_convert,
)
from adp.workflows.sage.continual import OnlineContinualLearner
from adp.workflows.sage.conversion import SFTConversionConfig, TrajectoryToSFTConverter
from adp.workflows.sage.methods import MethodConfig, MethodRegistry
from adp.workflows.sage.mixing import MixerConfig, MultiTaskMixer, TaskSample
from adp.workflows.sage.selection import CoresetSelector
from adp.workflows.sage.training import (
    AgentSFTConfig,
    AgentSFTTrainer,
    EvalResult,
    RLTrainingConfig,
    TrainingResult,
)
from adp.workflows.sage.trajectories import (
    AgentTrajectory,
    TrajectoryFilter,
    TrajectoryStep,
    load_trajectories,
)

__all__ = [
    "AgentCapabilityEvaluator",
    "AgentSFTConfig",
    "AgentSFTTrainer",
    "AgentTrajectory",
    "CapabilityReport",
    "CapabilityScore",
    "CollectorConfig",
    "CoresetSelector",
    "EvalResult",
    "MethodConfig",
    "MethodRegistry",
    "MixerConfig",
    "MultiTaskMixer",
    "OnlineContinualLearner",
    "RLTrainingConfig",
    "SFTConversionConfig",
    "TaskSample",
    "TrainingResult",
    "TrajectoryCollector",
    "TrajectoryFilter",
    "TrajectoryStep",
    "TrajectoryToSFTConverter",
    "collect_and_convert",
    "load_trajectories",
]
