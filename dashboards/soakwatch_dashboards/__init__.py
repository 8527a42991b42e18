"""Grafana dashboards of Soakwatch as code: ``python -m soakwatch_dashboards`` writes their JSON."""

import warnings

with warnings.catch_warnings():
    # Importing dashboards v1 warns to prefer v2, which no Grafana before 12 can show.
    warnings.filterwarnings("ignore", message="Prefer using dashboardv2", category=DeprecationWarning)
    from grafana_foundation_sdk.builders import dashboard, heatmap  # noqa: F401
