"""Toolworld: a world made of hashes, in which questions take several calls of several tools.

"What is the colour of the owner of the maker of ZaRuKe?" takes two calls of ``follow`` and one of
``lookup``. The world is made anew for each task, so nothing can be known by heart; the shortest
solution is known, so each step can be judged; names and compositions of the split ``test`` never
occur in ``train``. Two more splits are harder: in ``unseen_tools`` two tools have names and
arguments that ``train`` never has, and in ``longer_paths`` the paths are longer than any there.

world.py         names, relations, attributes, and the values behind them
questions.py     kinds of questions, their plans, the split of compositions
toolset.py       tools, under fixed, random or unseen names, and tools that are not needed
tasks.py         settings, and tasks from them
world_environment.py  the environment, its expert and its verdict
"""

from adp.rollouts.environment import EnvironmentKind
from adp.rollouts.environments.toolworld.tasks import ToolworldSettings, make_tasks
from adp.rollouts.environments.toolworld.world_environment import Toolworld

KIND = EnvironmentKind(
    name="toolworld",
    about="Made-up worlds: questions over several hops and tools, with a known shortest solution.",
    settings=ToolworldSettings,
    make=Toolworld,
    tasks=make_tasks,
)

__all__ = ["KIND", "Toolworld", "ToolworldSettings", "make_tasks"]
