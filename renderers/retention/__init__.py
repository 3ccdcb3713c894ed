"""What each thinking-retention policy costs and buys, on conversations of your own. See docs/retention.md."""

from renderers.retention.conversations import Failure
from renderers.retention.costs import Prices
from renderers.retention.figures import Figures
from renderers.retention.report import ModelReport, RetentionReport, retention_report

__all__ = [
    "Failure",
    "Figures",
    "ModelReport",
    "Prices",
    "RetentionReport",
    "retention_report",
]
