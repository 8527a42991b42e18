"""Causes: findings with a common cause are reported as one; they are grouped, never changed or dropped."""

from soakwatch_rules.causes.cause import Cause, CauseKind
from soakwatch_rules.causes.describe import lag, lags
from soakwatch_rules.causes.fold import causes
from soakwatch_rules.causes.reasons import ReasonRow, rows_by_reason

__all__ = ["Cause", "CauseKind", "ReasonRow", "causes", "lag", "lags", "rows_by_reason"]
