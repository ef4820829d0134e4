"""Rules for the names of people in paths of home folders and in prompts of a shell."""

from __future__ import annotations

import re

from adp.stores.redact.rules import Rule

GENERIC = frozenset(
    {"user", "users", "username", "name", "you", "your-name", "your_name", "me", "root", "admin",
     "administrator", "ubuntu", "debian", "centos", "fedora", "ec2-user", "vagrant", "docker",
     "runner", "runneradmin", "work", "worker", "workspace", "agent", "node", "app", "apps",
     "dev", "developer", "devel", "test", "tester", "testuser", "guest", "default", "public",
     "shared", "share", "jovyan", "sandbox", "swe-agent", "openhands", "linuxbrew", "gitpod",
     "codespace", "vscode", "git", "jenkins", "travis", "circleci", "buildkite", "build",
     "builder", "ci", "nobody", "nonroot", "www", "www-data", "postgres", "mysql", "redis",
     "nginx", "hadoop", "spark", "airflow", "oracle", "steam", "pi", "example", "somebody",
     "someone", "anonymous", "foo", "bar", "computeruse", "model", "project", "projects", "code",
     "home", "all", "user1", "myuser", "local", "kasm-user", "sbx_user", "kaggle", "colab",
     "container", "containeruser", "appuser", "coder", "conda", "anaconda", "miniconda",
     "elastic", "service", "system", "student", "codex", "claude", "gemini", "bot", "swebench",
     "oai", "azureuser", "kali", "jupyter", "sagemaker-user", "opc", "mambauser", "micromamba",
     "theia", "docs", "cloudshell", "cloud-user", "deploy", "deployer", "deploybot",
     "ubuntu-user", "webuser", "appusr", "rstudio", "notebook", "notebookuser", "celery", "rails",
     "django", "flask", "laravel", "forge", "ansible", "gitlab-runner", "actions-runner",
     "github", "gitlab", "arch", "alpine", "rocky", "almalinux", "opensuse", "freebsd", "cloud",
     "core", "host", "nixos", "nix", "sweagent", "openhand", "distiller", "playwright",
     "pptruser", "chrome", "selenium", "seluser", "automation", "rootless", "podman",
     "devcontainer", "replit", "repl", "e2b", "daytona", "modal", "terminal", "sshuser",
     "ssh-user", "sftp", "ftp", "mail", "backup", "minecraft", "factorio", "odoo", "frappe",
     "moodle", "solr", "kafka", "zookeeper", "tomcat", "jboss", "wildfly", "sonar", "nexus",
     "linux", "macos", "windows", "loader", "operator", "batch", "lab", "demo"}
)  # fmt: skip
"""Names of home folders that stand for nobody in particular."""

_ROUTES = frozenset(
    {"about", "account", "accounts", "api", "assets", "banner", "blog", "contact", "css",
     "dashboard", "explore", "features", "feed", "fonts", "footer", "header", "help", "hero",
     "images", "img", "index", "intro", "js", "list", "login", "logout", "logo", "main", "media",
     "messages", "news", "notifications", "overview", "page", "pages", "posts", "pricing",
     "products", "profile", "register", "search", "services", "settings", "signin", "signup",
     "slider", "static", "styles", "support", "welcome"}
)  # fmt: skip
"""What follows ``/home/`` and ``/Users/`` in the addresses of web sites."""

_WEB = re.compile(
    r"(?:\b(?:GET|POST|PUT|DELETE|PATCH|HEAD|OPTIONS)\s{1,4}|(?i:href|action|fetch|route|goto|navigate"
    r"|url)[\s=:(\"'\\]{1,6})$"
)
"""What stands before the path of a web site."""

_ROOT = re.compile(r"(?:^|[^\w.-]|\\[nrtfb]|\b[A-Za-z]:|file:/{0,2}|%[0-9A-Fa-f]{2})[/\\]{1,4}$")
"""What stands before the root folder, with its slash: no name, as in ``example.com/home/x``."""

_MOUNT = re.compile(
    r"(?:[/\\]{1,4}(?:mnt|cygdrive|host))?[/\\]{1,4}[a-z](?=[/\\]{1,4}$)"
    r"|[/\\]{1,4}(?:nfs|net|mnt|data|export|gpfs|lustre|afs|storage|scratch|cluster|host|rootfs|Volumes)"
    r"\d{0,3}(?=[/\\]{1,4}$)"
    r"|[/\\]{1,8}wsl(?:\$|\.localhost)[/\\]{1,4}[\w.-]{1,32}(?=[/\\]{1,4}$)"
)
"""Where other disks are, under which home folders may lie too."""


def _home(text: str, start: int, end: int) -> bool:
    head = re.sub(r"(?:home|Users)[/\\]{1,5}$", "", text[max(0, start - 80) : start])
    head = _MOUNT.sub("", head)
    name = text[start:end]
    if _ROOT.search(head) is None or _WEB.search(head.rstrip("/\\")):
        return False
    return is_person(name) and not name.isdigit() and name.lower() not in _ROUTES


def is_person(name: str) -> bool:
    """Whether the name of a user may be a person's: not one that machines and examples use."""
    name = name.lower()
    if name in GENERIC or name.rstrip("0123456789") in GENERIC:
        return False
    if re.search(r"\.(?:html?|php|aspx?|jsx?|tsx?|css|png|jpe?g|svg|gif|webp|json|xml)$", name):
        return False
    return not name.startswith((".", "[", "your")) and len(name) > 1


def _prompt(text: str, start: int, end: int) -> bool:
    return is_person(text[start:end]) and text[max(0, start - 2) : start] != "//"


_NAME = r"""[^\s/\\"'`<>|:;,*?$(){}\[\]=&#!]"""
_PROMPT = (
    r"@[0-9A-Za-z_][0-9A-Za-z_.-]{0,63}"
    r"(?::[~/][^\s$#%@:]{0,200}[$#]|:? ~[^\s$#%@:]{0,200} ?[$#%])"
)

HOMES = (
    Rule("home-folder", "personal", "User name in the path of a home folder",
         r"(?<=[/\\])(?:home|Users)(?:\\{0,4}/|\\{1,4})"
         rf"""(?P<v>[A-Z]{_NAME}{{1,40}} [A-Z]{_NAME}{{1,40}}(?=[/\\"'`])"""
         rf"""|{_NAME}{{1,64}}(?=[\s/\\"'`:;,)\]]|$))""",
         ("home/", "home\\", "Users/", "Users\\"), gate=r"[/\\](?:home|Users)[/\\]", check=_home),
    Rule("home-folder", "personal", "User name in the prompt of a shell: name@host:~$",
         r"(?:(?<![\w.%+@/\\-])|(?<=\\[nrtfb])|(?<=\x1b\[[0-9]m)|(?<=\x1b\[[0-9][0-9];[0-9][0-9]m))"
         rf"(?P<v>[A-Za-z_][0-9A-Za-z_.-]{{1,31}}){_PROMPT}(?![\w{{(])",
         ("@",), gate=_PROMPT, check=_prompt, back=40),
)  # fmt: skip
