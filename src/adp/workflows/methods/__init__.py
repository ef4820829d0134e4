"""Methods: a recipe and a training in one file, to be compared with others.

for name, file in shipped_methods("doc").items(): ...
method = read_method("B3_coreset_hybrid", {"size": 200})
"""

from adp.workflows.methods.method_file import (
    MethodFile,
    method_names,
    read_method,
    shipped_methods,
)

__all__ = ["MethodFile", "method_names", "read_method", "shipped_methods"]
