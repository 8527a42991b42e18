"""TRex (stateless and ASTF) over its JSON-RPC on ZeroMQ: session, figures, latency, and the throttle."""
