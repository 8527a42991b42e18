"""A lab server: the queue of plans and campaigns, their schedules, and who did what."""
