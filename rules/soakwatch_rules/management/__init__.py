"""Whether a device answers its operators: causes of silences, duration of polls."""
