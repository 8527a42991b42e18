"""gNMI: paths, values and one subscription, over grpc's asyncio client."""
