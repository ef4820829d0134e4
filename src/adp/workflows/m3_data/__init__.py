"""M3's ground truth: from its raw benchmark to turns, and thoughts and answers by a model.

Source: m3-train-eval, ``ground_truth/generate.py``. The wording of the prompts is our own.
"""
