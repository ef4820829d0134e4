"""Rules for secrets of services, and for secrets of any origin; see `adp.stores.redact.secrets`."""

from __future__ import annotations

from adp.stores.redact import validity
from adp.stores.redact.passwords import PASSWORDS
from adp.stores.redact.private_keys import PRIVATE_KEYS
from adp.stores.redact.rules import LEFT, RIGHT, Rule
from adp.stores.redact.secrets import _A, _W, _key

_SLACK = "https://docs.slack.dev/authentication/tokens"
_STRIPE = "https://docs.stripe.com/keys"
_DISCORD = "https://discord.com/developers/docs/reference#authentication"
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"

MESSAGES = (
    _key("slack-token", "Slack token: xoxb-, xoxp-, xapp- ...",
         r"(?:xox[abcdeoprs]|xoxe\.xox[bp])-[0-9A-Za-z-]{20,250}", "xox", source=_SLACK),
    _key("slack-token", "Slack app-level token",
         r"xapp-\d-[0-9A-Z]{6,16}-\d{8,16}-[0-9A-Za-z]{30,80}",
         "xapp-", source=_SLACK),
    Rule("slack-webhook", "secrets", "Address of a Slack webhook",
         r"hooks\.slack(?:-gov)?\.com\\?/(?:services|workflows|triggers)\\?/"
         r"(?P<v>[0-9A-Za-z]{6,16}\\?/[0-9A-Za-z]{6,16}\\?/[0-9A-Za-z]{16,48}(?:\\?/[0-9A-Za-z]{16,48})?)",
         ("hooks.slack",), check=validity.token,
         source="https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks"),
    Rule("discord-token", "secrets", "Discord bot token",
         rf"{LEFT}[MNO][0-9A-Za-z_-]{{23,27}}\.[0-9A-Za-z_-]{{6}}\.[0-9A-Za-z_-]{{27,40}}{RIGHT}",
         gate=r"[MNO][0-9A-Za-z_-]{23,27}\.[0-9A-Za-z_-]{6}\.[0-9A-Za-z_-]{27}",
         check=validity.random_token, source=_DISCORD),
    Rule("discord-webhook", "secrets", "Address of a Discord webhook",
         r"discord(?:app)?\.com\\?/api\\?/(?:v\d{1,2}\\?/)?webhooks\\?/"
         r"(?P<v>\d{17,20}\\?/[0-9A-Za-z_-]{40,90})",
         ("discord.com", "discordapp.com"), check=validity.token,
         source="https://discord.com/developers/docs/resources/webhook"),
    Rule("telegram-token", "secrets", "Telegram bot token",
         rf"(?:{LEFT}|(?<=bot))\d{{8,10}}:AA[0-9A-Za-z_-]{{33}}{RIGHT}",
         gate=r"[0-9]{8,10}:AA[0-9A-Za-z_-]{33}", check=validity.token,
         source="https://core.telegram.org/bots/api#authorizing-your-bot"),
    Rule("twilio-key", "secrets", "Twilio API key, or account id",
         rf"{LEFT}(?:SK|AC)[0-9a-f]{{32}}{RIGHT}", gate=r"(?:SK|AC)[0-9a-f]{32}",
         check=validity.random_token, source="https://www.twilio.com/docs/iam/api-keys"),
    _key("sendgrid-key", "SendGrid API key", rf"SG\.{_W}{{16,32}}\.{_W}{{32,64}}", "SG.",
         source="https://www.twilio.com/docs/sendgrid/ui/account-and-settings/api-keys"),
    _key("mailgun-key", "Mailgun API key",
         rf"(?:key-[0-9a-f]{{32}}|[0-9a-f]{{32}}-[0-9a-f]{{8}}-[0-9a-f]{{8}}){RIGHT}",
         gate="key-[0-9a-f]{32}|[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}",
         source="https://documentation.mailgun.com/docs/mailgun/user-guide/api-key-mgmt/",
         short=True),
    _key("mailchimp-key", "Mailchimp API key", rf"[0-9a-f]{{32}}-us\d{{1,2}}{RIGHT}",
         gate="[0-9a-f]{32}-us[0-9]",
         source="https://mailchimp.com/developer/marketing/guides/quick-start/", short=True),
    _key("brevo-key", "Brevo API key", r"xkeysib-[0-9a-f]{64}-[0-9A-Za-z]{16}", "xkeysib-",
         source="https://developers.brevo.com/docs/getting-started"),
)  # fmt: skip

SHOPS = (
    _key("stripe-key", "Stripe secret or restricted key",
         rf"(?:sk|rk)_(?:live|test|prod)_{_A}{{16,250}}", "sk_live_", "rk_live_", "sk_test_",
         "rk_test_", "sk_prod_", "rk_prod_", source=_STRIPE, short=True),
    _key("stripe-webhook-secret", "Stripe webhook secret", rf"whsec_{_A}{{24,80}}", "whsec_",
         source="https://docs.stripe.com/webhooks", short=True),
    _key("shopify-token", "Shopify access token or shared secret",
         rf"shp(?:at|ca|pa|ss|tka)_[0-9a-fA-F]{{32}}{RIGHT}", "shpat_", "shpca_", "shppa_",
         "shpss_", "shptka_", source="https://shopify.dev/docs/apps/build/authentication-authorization"),
    _key("square-token", "Square access token or secret",
         rf"(?:(?<![+/])EAAA{_W}{{56,60}}(?![+/=])|sq0[a-z]{{3}}-{_W}{{22,43}}){RIGHT}",
         "EAAA", "sq0",
         source="https://developer.squareup.com/docs/build-basics/access-tokens", short=True),
    _key("razorpay-key", "Razorpay key id", rf"rzp_(?:live|test)_{_A}{{14,24}}", "rzp_live_",
         "rzp_test_", source="https://razorpay.com/docs/api/authentication/", short=True),
)  # fmt: skip

WATCH = (
    _key("new-relic-key", "New Relic user, license or ingest key",
         rf"(?:NRAK-[0-9A-Z]{{27}}|NRII-{_W}{{32}}|NRRA-[0-9a-f]{{42}}|NRJS-[0-9a-f]{{19}}){RIGHT}",
         "NRAK-", "NRII-", "NRRA-", "NRJS-",
         source="https://docs.newrelic.com/docs/apis/intro-apis/new-relic-api-keys/"),
    _key("grafana-token", "Grafana service account or cloud token",
         r"(?:glsa_[0-9A-Za-z]{32}_[0-9a-fA-F]{8}|glc_[0-9A-Za-z+/]{32,400}={0,2})",
         "glsa_", "glc_",
         source="https://grafana.com/docs/grafana/latest/administration/service-accounts/"),
    _key("sentry-token", "Sentry token",
         r"(?:sntrys_eyJ[0-9A-Za-z+/=_]{40,512}|sntryu_[0-9a-f]{64})", "sntrys_", "sntryu_",
         source="https://docs.sentry.io/account/auth-tokens/"),
    _key("dynatrace-token", "Dynatrace token", r"dt0[a-z]\d\d\.[0-9A-Z]{24}\.[0-9A-Z]{64}", "dt0",
         source="https://docs.dynatrace.com/docs/dynatrace-api/basics/dynatrace-api-authentication"),
    _key("posthog-key", "PostHog personal API key", rf"phx_{_A}{{40,60}}", "phx_",
         source="https://posthog.com/docs/api"),
)  # fmt: skip

WORK = (
    _key("notion-token", "Notion integration token",
         rf"(?:ntn_{_A}{{40,60}}|secret_{_A}{{43}}){RIGHT}",
         "ntn_", "secret_", gate="ntn_[0-9A-Za-z]{40}|secret_[0-9A-Za-z]{43}",
         source="https://developers.notion.com/reference/authentication", short=True),
    _key("airtable-token", "Airtable personal access token", rf"pat{_A}{{14}}\.[0-9a-f]{{64}}",
         "pat", gate=r"pat[0-9A-Za-z]{14}\.[0-9a-f]{64}",
         source="https://airtable.com/developers/web/api/authentication"),
    _key("figma-token", "Figma token", rf"fig[dou][rh]?_{_W}{{40,64}}", "figd_", "figu_", "figo_",
         "figor_", "figuh_", "figdh_", "figoh_", source="https://www.figma.com/developers/api"),
    _key("supabase-key", "Supabase secret key", rf"(?:sbp_[0-9a-f]{{40}}|sb_secret_{_W}{{22,64}})",
         "sbp_", "sb_secret_", source="https://supabase.com/docs/guides/api/api-keys"),
    _key("vault-token", "HashiCorp Vault token", rf"hv[sbr]\.{_W}{{24,300}}",
         "hvs.", "hvb.", "hvr.",
         source="https://developer.hashicorp.com/vault/docs/concepts/tokens"),
    Rule("terraform-token", "secrets", "HCP Terraform token",
         rf"{LEFT}{_A}{{14}}\.atlasv1\.{_W}{{60,70}}", gate=r"[0-9A-Za-z]{14}\.atlasv1\.",
         check=validity.token,
         source="https://developer.hashicorp.com/terraform/cloud-docs/users-teams-organizations/"
         "api-tokens"),
    _key("doppler-token", "Doppler token",
         rf"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{{2,35}}\.)?{_A}{{40,44}}",
         "dp.", gate=r"dp\.(?:pt|st|ct|sa|scim|audit)\.",
         source="https://docs.doppler.com/reference/auth-token-formats"),
    Rule("1password-token", "secrets", "1Password service account token",
         rf"{LEFT}ops_eyJ[0-9A-Za-z+/=_-]{{200,2000}}", ("ops_eyJ",), check=validity.token,
         source="https://developer.1password.com/docs/service-accounts/"),
    _key("age-key", "age secret key", r"AGE-SECRET-KEY-1[0-9A-Z]{58}", "AGE-SECRET-KEY-1",
         source="https://github.com/C2SP/C2SP/blob/main/age.md"),
)  # fmt: skip

_SEP = r"""(?:["'\\ \t]{0,4}(?::|=>?|:=)["'\\ \t]{0,4}|["'\\]{0,3},\s{0,2}["'\\]{1,3})"""

_BEARER = (
    rf"(?i:bearer|authorization{_SEP}(?:basic|token))(?: |%20)"
    r"(?P<v>[0-9A-Za-z._~+/-]{16,2000}={0,2})"
)

ANY = (
    *PRIVATE_KEYS,
    Rule("jwt", "secrets", "JSON Web Token",
         rf"{LEFT}ey[IJ]{_W}{{10,2000}}+\.ey{_W}{{10,8000}}+\.{_W}{{10,1200}}",
         ("eyJ", "eyI"), check=validity.jwt, source="https://www.rfc-editor.org/rfc/rfc7519"),
    Rule("url-password", "secrets", "Password in an address: scheme://user:password@host",
         r"(?<=[0-9A-Za-z]):\\?/\\?/[^\s/@:\"'\\<>]{0,80}:(?P<v>[!#$%&'(-9;=?A-Z\[\]^_a-z{|}~]{3,200})"
         r"@[0-9A-Za-z\[]", ("://", ":\\/\\/"),
         gate=r":\\?/\\?/[^\s/@:]{0,80}:[^\s@:]{3,200}@", check=validity.url_password,
         source="https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1", weak=True),
    Rule("authorization", "secrets", "Token in an Authorization header: Bearer, Basic, Token",
         _BEARER, gate=_BEARER, check=validity.long_assigned,
         source="https://www.rfc-editor.org/rfc/rfc6750", weak=True),
    *PASSWORDS,
)  # fmt: skip
