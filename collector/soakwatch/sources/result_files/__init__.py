"""Result files of load tools, followed while the tools write them."""
