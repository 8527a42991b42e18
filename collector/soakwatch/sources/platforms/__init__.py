"""Network systems as data: how a command line talks, which commands it is asked, what their outputs say."""
