"""A lab of network namespaces: generator, two routers and sink, with everything that happens to them on purpose."""
