"""Grafana dashboards of Soakwatch as code: ``python -m soakwatch_dashboards`` writes their JSON."""

import warnings

with warnings.catch_warnings():
    # It recommends the second schema of dashboards, which no Grafana before 12 can show, when it is imported first.
    warnings.filterwarnings("ignore", message="Prefer using dashboardv2", category=DeprecationWarning)
    from grafana_foundation_sdk.builders import dashboard, heatmap  # noqa: F401
