"""What a machine is, topic by topic: a fingerprint is made of these. Standard library only, and nothing is changed."""
