# Pi on top of the toolbox, whose Node.js runs it.
ARG BASE
FROM ${BASE} AS install
USER root
ARG PI_VERSION=0.87.1
# Roots of a network that inspects TLS, as PEM; the final stage never sees them.
ARG EXTRA_CA=""
RUN set -eu; \
    if [ -n "${EXTRA_CA}" ]; then \
        printf '%s\n' "${EXTRA_CA}" >/tmp/extra-ca.pem; \
        export NODE_EXTRA_CA_CERTS=/tmp/extra-ca.pem; \
    fi; \
    npm install --prefix /opt/pi --no-audit --no-fund --no-update-notifier --ignore-scripts \
        "@earendil-works/pi-coding-agent@${PI_VERSION}"; \
    printf '%s\n' '#!/bin/sh' \
        'node=/opt/pi/node' \
        '[ -x "$node" ] || node=node' \
        'exec "$node" /opt/pi/node_modules/.bin/pi "$@"' >/usr/local/bin/pi; \
    chmod 0755 /usr/local/bin/pi; \
    pi --version

FROM ${BASE}
COPY --from=install /opt/pi /opt/pi
COPY --from=install /usr/local/bin/pi /usr/local/bin/pi
