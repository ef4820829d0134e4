"""Evaluation and generation: environments, policies, rollouts, scorers, reports.

environment.py    what an environment is; environments/ holds those that come with the package
policy.py         what answers for the agent; policies/ holds endpoints, models, scripts
rollout/          one episode, many at once, experts that help
scorer.py         what a scorer is; scorers/ holds them
"""
