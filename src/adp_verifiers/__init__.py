"""Any environment of adp as a taskset of verifiers (0.4): ``vf-eval adp_verifiers ...``.

    vf-eval adp_verifiers --env.taskset.environment toolworld --env.taskset.tasks test:20

It needs the package verifiers, which adp does not install.
"""

from adp_verifiers.taskset import AdpTaskset

__all__ = ["AdpTaskset"]
