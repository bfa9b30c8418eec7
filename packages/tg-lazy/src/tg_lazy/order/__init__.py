"""The order in which steps run, and the steps that become one because nothing stands between them."""
