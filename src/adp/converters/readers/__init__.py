"""Formats that are only read, a module each, made with `adp.converters.kit`."""

READERS = {
    "pi": "adp.converters.readers.pi:CONVERTER",
    "langfuse": "adp.converters.readers.langfuse:CONVERTER",
    "langsmith": "adp.converters.readers.langsmith:CONVERTER",
    "mlflow": "adp.converters.readers.mlflow:CONVERTER",
    "otlp": "adp.converters.readers.otlp:CONVERTER",
}
"""Name -> ``module:ATTRIBUTE``."""
