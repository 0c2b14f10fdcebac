# Codex on top of the toolbox, whose npm fetches the binaries.
ARG BASE
FROM ${BASE} AS install
USER root
ARG CODEX_VERSION=0.169.0
# Roots of a network that inspects TLS, as PEM; the final stage never sees them.
ARG EXTRA_CA=""
# The npm package's own version only chooses among these. Its voice mode stays
# behind.
RUN set -eu; \
    case "$(dpkg --print-architecture)" in \
    amd64) platform=linux-x64; target=x86_64-unknown-linux-musl ;; \
    arm64) platform=linux-arm64; target=aarch64-unknown-linux-musl ;; \
    *) echo "Codex has no build for $(dpkg --print-architecture)" >&2; exit 1 ;; \
    esac; \
    if [ -n "${EXTRA_CA}" ]; then \
        printf '%s\n' "${EXTRA_CA}" >/tmp/extra-ca.pem; \
        export NODE_EXTRA_CA_CERTS=/tmp/extra-ca.pem; \
    fi; \
    npm install --prefix /opt/npm --no-audit --no-fund --no-update-notifier --ignore-scripts \
        "@openai/codex@${CODEX_VERSION}-${platform}"; \
    mv "/opt/npm/node_modules/@openai/codex/vendor/${target}" /opt/codex; \
    rm -rf /opt/codex/codex-resources/voice; \
    /opt/codex/bin/codex --version
# Defaults for every user of the image, below their own config.toml: the key
# is read from the environment without signing in; a sandbox inside the box
# would want the namespaces that the box refuses; nothing outlives the command
# that the box is for; and no calls that are not the model's.
RUN set -eu; \
    mkdir -p /etc/codex; \
    printf '%s\n' \
        'model_provider = "openai-key"' \
        'sandbox_mode = "danger-full-access"' \
        'check_for_update_on_startup = false' \
        '[model_providers.openai-key]' \
        'name = "OpenAI"' \
        'env_key = "OPENAI_API_KEY"' \
        'wire_api = "responses"' \
        '[analytics]' \
        'enabled = false' \
        '[otel]' \
        'metrics_exporter = "none"' \
        '[features]' \
        'api_key_model_discovery = false' \
        'apps = false' \
        'daemon_auto_start = false' \
        'plugins = false' \
        >/etc/codex/config.toml; \
    printf '%s\n' '#!/bin/sh' 'exec /opt/codex/bin/codex "$@"' >/usr/local/bin/codex; \
    chmod 0755 /usr/local/bin/codex

FROM ${BASE}
COPY --from=install /opt/codex /opt/codex
COPY --from=install /etc/codex /etc/codex
COPY --from=install /usr/local/bin/codex /usr/local/bin/codex
