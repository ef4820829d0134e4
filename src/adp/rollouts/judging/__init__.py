"""Asking models for verdicts: what they read, how they are asked, what their words mean.

    judge = judge_of(settings)                       # models, votes, cache, prices
    judgements = judge.ask(question)                 # a list: one for each model and vote
    ruling = combined(judgements, rubric.labels, "majority")

Scorers and the op ``judge`` stand on it. What cannot be read is asked for once more and is then
unscored, never wrong.
"""
