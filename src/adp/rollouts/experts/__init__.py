"""An expert beside a policy: M3's modes of assistance.

- `modes`: who acts when; an actor for each episode.
- `expert`: what the expert would do; `gold` reads the reference run that it walks.
- `rules`: when the mode ``informed`` asks for the expert; `history` is what they look at.
- `judges`: overseer, witness and rewriter of thoughts.
- `aside`: a turn that was not taken, carried out on the side.
- `labels`: M3's categories of rewards.
- `settings`, `spec`: the settings, and how they are written on a command line.

How much of a recorded run was an expert's is counted in `adp.rollouts.collecting.assisted`.
"""
