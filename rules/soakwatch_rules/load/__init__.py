"""What generators offered and received: throughput, traffic, loss, forwarding."""
