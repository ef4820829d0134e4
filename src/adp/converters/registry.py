"""The formats by name; those of other packages come from entry points.

`BUILTIN` are read and written in any direction. `READERS` are logs of programs: they are read, and
those that have ``write`` go back to their program, too. `SYSTEMS` are the files of the systems
whose features this project covers: they are read, and written back equal.
"""

from __future__ import annotations

from adp.converters.readers import READERS
from adp.converters.systems import SYSTEMS
from adp.core.registry import Registry
from adp_schema.protocols import Converter

BUILTIN = {
    "adp_v1": "adp.converters.adp_v1:CONVERTER",
    "atif": "adp.converters.atif:CONVERTER",
    "m3": "adp.converters.m3:CONVERTER",
    "openai_chat": "adp.converters.openai_chat:CONVERTER",
    "preference": "adp.converters.preference:CONVERTER",
    "sharegpt": "adp.converters.sharegpt:CONVERTER",
    "sts": "adp.converters.sts:CONVERTER",
}

formats: Registry[Converter] = Registry(
    "format",
    "adp.converters",
    {**BUILTIN, **READERS, **SYSTEMS},
    has=("name", "title", "sniff", "read"),
    made_by="adp.converters.user_format:complete",
)
"""All formats, loaded when they are asked for."""
