"""What keys look like: how vendors begin them, what follows, and forms without an equals sign."""

from __future__ import annotations

import re
from functools import cache

from mycode.core.patterns import pattern

# What vendors put in front of their keys, and what follows. A key stands alone: no letter, digit or dash before it.
_SHAPES = (
    ("anthropic-key", ("sk-ant-",), r"[A-Za-z0-9_-]{10,200}"),
    ("openrouter-key", ("sk-or-v1-",), r"[A-Za-z0-9]{20,100}"),
    ("openai-key", ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"), r"[A-Za-z0-9_-]{20,250}"),
    ("api-key", ("sk-",), r"(?=[A-Za-z]{0,60}[0-9])[A-Za-z0-9]{20,100}"),
    ("langsmith-key", ("lsv2_pt_", "lsv2_sk_"), r"[A-Za-z0-9_]{20,100}"),
    ("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"[A-Za-z0-9]{30,255}"),
    ("github-token", ("github_pat_",), r"[A-Za-z0-9_]{22,255}"),
    (
        "gitlab-token",
        ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glsoat-"),
        r"[A-Za-z0-9_-]{20,64}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?",
    ),
    (
        "aws-access-key",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        r"[A-Z2-7]{16}(?![A-Za-z0-9])",
    ),
    ("google-key", ("AIza",), r"[A-Za-z0-9_-]{35}(?![A-Za-z0-9])"),
    ("google-oauth", ("ya29.",), r"[A-Za-z0-9_-]{20,500}"),
    ("google-oauth", ("GOCSPX-",), r"[A-Za-z0-9_-]{28}"),
    (
        "slack-token",
        ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xapp-", "xoxe.xox"),
        r"[A-Za-z0-9.-]{10,200}",
    ),
    ("slack-webhook", ("hooks.slack.com/services/", "hooks.slack.com/workflows/"), r"[A-Za-z0-9/]{20,100}"),
    (
        "discord-webhook",
        ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
        r"\d{10,20}/[A-Za-z0-9_-]{40,100}",
    ),
    ("stripe-key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"), r"[A-Za-z0-9]{16,200}"),
    ("npm-token", ("npm_",), r"[A-Za-z0-9]{36}"),
    ("pypi-token", ("pypi-AgE",), r"[A-Za-z0-9_-]{40,300}"),
    ("huggingface-token", ("hf_", "api_org_"), r"[A-Za-z0-9]{30,50}(?![A-Za-z0-9_])"),
    ("sendgrid-key", ("SG.",), r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,60}"),
    ("twilio-key", ("SK", "AC"), r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("mailgun-key", ("key-",), r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"[a-f0-9]{64}"),
    ("shopify-token", ("shpat_", "shpca_", "shppa_", "shpss_"), r"[a-fA-F0-9]{32}"),
    ("square-token", ("sq0atp-", "sq0csp-", "EAAAE"), r"[A-Za-z0-9_-]{22,80}"),
    ("databricks-token", ("dapi",), r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("linear-key", ("lin_api_", "lin_oauth_"), r"[A-Za-z0-9]{32,80}"),
    ("notion-token", ("ntn_", "secret_"), r"(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{40,60}"),
    ("vault-token", ("hvs.", "hvb.", "hvr."), r"[A-Za-z0-9_-]{20,300}"),
    ("docker-token", ("dckr_pat_", "dckr_oat_"), r"[A-Za-z0-9_-]{20,60}"),
    ("groq-key", ("gsk_",), r"[A-Za-z0-9]{32,80}"),
    ("xai-key", ("xai-",), r"[A-Za-z0-9]{40,120}"),
    ("perplexity-key", ("pplx-",), r"[A-Za-z0-9]{32,80}"),
    ("replicate-token", ("r8_",), r"[A-Za-z0-9]{32,60}"),
    ("fireworks-key", ("fw_",), r"(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{20,40}(?![A-Za-z0-9_])"),
    ("tavily-key", ("tvly-",), r"[A-Za-z0-9_-]{20,80}"),
    ("postman-key", ("PMAK-",), r"[a-f0-9]{24}-[a-f0-9]{34}"),
    ("newrelic-key", ("NRAK-", "NRII-", "NRJS-"), r"[A-Za-z0-9-]{19,40}"),
    ("sentry-token", ("sntrys_", "sntryu_"), r"[A-Za-z0-9+/=_-]{30,300}"),
    ("grafana-token", ("glsa_", "glc_"), r"[A-Za-z0-9+/=_]{32,400}"),
    ("figma-token", ("figd_",), r"[A-Za-z0-9_-]{30,80}"),
    ("doppler-token", ("dp.pt.", "dp.st.", "dp.sa."), r"[A-Za-z0-9._-]{30,80}"),
    ("planetscale-token", ("pscale_tkn_", "pscale_pw_", "pscale_oauth_"), r"[A-Za-z0-9_.=-]{30,80}"),
    ("supabase-key", ("sbp_", "sb_secret_"), r"[A-Za-z0-9_-]{20,60}"),
    ("fly-token", ("fm2_", "fo1_"), r"[A-Za-z0-9+/=_-]{30,1000}"),
    ("pulumi-token", ("pul-",), r"[a-f0-9]{40}"),
    ("cloudflare-key", ("v1.0-",), r"[a-f0-9]{24}-[a-f0-9]{100,160}"),
    ("age-key", ("AGE-SECRET-KEY-1",), r"[A-Z0-9]{50,70}"),
    ("alibaba-key", ("LTAI",), r"[A-Za-z0-9]{16,24}(?![A-Za-z0-9])"),
    ("artifactory-token", ("AKCp",), r"[A-Za-z0-9]{60,80}"),
    ("gitlab-token", ("glft-", "glimt-", "glagent-", "glffct-"), r"[A-Za-z0-9_-]{20,64}"),
    ("aws-bedrock-key", ("ABSK",), r"[A-Za-z0-9+/]{100,200}={0,2}"),
    ("google-oauth", ("1//0",), r"[A-Za-z0-9_-]{40,200}"),
    ("square-token", ("EAAA",), r"[A-Za-z0-9_-]{56,80}"),
    ("facebook-token", ("EAACEdEose0cBA",), r"[A-Za-z0-9]{20,300}"),
    ("atlassian-token", ("ATATT3", "ATCTT3", "ATBB"), r"[A-Za-z0-9_=-]{20,300}"),
    ("hubspot-token", ("pat-na1-", "pat-eu1-"), r"[a-f0-9-]{36}"),
    ("dropbox-token", ("sl.",), r"(?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{100,300}"),
    ("rubygems-key", ("rubygems_",), r"[a-f0-9]{48}"),
    ("crates-token", ("cio",), r"(?=[A-Za-z]{0,31}[0-9])[A-Za-z0-9]{32}(?![A-Za-z0-9_])"),
    ("nuget-key", ("oy2",), r"[a-z0-9]{43}(?![A-Za-z0-9_])"),
    ("heroku-key", ("HRKU-",), r"[A-Za-z0-9_-]{30,70}"),
    ("netlify-token", ("nfp_", "nfc_", "nfo_"), r"[A-Za-z0-9]{36}"),
    ("vercel-token", ("vcp_", "vci_", "vca_", "vcr_", "vck_"), r"[A-Za-z0-9]{40,80}"),
    ("render-key", ("rnd_",), r"(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{28,50}(?![A-Za-z0-9_])"),
    ("clickup-token", ("pk_",), r"\d{6,10}_[A-Z0-9]{32}"),
    ("intercom-token", ("dG9rOj",), r"[A-Za-z0-9+/]{40,80}={0,2}"),
    ("mapbox-token", ("sk.eyJ",), r"[A-Za-z0-9_-]{20,200}\.[A-Za-z0-9_-]{20,60}"),
    ("easypost-key", ("EZAK", "EZTK"), r"[A-Za-z0-9]{54}"),
    ("shippo-token", ("shippo_live_", "shippo_test_"), r"[a-f0-9]{40}"),
    ("typeform-token", ("tfp_",), r"[A-Za-z0-9._=-]{40,80}"),
    ("dynatrace-token", ("dt0c01.", "dt0s01.", "dt0s16."), r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("duffel-token", ("duffel_live_", "duffel_test_"), r"[A-Za-z0-9_=-]{43}"),
    ("frameio-token", ("fio-u-",), r"[A-Za-z0-9_=-]{64}"),
    ("prefect-key", ("pnu_", "pnb_"), r"[a-zA-Z0-9]{36}"),
    ("readme-key", ("rdme_",), r"[a-z0-9]{70}"),
    ("brevo-key", ("xkeysib-", "xsmtpsib-"), r"[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    ("launchdarkly-key", ("sdk-", "api-", "mob-"), r"[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}"),
    ("langfuse-key", ("sk-lf-",), r"[a-f0-9-]{36}"),
    ("plaid-token", ("access-production-", "access-development-", "access-sandbox-"), r"[a-f0-9-]{36}"),
    ("pinecone-key", ("pcsk_",), r"[A-Za-z0-9_]{40,90}"),
    ("cerebras-key", ("csk-",), r"[a-z0-9]{40,60}"),
    ("nvidia-key", ("nvapi-",), r"[A-Za-z0-9_-]{50,90}"),
    ("voyage-key", ("pa-",), r"(?=[A-Za-z_-]{0,42}[0-9])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    ("jina-key", ("jina_",), r"[A-Za-z0-9_-]{50,80}"),
    ("e2b-key", ("e2b_",), r"[a-f0-9]{40}"),
    ("modal-token", ("ak-", "as-"), r"(?=[A-Za-z]{0,21}[0-9])[A-Za-z0-9]{22}(?![A-Za-z0-9_-])"),
    ("wandb-key", ("wandb_v1_",), r"[A-Za-z0-9_]{40,120}"),
    (
        "resend-key",
        ("re_",),
        r"(?=[A-Za-z]{0,7}[0-9]|\w{9}[A-Za-z]{0,20}[0-9])[A-Za-z0-9]{8}_[A-Za-z0-9]{24}(?![A-Za-z0-9_])",
    ),
    ("posthog-key", ("phx_", "phs_"), r"[A-Za-z0-9]{40,60}"),
    ("buildkite-token", ("bkua_", "bkpt_"), r"[a-f0-9]{40}"),
    ("circleci-token", ("CCIPAT_", "CCIPRJ_"), r"[A-Za-z0-9]{20,30}_[a-f0-9]{40}"),
    ("sonar-token", ("squ_", "sqp_", "sqa_"), r"[a-f0-9]{40}"),
    (
        "tailscale-key",
        ("tskey-auth-", "tskey-api-", "tskey-client-", "tskey-scim-", "tskey-webhook-"),
        r"[A-Za-z0-9-]{20,70}",
    ),
    ("contentful-token", ("CFPAT-",), r"[A-Za-z0-9_-]{43}"),
    ("atlas-secret", ("mdb_sa_sk_",), r"[A-Za-z0-9_-]{40}"),
    ("neon-key", ("napi_",), r"[a-z0-9]{40,80}"),
    ("adobe-secret", ("p8e-", "p8e_"), r"[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("api-key", ("live_",), r"(?=[A-Za-z]{0,34}[0-9])[A-Za-z0-9]{35,64}(?![A-Za-z0-9_])"),
    ("braintree-token", ("access_token$production$", "access_token$sandbox$"), r"[a-z0-9]{16}\$[a-f0-9]{32}"),
    ("yandex-key", ("AQVN",), r"[A-Za-z0-9_-]{35,38}(?![A-Za-z0-9_-])"),
    ("1password-token", ("ops_eyJ",), r"[A-Za-z0-9+/=_-]{100,1500}"),
    ("infracost-key", ("ico-",), r"[A-Za-z0-9]{32}(?![A-Za-z0-9_-])"),
    ("scalingo-token", ("tk-us-", "tk-eu-"), r"[A-Za-z0-9_-]{48}"),
    ("harness-token", ("pat.", "sat."), r"[A-Za-z0-9_-]{22}\.[a-f0-9]{24}\.[A-Za-z0-9]{20}"),
    ("flutterwave-key", ("FLWSECK-", "FLWSECK_TEST-"), r"[a-f0-9]{32}-X"),
    ("razorpay-key", ("rzp_live_", "rzp_test_"), r"[A-Za-z0-9]{14}(?![A-Za-z0-9])"),
    ("elevenlabs-key", ("sk_",), r"[a-f0-9]{48}(?![A-Za-z0-9])"),
    ("together-key", ("tgp_v1_",), r"[A-Za-z0-9_-]{43}"),
    ("anyscale-key", ("esecret_",), r"[A-Za-z0-9]{20,60}"),
    ("airtable-token", ("pat",), r"[A-Za-z0-9]{14}\.[0-9a-f]{64}(?!\w)"),
    ("asana-token", ("1/", "2/"), r"\d{15,17}(?:/\d{15,17})?:[0-9a-f]{32}(?!\w)"),
    (
        "discord-token",
        ("MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"),
        r"[A-Za-z0-9_-]{21,26}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![\w-])",
    ),
    ("okta-token", ("SSWS ",), r"00[A-Za-z0-9_-]{38,42}"),
    (
        "password-hash",
        ("$6$", "$5$", "$apr1$", "$y$", "$2a$", "$2b$", "$2y$"),
        r"(?:rounds=\d+\$)?[A-Za-z0-9./$]{22,140}",
    ),
    ("jwt", ("eyJ",), r"[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,16000}\.[A-Za-z0-9_-]{16,2000}"),
    ("azure-key", ("AccountKey=", "SharedAccessKey="), r"[A-Za-z0-9+/]{30,100}={0,2}"),
)


@cache
def shape_patterns() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    """Kind, beginning and what follows it, of every key that is known by its beginning."""
    return tuple((kind, prefix, pattern(tail)) for kind, prefixes, tail in _SHAPES for prefix in prefixes)


@cache
def two_sided_patterns() -> tuple[tuple[str, str, int, re.Pattern[str]], ...]:
    """Keys whose only fixed letters stand in the middle: the mark, how far before it the key begins, the shape."""
    return (
        ("mailchimp-key", "-us", 32, pattern(r"[0-9a-f]{32}-us\d{1,2}(?!\w)")),
        ("mailgun-key", "-", 32, pattern(r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![\w-])")),
        (
            "teams-webhook",
            ".webhook.office.com/webhookb2/",
            0,
            pattern(r"\.webhook\.office\.com/webhookb2/[^\s\"'<>]{60,300}"),
        ),
        ("terraform-token", ".atlasv1.", 14, pattern(r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,70}")),
        ("firebase-key", ":APA91b", 11, pattern(r"[A-Za-z0-9_-]{11}:APA91b[A-Za-z0-9_-]{100,160}")),
        ("azure-secret", "Q~", 4, pattern(r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![\w~])")),
        ("azure-devops-token", "AZDO", 76, pattern(r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?!\w)")),
        ("telegram-token", ":AA", 10, pattern(r"\d{10}:AA[A-Za-z0-9_-]{33}(?!\w)")),
        ("telegram-token", ":AA", 9, pattern(r"\d{9}:AA[A-Za-z0-9_-]{33}(?!\w)")),
    )


@cache
def form_patterns() -> tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]:
    """Words of which one must be there, and the form; all bounded."""
    named = (
        r"[\w.:-]{0,40}(?:[Pp]ass(?:w|phrase|$)|PASS|[Pp]wd|PWD|[Ss]ecret|SECRET|[Tt]oken|TOKEN|[Kk]ey|KEY)"
        r"[\w.:-]{0,20}"
    )
    value = r"(?P<value>[^\s\"'<>`]{6,256})"
    return (
        (
            ("value", "Value"),
            pattern(
                rf"\b(?:name|key)[\"']?\s{{0,2}}[:=]\s{{0,2}}[\"']?{named}[\"']?,?\s{{1,40}}[\"']?[Vv]alue[\"']?\s{{0,2}}"
                rf"[:=]\s{{0,2}}[\"']?(?=[^\s\"']{{0,60}}[0-9]){value}"
            ),
        ),
        (
            ("assw", "ecret", "oken", "ey>"),
            pattern(rf"<(?:\w{{0,20}}(?:[Pp]assw(?:or)?d|[Ss]ecret|[Tt]oken|[Aa]piKey|[Aa]ccessKey))>{value}(?=</)"),
        ),
        (
            ("curl",),
            pattern(r"\bcurl\b[^\n|;]{0,200}? (?:-u|--user)[ =]?[\"']?[^\s:\"']{1,64}:(?P<value>[^\s\"']{3,128})"),
        ),
        (("sshpass",), pattern(rf"\bsshpass -p ?[\"']?{value}")),
        (
            ("docker login", "podman login"),
            pattern(rf"\b(?:docker|podman) login\b[^\n|;]{{0,120}}? -p[ =]?[\"']?{value}"),
        ),
        (("mysql", "mariadb"), pattern(rf"\b(?:mysql|mariadb)\w*\b[^\n|;]{{0,120}}? -p(?=\S){value}")),
        (("login ",), pattern(rf"\blogin\s{{1,4}}\S{{1,128}}\s{{1,4}}password\s{{1,4}}{value}")),
        (("assword is ", "assword was "), pattern(rf"[Pp]assword (?:is|was) [\"'`]?(?=\S{{0,60}}[0-9]){value}")),
        (
            ("define(", "etProperty(", "etenv("),
            pattern(rf"\b(?:define|setProperty|[sp]utenv|setenv)\([\"']{named}[\"'], ?[\"']{value}"),
        ),
    )
