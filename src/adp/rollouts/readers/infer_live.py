"""What of M3's ``infer_agent.json`` asks servers: documents, tools, and who judges answers.

Each is mapped only when the file, or the environment, names what it takes. Else the responses that
the reference data recorded are given again, and a rule judges answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from adp.core.config_mapping import Target
from adp.rollouts.readers.infer_provider import Provider
from adp_schema.errors import UsageError

SUBDOMAINS = ("rest", "slot_filling", "selection")
USER, PASSWORD = "ES_USERNAME", "ES_PASSWORD"

_RECORDED = "recorded responses are given again"
_RULE = "a rule judges answers, and adp score --with judge asks a model afterwards"
_Mapped = tuple[dict[str, Any], str]
"""Settings by path, and why there are none."""


def live_rules(given: Mapping[str, Any], mode: str | None, provider: Provider) -> dict[str, Target]:
    """Rules of the settings that ask servers.

    Args:
        given: keys and values of the file.
        mode: how the expert helps; None: not at all.
        provider: what M3 takes from elsewhere.

    Raises:
        UsageError: a value is wrong; says what to do.
    """
    subdomain = given.get("env_subdomain_mode", "rest")
    if subdomain not in SUBDOMAINS:
        raise UsageError(f"env_subdomain_mode is one of {', '.join(SUBDOMAINS)}")
    api, db = _object(given, "api_config"), _object(given, "db_config")
    tables = _tables(api, subdomain, mode, provider)
    inside = "the environment sql has the tools"
    judge, why = _scorer(given, mode, provider)
    return {
        "db_config": _target(*(({}, inside) if tables[0] else _documents(db, provider))),
        "api_config": _target(*(({}, inside) if tables[0] else _api(api, provider))),
        "env_subdomain_mode": _target(*tables),
        "scorer_model_name_or_path": _target(judge, why),
        "scorer_max_new_tokens": Target("", "it is part of the judge" if judge else why),
    }


def _target(settings: dict[str, Any], why: str) -> Target:
    return Target("", "", lambda value, given: settings, off=why)


def _object(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = given.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UsageError(f"{name}: {value!r} is no object; set it to null for the recording")
    return value


def _word(section: Mapping[str, Any], place: str) -> str | None:
    """A text of a section; None without one."""
    value = section.get(place.rpartition(".")[2])
    if value in (None, ""):
        return None
    if not isinstance(value, str):
        raise UsageError(f"{place}: {value!r} is no text")
    return value


def _file(provider: Provider, place: str, name: str, about: str) -> str:
    path = provider.find(name)
    if not path.exists():
        raise UsageError(f"{place}: {name} is not there; it is {about}")
    return str(path)


def _address(place: str, address: str) -> str:
    """An address without secrets in it: what a run is told is kept with the run."""
    try:
        named = urlsplit(address).username is not None
    except ValueError:
        named = False
    if named:
        raise UsageError(f"{place} holds a name before the host; take it out of the address")
    return address


def _documents(db: Mapping[str, Any], provider: Provider) -> _Mapped:
    host, index = _word(db, "db_config.host_name"), _word(db, "db_config.index_name")
    if host is None:
        return {}, f"it names no host; {_RECORDED}"
    if not (provider.variables.get(USER) and provider.variables.get(PASSWORD)):
        return {}, f"{USER} and {PASSWORD} are not both set; {_RECORDED}"
    if index is None:
        raise UsageError("db_config.index_name names the index of Elasticsearch; it is missing")
    address = _address("db_config.host_name", host if "://" in host else f"https://{host}")
    settings: dict[str, Any] = {
        "name": "retrieve_documents",
        "retriever": "elasticsearch",
        "retriever_url": address,
        "retriever_user_env": USER,
        "retriever_password_env": PASSWORD,
        "match": "elser",
        "index": index,
        "limit": db.get("top_k", 3),
    }
    cert = _word(db, "db_config.cert")
    if cert is not None and address.startswith("https:"):
        about = "the certificate of who made that of Elasticsearch; null takes those of the system"
        settings["retriever_cert"] = _file(provider, "db_config.cert", cert, about)
    return {"env.retrieve": settings}, ""


def _api(api: Mapping[str, Any], provider: Provider) -> _Mapped:
    end_point, document = _word(api, "api_config.end_point"), _word(api, "api_config.document")
    if end_point is None:
        return {}, f"it names no server; {_RECORDED}"
    if "://" not in end_point:
        if not provider.find(end_point).is_file():
            return {}, f"end_point is neither an address with http:// nor a file; {_RECORDED}"
        return {"env.api": {"name": "openapi", "file": str(provider.find(end_point))}}, ""
    if document is None:
        return {}, (
            f"{_RECORDED}; to call the server, save its OpenAPI document (of FastAPI it is "
            f"{end_point.rstrip('/')}/openapi.json) and name the file: api_config.document"
        )
    file = _file(provider, "api_config.document", document, "the server's OpenAPI document")
    server = _address("api_config.end_point", end_point)
    return {"env.api": {"name": "openapi", "file": file, "server": server}}, ""


def _tables(
    api: Mapping[str, Any], subdomain: str, mode: str | None, provider: Provider
) -> _Mapped:
    if subdomain == "rest":
        return {}, "tools of REST are those of the data; api_config says who answers"
    tables = _word(api, "api_config.tables")
    if tables is None:
        return {}, (
            f"M3's tools over tables are not part of its file; {_RECORDED}; "
            "api_config.tables, a folder, gives the agent the tools of the environment sql"
        )
    if mode not in (None, "none"):
        raise UsageError(
            f"env_subdomain_mode {subdomain}: the expert knows the recorded calls alone, which the "
            "tools over tables do not take; set expert_assist_mode to null, or take "
            "api_config.tables out for the recording"
        )
    folder = _file(provider, "api_config.tables", tables, "the folder of the tables")
    return {"env.inner": {"name": "sql", "tables": folder, "style": subdomain}}, ""


def _scorer(given: Mapping[str, Any], mode: str | None, provider: Provider) -> _Mapped:
    if mode == "ground_truth":
        return {}, "the expert gives the reference answers, and a rule says so"
    model, tokens = (given.get(f"scorer_{key}") for key in ("model_name_or_path", "max_new_tokens"))
    if not model:
        return {}, f"it names no model; {_RULE}"
    spec = provider.model(model, given.get("temperature"), tokens)
    if not spec:
        return {}, f"no server is known for it, which OPENAI_BASE_URL would name; {_RULE}"
    return {"env.judge": spec}, ""
