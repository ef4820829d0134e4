"""More rules for secrets with a format of their own; see `adp.stores.redact.secrets`.

Prefixes that are short share one gate: what is not there is passed over once for all of them.
"""

from __future__ import annotations

from adp.stores.redact import validity
from adp.stores.redact.rules import LEFT, RIGHT, Rule
from adp.stores.redact.secrets import _A, _W, _key

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"

_GATE = (
    r"re_[0-9A-Za-z]{8}_[0-9A-Za-z]{20}|(?:nf[pcoub]|vc[pkair]|rpa)_[0-9A-Za-z]{24}|fc-[0-9a-f]{32}"
    r"|napi_[0-9A-Za-z]{32}|e2b_[0-9a-f]{32}|jina_[0-9A-Za-z]{32}|sl\.[0-9A-Za-z_.-]{64}"
    r"|oy2[a-z0-9]{43}|EAA[0-9A-Za-z]{64}|sk_[0-9a-f]{48}|sess-[0-9A-Za-z]{40}|fo1_[0-9A-Za-z_-]{40}"
    r"|IGQV[0-9A-Za-z_-]{64}|AQVN[0-9A-Za-z_-]{32}|bb_live_[0-9A-Za-z_-]{20}|pul-[0-9a-f]{40}"
)


def _short(kind: str, what: str, body: str, *words: str, source: str) -> Rule:
    return _key(kind, what, rf"{body}{RIGHT}", *words, source=source, short=True, gate=_GATE)


_SHORT = (
    _short("resend-key", "Resend API key", rf"re_{_A}{{8}}_{_A}{{20,32}}", "re_",
           source="https://resend.com/docs/dashboard/api-keys/introduction"),
    _short("netlify-token", "Netlify token", rf"nf[pcoub]_{_A}{{36,48}}", "nfp_", "nfc_", "nfo_",
           "nfu_", "nfb_", source="https://docs.netlify.com/api/get-started/"),
    _short("vercel-token", "Vercel token or key", rf"vc[pkair]_{_A}{{24,80}}", "vcp_", "vck_",
           "vca_", "vci_", "vcr_", source="https://vercel.com/docs/rest-api"),
    _short("neon-key", "Neon API key", rf"napi_{_A}{{40,80}}", "napi_",
           source="https://neon.com/docs/manage/api-keys"),
    _short("e2b-key", "E2B API key", r"e2b_[0-9a-f]{40,64}", "e2b_",
           source="https://e2b.dev/docs/api-key"),
    _short("jina-key", "Jina AI API key", rf"jina_{_W}{{50,72}}", "jina_",
           source="https://jina.ai/embeddings/"),
    _short("runpod-key", "RunPod API key", rf"rpa_{_A}{{36,52}}", "rpa_",
           source="https://docs.runpod.io/get-started/api-keys"),
    _short("firecrawl-key", "Firecrawl API key", r"fc-[0-9a-f]{32}", "fc-",
           source="https://docs.firecrawl.dev/introduction"),
    _short("dropbox-token", "Dropbox access token", rf"sl\.(?:[A-Za-z]{{1,2}}\.)?{_W}{{100,2000}}",
           "sl.", source="https://developers.dropbox.com/oauth-guide"),
    _short("nuget-key", "NuGet API key", r"oy2[a-z0-9]{43}", "oy2",
           source="https://learn.microsoft.com/nuget/nuget-org/publish-a-package"),
    _short("facebook-token", "Facebook or Instagram access token",
           rf"(?<![+/])(?:EAA{_A}{{90,500}}|IGQV{_W}{{80,300}})(?![+/])", "EAA", "IGQV",
           source="https://developers.facebook.com/docs/facebook-login/guides/access-tokens"),
    _short("elevenlabs-key", "ElevenLabs API key", r"sk_[0-9a-f]{48}", "sk_",
           source="https://elevenlabs.io/docs/api-reference/authentication"),
    _short("openai-key", "OpenAI session key", rf"sess-{_A}{{40,64}}", "sess-",
           source="https://platform.openai.com/docs/api-reference/authentication"),
    _short("flyio-token", "Fly.io token", rf"fo1_{_W}{{40,64}}", "fo1_",
           source="https://fly.io/docs/security/tokens/"),
    _short("yandex-key", "Yandex Cloud API key", rf"AQVN{_W}{{35,40}}", "AQVN",
           source="https://yandex.cloud/docs/iam/concepts/authorization/api-key"),
    _short("browserbase-key", "Browserbase API key", rf"bb_live_{_W}{{20,48}}", "bb_live_",
           source="https://docs.browserbase.com/"),
    _short("pulumi-token", "Pulumi access token", r"pul-[0-9a-f]{40}", "pul-",
           source="https://www.pulumi.com/docs/administration/access-identity/access-tokens/"),
)  # fmt: skip

_LONG = (
    _key("tailscale-key", "Tailscale key",
         rf"tskey-(?:[a-z]{{3,12}}-)?{_A}{{8,32}}(?:-{_A}{{16,64}})?", "tskey-",
         source="https://tailscale.com/kb/1277/key-prefixes", short=True),
    _key("atlassian-token", "Atlassian repository or project token",
         rf"ATCTT3{_W}{{30,400}}(?:=[0-9A-F]{{8}})?", "ATCTT3",
         source="https://support.atlassian.com/bitbucket-cloud/docs/repository-access-tokens/"),
    _key("contentful-token", "Contentful token", rf"CFPAT-{_W}{{40,64}}", "CFPAT-",
         source="https://www.contentful.com/developers/docs/references/authentication/"),
    _key("planetscale-token", "PlanetScale token or password",
         r"pscale_(?:tkn|pw|oauth)_[0-9A-Za-z_.=-]{32,64}", "pscale_",
         source="https://planetscale.com/docs/concepts/service-tokens"),
    _key("apify-token", "Apify API token", rf"apify_(?:api|proxy)_{_A}{{30,48}}", "apify_",
         source="https://docs.apify.com/platform/integrations/api"),
    _key("together-key", "Together AI API key", rf"tgp_v1_{_W}{{40,64}}", "tgp_v1_",
         source="https://docs.together.ai/docs/quickstart"),
    _key("kaggle-key", "Kaggle API token", rf"KGAT_[0-9a-f]{{32}}{RIGHT}", "KGAT_",
         source="https://www.kaggle.com/docs/api"),
    _key("artifactory-token", "Artifactory API key or reference token",
         rf"(?:AKCp[0-9]{_A}{{60,76}}|cmVmdGtu{_A}{{50,64}}){RIGHT}", "AKCp", "cmVmdGtu",
         source="https://jfrog.com/help/r/jfrog-platform-administration-documentation/"
         "access-tokens", short=True),
    _key("discord-token", "Discord token of a user with two factors", rf"mfa\.{_W}{{80,96}}",
         "mfa.", source="https://discord.com/developers/docs/reference#authentication"),
    _key("slack-token", "Slack cookie: xoxd-",
         r"xoxd-(?:[0-9A-Za-z+/_-]|%[0-9A-Fa-f]{2}){40,600}(?:={0,2})", "xoxd-",
         source="https://docs.slack.dev/authentication/tokens"),
    _key("tencent-key", "Tencent Cloud secret id", rf"AKID{_A}{{32}}{RIGHT}", "AKID",
         source="https://www.tencentcloud.com/document/product/598/34228", short=True),
    _key("mapbox-token", "Mapbox secret token", rf"sk\.eyJ{_W}{{40,250}}\.{_W}{{18,40}}", "sk.eyJ",
         source="https://docs.mapbox.com/help/dive-deeper/access-tokens/"),
    _key("gitlab-token", "GitLab runner registration token", rf"GR1348941{_W}{{20,40}}",
         "GR1348941", source="https://docs.gitlab.com/security/tokens/#token-prefixes"),
    _key("braintree-token", "Braintree access token",
         r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}", "access_token$",
         source="https://developer.paypal.com/braintree/docs/guides/authorization/overview"),
    _key("google-oauth-token", "Google OAuth refresh token", rf"1//0{_W}{{40,120}}", "1//0",
         source="https://developers.google.com/identity/protocols/oauth2", short=True),
    _key("aws-session-token", "AWS session token",
         r"(?:IQoJb3JpZ2lu|FwoGZXIvYXdz)(?:[0-9A-Za-z+/]|%2[BbFf]){100,2500}(?:=|%3[Dd]){0,2}",
         "IQoJb3JpZ2lu", "FwoGZXIvYXdz",
         source="https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_temp_use-resources.html"),
)  # fmt: skip

_TEAMS = (
    rf"{_UUID}@{_UUID}\\?/IncomingWebhook\\?/[0-9a-f]{{32}}\\?/{_UUID}"
    r"(?:\\?/[0-9A-Za-z_-]{20,80})?"
)
_SIGNED = "https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html"

_ADDRESSES = (
    Rule("aws-signature", "secrets", "Signature of a presigned AWS address",
         r"X-Amz-(?:Signature=(?P<v>[0-9a-f]{64})|Security-Token="
         r"(?:[0-9A-Za-z+/_-]|%[0-9A-Fa-f]{2}){60,3000}(?:={0,2}))",
         ("X-Amz-Signature=", "X-Amz-Security-Token="), check=validity.token, source=_SIGNED),
    Rule("teams-webhook", "secrets", "Address of a Microsoft Teams webhook",
         rf"webhook\.office\.com\\?/webhookb2\\?/(?P<v>{_TEAMS})", ("webhook.office.com",),
         check=validity.token,
         source="https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/"
         "how-to/add-incoming-webhook"),
    Rule("infura-key", "secrets", "Infura API key in an address",
         rf"infura\.io\\?/(?:ws\\?/)?v3\\?/(?P<v>[0-9a-f]{{32}}){RIGHT}", ("infura.io",),
         check=validity.random_token, source="https://docs.metamask.io/services/get-started/"),
    Rule("alchemy-key", "secrets", "Alchemy API key in an address",
         r"alchemy\.com\\?/(?:[a-z]{2,8}\\?/)?v\d\\?/(?P<v>[0-9A-Za-z_-]{20,40})"
         rf"{RIGHT}", ("alchemy.com",), check=validity.random_token,
         source="https://www.alchemy.com/docs/create-an-api-key"),
    Rule("azure-devops-token", "secrets", "Azure DevOps personal access token",
         rf"{LEFT}{_A}{{76}}AZDO{_A}{{4}}{RIGHT}", ("AZDO",), back=81,
         check=validity.random_token,
         source="https://learn.microsoft.com/azure/devops/organizations/accounts/"
         "use-personal-access-tokens-to-authenticate"),
    Rule("azure-devops-token", "secrets", "Azure DevOps personal access token, beside its name",
         r"(?i:azure_?devops\w{0,24}|vsts\w{0,16}|system_accesstoken)[\"'\\\s:=]{1,8}"
         rf"(?P<v>[a-z2-7]{{52}}){RIGHT}",
         gate=r"(?i:devops\w{0,24}|vsts\w{0,16}|system_accesstoken)[\"'\\\s:=]{1,8}[a-z2-7]{52}",
         check=validity.token,
         source="https://learn.microsoft.com/azure/devops/organizations/accounts/"
         "use-personal-access-tokens-to-authenticate"),
    Rule("azure-api-key", "secrets", "Key of an Azure AI or API Management subscription",
         r"(?:Ocp-Apim-Subscription-Key|ocp-apim-subscription-key)[\"'\\\s:=,]{1,8}"
         rf"(?P<v>[0-9a-f]{{32}}|{_A}{{84}}){RIGHT}",
         ("Ocp-Apim-Subscription-Key", "ocp-apim-subscription-key"), check=validity.random_token,
         source="https://learn.microsoft.com/azure/ai-services/authentication"),
)  # fmt: skip

PLATFORMS = (*_SHORT, *_LONG, *_ADDRESSES)
