"""Rendering: a trajectory as tokens, with exactly the right ones under the loss.

`chat` says what the model saw, `template` writes it in the model's own chat template, `spans` finds
the characters that are trained, `tokens` turns them into ids, `windows` cuts what is too long, and
`rows` puts it together. `run` renders a whole store into Parquet.
"""
