"""A lab in network namespaces: generator, two routers and sink, and everything that happens to them on purpose."""
