"""Result files of load tools, read while the tools write them."""
