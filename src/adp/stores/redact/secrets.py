"""Rules for secrets: the formats of keys, as their providers publish them.

Lengths are lower bounds where providers say that tokens may grow. A value that documentation
shows, such as one with the word EXAMPLE in it, is no finding; see `adp.stores.redact.validity`.
"""

from __future__ import annotations

from adp.stores.redact import validity
from adp.stores.redact.rules import LEFT, RIGHT, Rule

_W = "[0-9A-Za-z_-]"
_A = "[0-9A-Za-z]"


def _key(
    kind: str, what: str, body: str, *words: str, source: str, short: bool = False, gate: str = ""
) -> Rule:
    """A token that begins with a literal.

    Args:
        kind: its kind.
        what: what it is.
        body: regular expression of the whole token.
        words: literals with which the token begins.
        source: where the format is documented.
        short: the literal is short, so the rest must look drawn by chance.
        gate: for literals that are too common: see `Rule`.
    """
    check = validity.random_token if short else validity.token
    return Rule(kind, "secrets", what, LEFT + body, words, gate, check, source)


_GITHUB = "https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github#githubs-token-formats"
_AWS = "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids"
_AWS_KEYS = "https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_access-keys.html"
_GCP = "https://cloud.google.com/docs/authentication/api-keys"
_GCP_OAUTH = "https://cloud.google.com/docs/authentication/rest"
_AZURE = "https://learn.microsoft.com/azure/storage/common/storage-account-keys-manage"
_SAS = "https://learn.microsoft.com/rest/api/storageservices/create-service-sas"
_ENTRA = "https://learn.microsoft.com/entra/identity-platform/howto-create-service-principal-portal"

CLOUDS = (
    _key("aws-access-key-id", "AWS access key id", rf"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{{16}}{RIGHT}",
         "AKIA", "ASIA", "ABIA", "ACCA", source=_AWS),
    Rule("aws-secret-key", "secrets", "AWS secret access key, beside a word that says so",
         r"(?i:aws.{0,20}?(?:secret|key|token)|secret_?access_?key|secretaccesskey)"
         r"""["'\\\s:=>,]{1,12}(?P<v>[0-9A-Za-z/+]{40})(?![0-9A-Za-z/+=])""",
         gate=r"(?i:aws.{0,20}?(?:secret|key|token)|secret_?access_?key)[\"'\\\s:=>,]{1,12}[0-9A-Za-z/+]{40}",
         check=validity.aws_secret, source=_AWS_KEYS),
    Rule("aws-secret-key", "secrets", "AWS secret access key, after its id",
         r"(?:AKIA|ASIA)[0-9A-Z]{16}[\"'\\\s:=,/|;]{1,6}(?P<v>[0-9A-Za-z/+]{40})"
         r"(?![0-9A-Za-z/+=])", ("AKIA", "ASIA"), check=validity.aws_secret, source=_AWS_KEYS),
    _key("google-api-key", "Google API key (Maps, Gemini, Firebase ...)",
         rf"AIza[0-9A-Za-z_-]{{35}}{RIGHT}", "AIza", source=_GCP),
    _key("google-oauth-token", "Google OAuth access token", r"ya29\.[0-9A-Za-z_-]{20,512}",
         "ya29.", source=_GCP_OAUTH),
    _key("google-oauth-secret", "Google OAuth client secret", r"GOCSPX-[0-9A-Za-z_-]{24,40}",
         "GOCSPX-", source=_GCP_OAUTH),
    Rule("azure-storage-key", "secrets", "Azure storage or Cosmos DB account key",
         r"(?i:account_?key|sharedaccesskey)"
         r"""["'\\\s:=]{1,6}(?P<v>[0-9A-Za-z+/]{43,86}={1,2})""",
         gate=r"(?i:account_?key|sharedaccesskey)[\"'\\\s:=]{1,6}[0-9A-Za-z+/]{43}",
         check=validity.token, source=_AZURE),
    Rule("azure-sas", "secrets", "Signature of an Azure shared access URL",
         r"(?<=[?&;])sig=(?P<v>(?:[0-9A-Za-z+/_-]|%[0-9A-Fa-f]{2}){43,100}(?:=|%3[Dd])?)",
         ("sig=",), check=validity.token, source=_SAS),
    Rule("azure-client-secret", "secrets", "Client secret of an Entra application",
         r"(?<![0-9A-Za-z_~.-])(?P<v>[0-9A-Za-z_~.]{3}[0-9]Q~[0-9A-Za-z_~.-]{31,34})"
         r"(?![0-9A-Za-z_~.-])", gate=r"[0-9]Q~[0-9A-Za-z_~.-]{31}", check=validity.token,
         source=_ENTRA),
    _key("digitalocean-token", "DigitalOcean token", r"do[opr]_v1_[0-9a-f]{64}",
         "dop_v1_", "doo_v1_", "dor_v1_",
         source="https://docs.digitalocean.com/reference/api/create-personal-access-token/"),
    _key("databricks-token", "Databricks personal access token",
         rf"dapi[0-9a-f]{{32}}(?:-[0-9])?{RIGHT}", "dapi", gate="dapi[0-9a-f]{32}",
         source="https://docs.databricks.com/aws/en/dev-tools/auth/pat"),
    _key("alibaba-access-key", "Alibaba Cloud access key id", rf"LTAI{_A}{{12,26}}{RIGHT}", "LTAI",
         source="https://www.alibabacloud.com/help/en/ram/user-guide/create-an-accesskey-pair",
         short=True),
    Rule("heroku-key", "secrets", "Heroku API key",
         rf"{LEFT}HRKU-(?:AA[0-9A-Za-z_-]{{58}}|[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})"
         r"|(?i:heroku[\w .-]{0,20})" r"""["'\\\s:=>]{1,8}"""
         r"(?P<v>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})",
         gate=r"HRKU-|(?i:heroku[\w .-]{0,20}[\"'\\\s:=>]{1,8}[0-9a-f]{8}-)", check=validity.token,
         source="https://devcenter.heroku.com/articles/authentication"),
    _key("cloudflare-ca-key", "Cloudflare origin CA key", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,150}",
         "v1.0-", source="https://developers.cloudflare.com/fundamentals/api/get-started/ca-keys/"),
    _key("flyio-token", "Fly.io token", r"fm[12][ar]?_[0-9A-Za-z+/=_-]{40,600}",
         "fm1_", "fm2_", "fm1r_", "fm1a_", source="https://fly.io/docs/security/tokens/"),
)  # fmt: skip

CODE_HOSTS = (
    _key("github-token", "GitHub token: ghp_, gho_, ghu_, ghs_, ghr_",
         rf"gh[pousr]_{_A}{{30,255}}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", source=_GITHUB),
    _key("github-token", "GitHub fine-grained token", r"github_pat_[0-9A-Za-z_]{30,255}",
         "github_pat_", source=_GITHUB),
    _key("gitlab-token", "GitLab token: glpat-, gldt-, glrt-, glptt- ...",
         rf"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-{_W}{{20,255}}(?:\.[0-9a-z]{{2,9}}){{0,3}}",
         "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-",
         "glsoat-", "glffct-",
         source="https://docs.gitlab.com/security/tokens/#token-prefixes"),
    _key("bitbucket-token", "Bitbucket app password", rf"ATBB{_A}{{24,80}}", "ATBB",
         source="https://support.atlassian.com/bitbucket-cloud/docs/app-passwords/", short=True),
    _key("atlassian-token", "Atlassian API token", rf"ATATT3{_W}{{30,400}}(?:=[0-9A-F]{{8}})?",
         "ATATT3", source="https://support.atlassian.com/atlassian-account/docs/"
         "manage-api-tokens-for-your-atlassian-account/"),
    _key("linear-key", "Linear API key", rf"lin_(?:api|oauth)_{_A}{{32,80}}", "lin_api_",
         "lin_oauth_", source="https://linear.app/developers/graphql#personal-api-keys"),
    _key("npm-token", "npm access token", rf"npm_{_A}{{36,80}}", "npm_",
         source="https://docs.npmjs.com/about-access-tokens"),
    _key("pypi-token", "PyPI API token", rf"pypi-AgE{_W}{{50,512}}", "pypi-AgE",
         source="https://pypi.org/help/#apitoken"),
    _key("rubygems-key", "RubyGems API key", r"rubygems_[0-9a-f]{48}", "rubygems_",
         source="https://guides.rubygems.org/api-key-scopes/"),
    _key("crates-token", "crates.io API token", rf"cio{_A}{{32}}{RIGHT}", "cio",
         gate="cio[0-9A-Za-z]{32}",
         source="https://doc.rust-lang.org/cargo/reference/publishing.html", short=True),
    _key("docker-token", "Docker Hub access token", rf"dckr_(?:pat|oat)_{_W}{{27,64}}",
         "dckr_pat_", "dckr_oat_",
         source="https://docs.docker.com/security/access-tokens/"),
    _key("postman-key", "Postman API key", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}", "PMAK-",
         source="https://learning.postman.com/docs/developer/postman-api/authentication/"),
)  # fmt: skip

MODELS = (
    _key("anthropic-key", "Anthropic API key", rf"sk-ant-{_W}{{30,200}}", "sk-ant-",
         source="https://docs.claude.com/en/api/admin-api/apikeys/get-api-key"),
    _key("openai-key", "OpenAI API key",
         rf"sk-(?:(?:proj|svcacct|admin|None)-{_W}{{40,250}}|{_W}{{10,100}}T3BlbkFJ{_W}{{16,120}}"
         rf"|{_A}{{48}}{RIGHT})", "sk-", gate="sk-[0-9A-Za-z_-]{26}",
         source="https://platform.openai.com/docs/api-reference/authentication"),
    _key("openrouter-key", "OpenRouter API key", rf"sk-or-(?:v\d-)?[0-9a-f]{{40,64}}{RIGHT}",
         "sk-or-", source="https://openrouter.ai/docs/api-reference/authentication"),
    Rule("sk-key", "secrets", "API key of another provider in the style of OpenAI: sk-",
         rf"{LEFT}sk-(?:{_A}{{32,64}}{RIGHT}"
         r"|lf-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
         ("sk-",), gate="sk-[0-9A-Za-z]{32}|sk-lf-[0-9a-f]{8}", check=validity.random_token,
         source="https://api-docs.deepseek.com/", weak=True),
    _key("huggingface-token", "Hugging Face token",
         rf"(?:hf_{_A}{{30,80}}|api_org_{_A}{{34}}){RIGHT}",
         "hf_", "api_org_", source="https://huggingface.co/docs/hub/security-tokens", short=True),
    _key("groq-key", "Groq API key", rf"gsk_{_A}{{40,80}}", "gsk_",
         source="https://console.groq.com/docs/quickstart"),
    _key("xai-key", "xAI API key", rf"xai-{_A}{{70,100}}", "xai-",
         source="https://docs.x.ai/docs/overview"),
    _key("perplexity-key", "Perplexity API key", rf"pplx-{_A}{{40,64}}", "pplx-",
         source="https://docs.perplexity.ai/getting-started/quickstart"),
    _key("replicate-token", "Replicate API token", rf"r8_{_A}{{37}}{RIGHT}", "r8_",
         source="https://replicate.com/docs/topics/security/api-tokens", short=True),
    _key("fireworks-key", "Fireworks API key", rf"fw_{_A}{{22,48}}{RIGHT}", "fw_",
         source="https://docs.fireworks.ai/api-reference/introduction", short=True),
    _key("nvidia-key", "NVIDIA API key", rf"nvapi-{_W}{{60,80}}", "nvapi-",
         source="https://docs.api.nvidia.com/nim/docs/api-quickstart"),
    _key("tavily-key", "Tavily API key", rf"tvly-(?:dev-|prod-)?{_A}{{20,64}}", "tvly-",
         source="https://docs.tavily.com/documentation/quickstart", short=True),
    _key("langsmith-key", "LangSmith API key", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}",
         "lsv2_pt_", "lsv2_sk_", source="https://docs.smith.langchain.com/"),
    _key("pinecone-key", "Pinecone API key", rf"pcsk_{_A}{{4,8}}_{_A}{{50,80}}", "pcsk_",
         source="https://docs.pinecone.io/guides/projects/manage-api-keys"),
    _key("cerebras-key", "Cerebras API key", rf"csk-{_A}{{48}}{RIGHT}", "csk-",
         source="https://inference-docs.cerebras.ai/quickstart", short=True),
    Rule("wandb-key", "secrets", "Weights & Biases API key, beside a word that says so",
         r"(?is:wandb.{0,60}?(?:key|login|password))[^0-9A-Za-z]{1,12}"
         r"(?P<v>[0-9a-f]{40})" + RIGHT + rf"|{LEFT}wandb_v1_[0-9A-Za-z_]{{40,120}}",
         gate=r"(?is:wandb.{1,90})[0-9a-f]{40}|wandb_v1_", check=validity.token,
         source="https://docs.wandb.ai/support/find_api_key/"),
)  # fmt: skip
