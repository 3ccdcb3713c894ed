"""Trajectories: a rollout's tokens exactly as they were sampled, its branches, and the samples that come of them.

>>> from renderers import Trajectory, create_renderer
>>> trajectory = Trajectory(create_renderer("golden:qwen3"))
>>> trajectory.begin([{"role": "user", "content": "hi"}])
True
>>> prompt = trajectory.next_prompt_ids  # to the engine; here is what it sampled
>>> reply = trajectory.add_completion([14990, 151645], logprobs=[-0.5, -0.1])
>>> [sample] = trajectory.samples()
>>> sample.ids == [*prompt, 14990, 151645], sum(sample.action_mask)
(True, 2)
"""

from renderers.trajectory.arrow import (
    from_table,
    read_parquet,
    samples_from_table,
    samples_to_table,
    to_table,
    write_parquet,
)
from renderers.trajectory.batch import Batch, Truncation, collate
from renderers.trajectory.breaks import Break, BreakReason, Limit
from renderers.trajectory.checks import (
    LogprobComparison,
    LogprobDifference,
    assert_token_in_token_out,
    compare_logprobs,
)
from renderers.trajectory.document import from_document, from_json, to_document, to_json
from renderers.trajectory.drift import Drift, DriftReport, drift_report
from renderers.trajectory.masked import masked_max, masked_mean, masked_std, masked_sum
from renderers.trajectory.run_statistics import RunStatistics, run_statistics
from renderers.trajectory.sample import Approximation, Sample, Turn, Use
from renderers.trajectory.supervised import ReasoningLossWarning, SupervisedSamples, supervised_samples
from renderers.trajectory.trajectory import Trajectory
from renderers.trajectory.tree import MessageTree, Node

__all__ = [
    "Approximation",
    "Batch",
    "Break",
    "BreakReason",
    "Drift",
    "DriftReport",
    "Limit",
    "LogprobComparison",
    "LogprobDifference",
    "MessageTree",
    "Node",
    "ReasoningLossWarning",
    "RunStatistics",
    "Sample",
    "SupervisedSamples",
    "Trajectory",
    "Truncation",
    "Turn",
    "Use",
    "assert_token_in_token_out",
    "collate",
    "compare_logprobs",
    "drift_report",
    "from_document",
    "from_json",
    "from_table",
    "masked_max",
    "masked_mean",
    "masked_std",
    "masked_sum",
    "read_parquet",
    "run_statistics",
    "samples_from_table",
    "samples_to_table",
    "supervised_samples",
    "to_document",
    "to_json",
    "to_table",
    "write_parquet",
]
