# opencode on top of the toolbox, whose npm fetches the binary.
ARG BASE
FROM ${BASE} AS install
USER root
ARG OPENCODE_VERSION=1.18.33
# Roots of a network that inspects TLS, as PEM; the final stage never sees them.
ARG EXTRA_CA=""
# The npm package opencode-ai only chooses among these: without AVX2 the plain
# build stops at an illegal instruction.
RUN set -eu; \
    case "$(dpkg --print-architecture)" in \
    amd64) platform=linux-x64; grep -qw avx2 /proc/cpuinfo || platform=linux-x64-baseline ;; \
    arm64) platform=linux-arm64 ;; \
    *) echo "opencode has no build for $(dpkg --print-architecture)" >&2; exit 1 ;; \
    esac; \
    if [ -n "${EXTRA_CA}" ]; then \
        printf '%s\n' "${EXTRA_CA}" >/tmp/extra-ca.pem; \
        export NODE_EXTRA_CA_CERTS=/tmp/extra-ca.pem; \
    fi; \
    npm install --prefix /opt/opencode --no-audit --no-fund --no-update-notifier --ignore-scripts \
        "opencode-${platform}@${OPENCODE_VERSION}"; \
    install -m 0755 "/opt/opencode/node_modules/opencode-${platform}/bin/opencode" /opt/opencode/opencode; \
    /opt/opencode/opencode --version

FROM ${BASE}
COPY --from=install /opt/opencode/opencode /usr/local/bin/opencode
