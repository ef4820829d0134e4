"""What of an episode of M3 is live: another environment, a server of tools, documents, a judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from adp.rollouts.environment import ENVIRONMENTS, Environment
from adp.rollouts.environments.m3_judge import AnswerJudge
from adp.rollouts.environments.m3_scenario import M3Settings
from adp.rollouts.environments.retrieve_documents import RetrieveDocuments
from adp.rollouts.spec import load
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool
from adp_schema.errors import UsageError


def inner_of(settings: M3Settings) -> Environment | None:
    """The environment whose tools are called instead."""
    if settings.inner is None:
        return None
    kind, about = load(ENVIRONMENTS, settings.inner)
    return cast(Environment, kind.make(about))


def api_of(settings: M3Settings) -> ToolEnvironment | None:
    """The environment that answers calls of its tools in place of the recording.

    Raises:
        UsageError: its tools are no functions, or there is an inner one beside it.
    """
    if settings.api is None:
        return None
    if settings.inner is not None:
        raise UsageError("the environment m3 takes either inner or api")
    kind, about = load(ENVIRONMENTS, settings.api)
    result = kind.make(about)
    if not isinstance(result, ToolEnvironment):
        raise UsageError(f"the tools of '{kind.name}' are no functions, which api needs; try inner")
    return result


def documents_of(settings: M3Settings, inner: Environment | None) -> RetrieveDocuments | None:
    """The environment that retrieves documents in place of the recording.

    Raises:
        UsageError: it is another one, or there is an inner one beside it.
    """
    if settings.retrieve is None:
        return None
    kind, about = load(ENVIRONMENTS, settings.retrieve)
    documents = kind.make(about)
    if inner is not None or not isinstance(documents, RetrieveDocuments):
        raise UsageError("retrieve takes retrieve_documents:..., and no inner beside it")
    return documents


def judge_of(settings: M3Settings) -> AnswerJudge | None:
    """The model that judges answers."""
    return None if settings.judge is None else AnswerJudge(settings.judge, settings.judge_rubric)


def with_collections(
    tools: Mapping[str, FunctionTool], collections: Iterable[str]
) -> Mapping[str, FunctionTool]:
    """The tools that retrieve; one that takes any collection takes those of the task."""
    names = list(collections)

    def known(tool: FunctionTool) -> FunctionTool:
        properties = tool.parameters.get("properties", {})
        collection = properties.get("collection", {})
        if not names or "enum" in collection:
            return tool
        properties = {**properties, "collection": {**collection, "enum": names}}
        return replace(tool, parameters={**tool.parameters, "properties": properties})

    return {name: known(tool) for name, tool in tools.items()}
