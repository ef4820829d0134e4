"""Named checks over the trajectories of a store: what is wrong, where, and how to mend it.

`registry` lists them, one file holds each group, and `run` runs them. A check says how it looks:

- `Sql`: one SELECT; most checks.
- `TextRule`: a condition on a text; all of them share one pass over the texts.
- `CallRule`: a function of the calls of one trajectory; all share one pass over the calls.
- `Rows`: a function of a `Scope`.

Checks run on a few shards at a time, so memory does not grow with the store; those that compare
trajectories with each other read the ids of the whole store.
"""
