"""Templates of `adp new`: for each kind of plug-in its module and its test."""
