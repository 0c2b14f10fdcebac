# What people and agents work with: version control, compilers, an editor. The
# images of all agents are built on this one layer. Like the base it has no
# secret; boxes run as agent unless told otherwise.
ARG BASE
FROM ${BASE} AS node
USER root
# Roots of a network that inspects TLS, as PEM; the final stage never sees them.
ARG EXTRA_CA=""
# Debian's node is older than what today's packages want, and its npm has 400
# packages. The archives are known by their hashes: neither a registry nor a
# mirror of it decides what is in them.
RUN set -eu; \
    node=24.21.0; npm=11.21.2; \
    case "$(dpkg --print-architecture)" in \
    amd64) platform=linux-x64; \
        sum=de750bb336795f47dc898a46d2de93add029273027f3e16520d3fa3a2317ed5f\
07aefa404cf37ddfa5352e545e389ae22d16b87bcc84a900580a72f23cd02ced ;; \
    arm64) platform=linux-arm64; \
        sum=1692513c4cf63afbd32df8c83a5346158f492cf30a825e66f9de2819804b836e\
242759a6bcdd5997f1cf2601781c3689e752127afd65d5c459fc333e91e5d6e6 ;; \
    *) echo "there is no build of Node.js for $(dpkg --print-architecture)" >&2; exit 1 ;; \
    esac; \
    npmsum=ec73c0a64f807e53146af4ac78bd4f9ba0a762a3081e4e77c7e2a6ba1aa64c3a\
8f9233cc8312294cf713aac13dd4428dc3880504957d7e75e249d1a6d435eaf4; \
    mkdir -p /opt/node/lib/node_modules/npm /opt/packed; \
    cd /opt/packed; \
    { cat /etc/ssl/certs/ca-certificates.crt; printf '%s\n' "${EXTRA_CA}"; } >roots.pem; \
    from=https://registry.npmjs.org; \
    curl -sSf --retry 3 --cacert roots.pem -o node.tgz "${from}/node-${platform}/-/node-${platform}-${node}.tgz"; \
    curl -sSf --retry 3 --cacert roots.pem -o npm.tgz "${from}/npm/-/npm-${npm}.tgz"; \
    printf '%s  node.tgz\n%s  npm.tgz\n' "${sum}" "${npmsum}" | sha512sum -c -; \
    tar -xzf node.tgz -C /opt/node --strip-components=1 --no-same-owner package/bin package/include; \
    tar -xzf npm.tgz -C /opt/node/lib/node_modules/npm --strip-components=1 --no-same-owner; \
    chmod 0755 /opt/node/bin/node; \
    chmod -R go+rX /opt/node; \
    ln -s ../lib/node_modules/npm/bin/npm-cli.js /opt/node/bin/npm; \
    ln -s ../lib/node_modules/npm/bin/npx-cli.js /opt/node/bin/npx; \
    chmod 0755 /opt/node/lib/node_modules/npm/bin/*.js; \
    PATH=/opt/node/bin:${PATH} npm --version

FROM ${BASE}
USER root
RUN set -eu; \
    export DEBIAN_FRONTEND=noninteractive; \
    apt-get update -qq; \
    apt-get install -y -q --no-install-recommends \
        ca-certificates curl file g++ gcc gh git jq less libc6-dev make nano openssh-client patch procps \
        python3 python3-pip python3-venv ripgrep unzip xz-utils; \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log
COPY --from=node /opt/node/ /usr/local/
# Native modules are compiled with the headers that are here, and not with those
# that node-gyp would download.
ENV npm_package_config_node_gyp_nodedir=/usr/local
USER agent
