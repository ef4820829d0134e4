"""Rendering: a trajectory as tokens, with exactly the right ones under the loss.

`chat` says what the model saw, `template` writes it in the model's own chat template, `spans` finds
the characters that are trained, `tokens` turns them into ids, `windows` cuts what is too long, and
`rows` puts it together. `run` renders a whole store into Parquet.

The package can be called: ``adp.render(store, model)`` is `adp.render.library.render`.
"""

import sys
from types import ModuleType
from typing import Any


class _RenderPackage(ModuleType):
    """Python puts this package where the public function of the same name is."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Render a store: see `adp.render.library.render`."""
        from adp.render.library import render

        return render(*arguments, **options)


sys.modules[__name__].__class__ = _RenderPackage
