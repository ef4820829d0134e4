"""A few lines of code for data sets that no recipe can describe, a module each.

A module has a function ``turns(row) -> Iterator[DatasetTurn]`` (see
`adp.converters.datasets.turns`). A recipe names it as ``hook: NAME``. Only these
modules are looked up, never code that data name.
"""
