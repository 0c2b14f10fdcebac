# Go on top of the agent's image: docs/sandbox.md, "Add to aileron's image".
ARG BASE
FROM ${BASE}
USER root
RUN echo 'deb http://deb.debian.org/debian bookworm-backports main' >/etc/apt/sources.list.d/backports.list; \
    apt-get update -qq; \
    apt-get install -y -q --no-install-recommends -t bookworm-backports golang-go; \
    rm -rf /var/lib/apt/lists/*
USER agent
