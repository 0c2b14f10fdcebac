# Claude Code on top of the toolbox, whose npm fetches the binary.
ARG BASE
FROM ${BASE} AS install
USER root
ARG CLAUDE_VERSION=2.1.329
# Roots of a network that inspects TLS, as PEM; the final stage never sees them.
ARG EXTRA_CA=""
# The npm package claude-code only chooses among these.
RUN set -eu; \
    case "$(dpkg --print-architecture)" in \
    amd64) platform=linux-x64 ;; \
    arm64) platform=linux-arm64 ;; \
    *) echo "Claude Code has no build for $(dpkg --print-architecture)" >&2; exit 1 ;; \
    esac; \
    if [ -n "${EXTRA_CA}" ]; then \
        printf '%s\n' "${EXTRA_CA}" >/tmp/extra-ca.pem; \
        export NODE_EXTRA_CA_CERTS=/tmp/extra-ca.pem; \
    fi; \
    npm install --prefix /opt/claude --no-audit --no-fund --no-update-notifier --ignore-scripts \
        "@anthropic-ai/claude-code-${platform}@${CLAUDE_VERSION}"; \
    mv "/opt/claude/node_modules/@anthropic-ai/claude-code-${platform}/claude" /opt/claude/claude; \
    chmod 0755 /opt/claude/claude; \
    /opt/claude/claude --version

FROM ${BASE}
COPY --from=install /opt/claude/claude /usr/local/bin/claude
