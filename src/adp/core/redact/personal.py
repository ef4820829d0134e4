"""Rules for personal data. Checksums and number plans are those of stdnum and phonenumbers."""

from __future__ import annotations

import ipaddress
import re

from adp.core.redact.rules import Rule

_RESERVED = re.compile(
    r"(?i)@(?:self\.|[\w.-]+\.)?(?:example\.(?:com|org|net|edu)|[\w-]+\.(?:example|test|invalid|localhost|local)"
    r"|(?:test|domain|email|mail|company|yourdomain|foo|bar|abc|xyz)\.(?:com|org|net)"
    r"|users\.noreply\.github\.com|noreply\.github\.com"
    r"|[\w.-]+\.(?:png|jpe?g|gif|svg|webp|css|js|py|ts|md|txt|json|html?))$"
)
_ROLE = re.compile(
    r"(?i)^(?:no-?_?reply|do-?not-?reply|git|user(?:name)?|you|your[._-]?(?:name|e?mail)?|name|me|someone"
    r"|e?mail|test\w{0,8}|example|foo|bar|info|support|admin|contact|hello|help|sales|security"
    r"|john\.?doe|jane\.?doe|postmaster|webmaster|root|mailer-daemon|notifications?|bot)@"
)


def _email(text: str, start: int, end: int) -> bool:
    value = text[start:end]
    if text[max(0, start - 2) : start] == "//":
        return False  # the user of an address, as in ssh://me@host.org
    return _RESERVED.search(value) is None and _ROLE.match(value) is None


def _phone(text: str, start: int, end: int) -> bool:
    """Whether a number is one that could be dialled; those kept for fiction (555-01xx) are none."""
    import phonenumbers

    value = text[start:end]
    if re.search(r"555[ .-]?01\d\d|(\d)\1{6}|1234567", re.sub(r"[()]", "", value)):
        return False
    try:
        number = phonenumbers.parse(value, None if value.startswith("+") else "US")
    except phonenumbers.NumberParseException:
        return False
    return bool(phonenumbers.is_valid_number(number))


_TEST_CARDS = re.compile(
    r"^(?:4242|4111111111111111|5555555555554444|378282246310005|4000)|(\d)\1{7}"
)


def _card(text: str, start: int, end: int) -> bool:
    from stdnum import luhn

    digits = re.sub(r"\D", "", text[start:end])
    return (
        13 <= len(digits) <= 19
        and luhn.is_valid(digits)
        and _TEST_CARDS.search(digits) is None
        and len(set(digits)) > 3
    )


def _iban(text: str, start: int, end: int) -> bool:
    from stdnum import iban

    value = re.sub(r"\s", "", text[start:end])
    return bool(iban.is_valid(value, check_country=False))


def _ssn(text: str, start: int, end: int) -> bool:
    from stdnum.us import ssn

    value = text[start:end]
    return bool(ssn.is_valid(value)) and value not in ("123-45-6789", "111-11-1111")


def _address(text: str, start: int, end: int) -> bool:
    """Whether an address of the Internet can belong to a person: not private, not reserved."""
    value = text[start:end]
    try:
        found = ipaddress.ip_address(value)
    except ValueError:
        return False
    if re.search(r"(?i)version|release|\bv\.?\s?$|[=><~^]\s?$", text[max(0, start - 20) : start]):
        return False
    return found.is_global and not found.is_multicast and value not in _RESOLVERS


_RESOLVERS = frozenset(
    {"8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1", "9.9.9.9", "1.2.3.4", "4.3.2.1", "5.6.7.8",
     "2.2.2.2", "3.3.3.3", "4.4.4.4", "5.5.5.5", "208.67.222.222", "208.67.220.220"}
)  # fmt: skip

GENERIC = frozenset(
    {"user", "users", "username", "name", "you", "your-name", "your_name", "me", "root",
     "admin", "administrator", "ubuntu", "debian", "centos", "fedora", "ec2-user", "vagrant",
     "docker", "runner", "runneradmin", "work", "worker", "workspace", "agent", "node", "app",
     "apps", "dev", "developer", "devel", "test", "tester", "testuser", "guest", "default",
     "public", "shared", "share", "jovyan", "sandbox", "swe-agent", "openhands", "linuxbrew",
     "gitpod", "codespace", "vscode", "git", "jenkins", "travis", "circleci", "buildkite",
     "build", "builder", "ci", "nobody", "nonroot", "www", "www-data", "postgres", "mysql",
     "redis", "nginx", "hadoop", "spark", "airflow", "oracle", "steam", "pi", "example",
     "somebody", "someone", "anonymous", "foo", "bar", "computeruse", "model", "project",
     "projects", "code", "home", "all", "user1", "myuser", "local", "kasm-user", "sbx_user",
     "kaggle", "colab", "container", "containeruser", "appuser", "coder", "conda", "anaconda",
     "miniconda", "elastic", "service", "system", "student", "codex", "claude", "gemini", "bot"}
)  # fmt: skip
"""Names of home folders that stand for nobody in particular."""


_ROOT = re.compile(r"(?:^|[^\w.-]|\\[nrtfb]|\b[A-Za-z]:|file:/{0,2}|%[0-9A-Fa-f]{2})[/\\]{1,4}$")
"""What stands before the root folder, with its slash: no name, as in ``example.com/home/x``."""


def _home(text: str, start: int, end: int) -> bool:
    head = re.sub(r"(?:home|Users)[/\\]{1,5}$", "", text[max(0, start - 40) : start])
    if _ROOT.search(head) is None:
        return False
    name = text[start:end].lower()
    return name not in GENERIC and not name.startswith((".", "[", "your")) and len(name) > 1


PERSONAL = (
    Rule("email", "personal", "E-mail address; not of example.com and the like, not noreply",
         r"(?:(?<![\w.%+\\-])|(?<=\\[nrtfb]))(?P<v>[0-9A-Za-z_.%+-]{1,64}"
         r"@(?:[0-9A-Za-z](?:[0-9A-Za-z-]{0,62})\.){1,8}[A-Za-z]{2,18})(?![0-9A-Za-z_-])",
         ("@",), gate=r"[0-9A-Za-z_.%+-]@[0-9A-Za-z-]{1,63}\.[0-9A-Za-z-]{2}", check=_email,
         source="https://www.rfc-editor.org/rfc/rfc5322#section-3.4.1", back=64),
    Rule("phone", "personal", "Phone number with a country code, or as written in North America",
         r"(?:(?<![\w.+/=-])|(?<=\\[nrtfb]))(?P<v>\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}"
         r"(?:[ .-]?\d{2,4}){2,4}|(?:\+?1[ .-])?\([2-9]\d\d\) ?[2-9]\d\d[ .-]\d{4}"
         r"|[2-9]\d\d[.-][2-9]\d\d[.-]\d{4})(?![\w-])",
         gate=r"\+[1-9][0-9 .()-]{6}|\([2-9][0-9]{2}\) ?[2-9][0-9]{2}[ .-][0-9]{4}"
         r"|[2-9][0-9]{2}[.-][2-9][0-9]{2}[.-][0-9]{4}",
         check=_phone, source="https://www.itu.int/rec/T-REC-E.164"),
    Rule("credit-card", "personal", "Number of a payment card (Luhn)",
         r"(?:(?<![\w.+/-])|(?<=\\[nrtfb]))(?P<v>(?:4\d{3}|5[1-5]\d\d|2[2-7]\d\d|6011|65\d\d|35\d\d)"
         r"([ -]?)\d{4}\2\d{4}\2\d{4}|3[47]\d\d([ -]?)\d{6}\3\d{5})(?![\w.-])",
         gate=r"[2-6][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}"
         r"|3[47][0-9]{2}[ -]?[0-9]{6}[ -]?[0-9]{5}",
         check=_card, source="https://www.iso.org/standard/70484.html"),
    Rule("iban", "personal", "Bank account (IBAN, mod 97)",
         r"(?:(?<![0-9A-Za-z])|(?<=\\[nrtfb]))(?P<v>[A-Z]{2}\d\d(?: ?[0-9A-Z]{4}){2,7}"
         r"(?: ?[0-9A-Z]{1,4})?)(?![0-9A-Za-z])",
         gate=r"[A-Z]{2}[0-9]{2} ?[0-9A-Z]{4} ?[0-9A-Z]{4} ?[0-9A-Z]{3}", check=_iban,
         source="https://www.iso.org/standard/81090.html"),
    Rule("us-ssn", "personal", "US social security number",
         r"(?:(?<![\w.-])|(?<=\\[nrtfb]))(?P<v>\d{3}-\d{2}-\d{4})(?![\w-])",
         gate=r"[0-9]{3}-[0-9]{2}-[0-9]{4}",
         check=_ssn, source="https://www.ssa.gov/employer/randomization.html"),
    Rule("ip-address", "personal", "Public address of the Internet, IPv4 or IPv6",
         r"(?:(?<![\w.:-])|(?<=\\[nrtfb]))(?P<v>(?:\d{1,3}\.){3}\d{1,3}|(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}"
         r"|(?:[0-9a-fA-F]{1,4}:){2,6}(?::[0-9a-fA-F]{1,4}){1,5})(?![\w:-]|\.\d)",
         gate=r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]"
         r"|[0-9a-fA-F]{1,4}:[0-9a-fA-F]{1,4}:[0-9a-fA-F:]{3}",
         check=_address, source="https://www.iana.org/assignments/iana-ipv4-special-registry/"),
    Rule("home-folder", "personal", "User name in the path of a home folder",
         r"(?<=[/\\])(?:home|Users)(?:\\{0,4}/|\\{1,4})"
         r"""(?P<v>[^\s/\\"'`<>|:;,*?$(){}\[\]=&#!]{1,64})(?=[\s/\\"'`:;,)\]]|$)""",
         ("home/", "home\\", "Users/", "Users\\"), gate=r"[/\\](?:home|Users)[/\\]", check=_home),
)  # fmt: skip
