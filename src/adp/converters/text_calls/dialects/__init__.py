"""Grammars of actions in texts, one a file; `adp.converters.text_calls.registry` lists them."""
