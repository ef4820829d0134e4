"""What readers of logs are made of: objects taken key by key, content blocks, drafts, sessions.

A reader takes what columns hold from a `SourceObject`; what is left of it goes to ``extra``, so
nothing is lost in silence. It adds to a `TrajectoryDraft`, which may still be changed by later
lines of the log, and which `emit` writes into the rows of a store.
"""
