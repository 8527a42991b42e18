"""A Linux device over one kept shell: what it has, what is asked each look, and how the agent's probes read that."""
