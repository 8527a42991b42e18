"""Causes: findings with a common cause are told as one. Nothing is dropped or changed, only grouped."""

from soakwatch_rules.causes.cause import Cause, CauseKind
from soakwatch_rules.causes.doubt import Doubt, doubts
from soakwatch_rules.causes.fold import causes
from soakwatch_rules.causes.telling import lag, lags

__all__ = ["Cause", "CauseKind", "Doubt", "causes", "doubts", "lag", "lags"]
