"""What every other part uses: errors, units, time, text, secrets, the plugin folders."""
