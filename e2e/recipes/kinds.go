package recipes

// kinds are the images of e2e/images, by name. PARTS is Debian with a few
// programs, its own roots, and testdata/get as /usr/bin/get. None is built with
// a network.
// An image's tag is a hash of its recipe, so a long line is broken here in Go:
// the recipe keeps its bytes, and machines keep their images.
var kinds = map[string]string{
	// Where Alpine has its files, with BusyBox and no Debian.
	"alpine": `FROM PARTS AS parts
RUN mkdir -p /alpine/bin /alpine/tmp /alpine/etc/ssl/certs /alpine/usr/local/share/ca-certificates ` +
		`/alpine/usr/share/ca-certificates && \
    cp /bin/busybox /alpine/bin && for p in sh cat ls readlink grep id env; do ln -s busybox /alpine/bin/$p; done && \
    cp /etc/ssl/certs/ca-certificates.crt /alpine/etc/ssl/certs/ && ` +
		`ln -s certs/ca-certificates.crt /alpine/etc/ssl/cert.pem && \
    echo 3.22.1 >/alpine/etc/alpine-release && : >/alpine/etc/ca-certificates.conf && ` +
		`echo root:x:0:0:root:/root:/bin/sh >/alpine/etc/passwd
FROM scratch
COPY --from=parts /alpine /
COPY get /bin/get
`,
	// Where RHEL has its files. update-ca-trust is what RHEL's does for the
	// bundle in PEM, with the same program.
	"rhel": `FROM PARTS
RUN set -eu; ext=/etc/pki/ca-trust/extracted; \
    mkdir -p /etc/pki/ca-trust/source/anchors $ext/pem $ext/java /etc/pki/tls/certs ` +
		`/usr/share/pki/ca-trust-source/anchors; \
    mv /etc/ssl/certs/ca-certificates.crt $ext/pem/tls-ca-bundle.pem; ` +
		`cp $ext/pem/tls-ca-bundle.pem /usr/share/pki/ca-trust-source/anchors/mozilla.pem; \
    rm -rf /etc/ssl/certs /etc/ca-certificates.conf /etc/ca-certificates /etc/debian_version ` +
		`/usr/local/share/ca-certificates /usr/share/ca-certificates /etc/apt; \
    ln -s ../pki/tls/certs /etc/ssl/certs; ln -s $ext/pem/tls-ca-bundle.pem /etc/pki/tls/certs/ca-bundle.crt; ` +
		`ln -s certs/ca-bundle.crt /etc/pki/tls/cert.pem; \
    mkdir -p /etc/pkcs11/modules; printf 'module: p11-kit-trust.so\ntrust-policy: yes\npriority: ` +
		`1\nx-init-reserved: paths=/etc/pki/ca-trust/source:/usr/share/pki/ca-trust-source\n' ` +
		`>/etc/pkcs11/modules/p11-kit-trust.module; \
    rm -f /usr/share/p11-kit/modules/p11-kit-trust.module; \
    printf '#!/bin/sh\nexec trust extract --format=pem-bundle --filter=ca-anchors --overwrite --comment ` +
		`--purpose=server-auth %s/pem/tls-ca-bundle.pem\n' $ext >/usr/bin/update-ca-trust; \
    chmod 755 /usr/bin/update-ca-trust; update-ca-trust
`,
	"suse": `FROM PARTS
RUN set -eu; mkdir -p /etc/pki/trust/anchors /var/lib/ca-certificates/pem; ` +
		`mv /etc/ssl/certs/ca-certificates.crt /var/lib/ca-certificates/ca-bundle.pem; \
    rm -rf /etc/ssl/certs /etc/ca-certificates.conf /etc/ca-certificates /etc/debian_version ` +
		`/usr/local/share/ca-certificates /usr/share/ca-certificates /etc/apt; \
    ln -s /var/lib/ca-certificates/pem /etc/ssl/certs; ` +
		`ln -s /var/lib/ca-certificates/ca-bundle.pem /etc/ssl/ca-bundle.pem
`,
	"arch": `FROM PARTS
RUN set -eu; mkdir -p /etc/ca-certificates/trust-source/anchors /etc/ca-certificates/extracted; ` +
		`mv /etc/ssl/certs/ca-certificates.crt /etc/ca-certificates/extracted/tls-ca-bundle.pem; \
    rm -rf /etc/ssl/certs/* /etc/ca-certificates.conf /etc/debian_version /usr/local/share/ca-certificates ` +
		`/usr/share/ca-certificates /etc/apt; \
    ln -s ../../ca-certificates/extracted/tls-ca-bundle.pem /etc/ssl/certs/ca-certificates.crt; ` +
		`ln -s ../ca-certificates/extracted/tls-ca-bundle.pem /etc/ssl/cert.pem
`,
	"debian": "FROM PARTS\n",
	// Nothing at all, and next to nothing.
	"scratch": "FROM scratch\nCOPY get /get\n",
	"distroless": `FROM PARTS AS parts
RUN mkdir -p /root/etc /out/etc/ssl/certs /out/home/nonroot && ` +
		`cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ && \
    echo 'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin' >/out/etc/passwd && ` +
		`chown -R 65532:65532 /out/home/nonroot
FROM scratch
COPY --from=parts /out /
COPY get /get
ENV HOME=/home/nonroot
USER 65532
`,
	"named":   "FROM PARTS\nRUN useradd --uid 1234 --create-home app\nUSER app\n",
	"number":  "FROM PARTS\nUSER 4321:4321\n",
	"ghost":   "FROM PARTS\nUSER ghost\n",
	"noroots": "FROM PARTS\nRUN rm -rf /etc/ssl /usr/share/ca-certificates /usr/local/share/ca-certificates\n",
	"blank":   "FROM PARTS\nRUN : >/etc/ssl/certs/ca-certificates.crt\n",
	"linked":  "FROM PARTS\nRUN mv /etc/ssl /opt/tls && ln -s /opt/tls /etc/ssl\n",
	"dangling": `FROM PARTS
RUN mv /etc/ssl/certs/ca-certificates.crt /opt/roots.pem && ` +
		`ln -s /var/lib/none/roots.pem /etc/ssl/certs/ca-certificates.crt
`,
	"directory": "FROM PARTS\nRUN rm /etc/ssl/certs/ca-certificates.crt && mkdir /etc/ssl/certs/ca-certificates.crt\n",
	"circle":    "FROM PARTS\nRUN rm -rf /etc/ssl/certs && ln -s certs /etc/ssl/certs\n",
	"notpem":    "FROM PARTS\nRUN echo these are no roots >/etc/ssl/certs/ca-certificates.crt\n",
	"cut":       "FROM PARTS\nRUN truncate -s -100 /etc/ssl/certs/ca-certificates.crt\n",
	"huge": "FROM PARTS\nRUN for i in $(seq 50); do cat /etc/ssl/certs/ca-certificates.crt; done >/tmp/b && mv " +
		"/tmp/b /etc/ssl/certs/ca-certificates.crt\n",
	"entry":     "FROM PARTS\nENTRYPOINT [\"/bin/false\"]\nCMD [\"no\"]\n",
	"elsewhere": "FROM PARTS\nRUN mkdir -p /data/home && chmod 777 /data/home\nENV HOME=/data/home\nUSER 4321:4321\n",
	"volumes":   "FROM PARTS\nRUN mkdir -p /home/agent && chmod 777 /home/agent\nVOLUME /etc/ssl /home/agent\n",
	"foreign":   "FROM scratch\nCOPY get /get\n",
	"policies": `FROM PARTS
RUN mkdir -p /etc/firefox/policies && echo '{"policies": {"DisableTelemetry": true, "Certificates": {"Install": ` +
		`["/opt/own.pem"]}}}' >/etc/firefox/policies/policies.json
`,
	"broken": "FROM PARTS\nRUN mkdir -p /etc/firefox/policies && echo '{' >/etc/firefox/policies/policies.json\n",
	"null":   "FROM PARTS\nRUN mkdir -p /etc/firefox/policies && echo null >/etc/firefox/policies/policies.json\n",
	"escape": "FROM PARTS\nRUN ln -s /home/agent/workspace/x /etc/aileron\n",
	// A link into the project among the parents of a file that is not in /etc.
	"parents": "FROM PARTS\nRUN mkdir -p /home/agent/workspace && rm -rf /usr/local/share && ln -s " +
		"/home/agent/workspace /usr/local/share\n",
	"shm": "FROM PARTS\nRUN ln -s /dev/shm/x /etc/aileron\n",
	"jdk": "FROM PARTS\nCOPY cacerts /opt/jdk/lib/security/cacerts\nENV " +
		"PATH=/opt/jdk/bin:/usr/local/bin:/usr/bin:/bin\n",
	// More Javas than are looked at, the last of them without a store.
	"javas": `FROM PARTS
COPY cacerts /opt/java7/lib/security/cacerts
RUN for n in 9 10 11 12; do mkdir -p /opt/java$n/lib/security && echo no store >/opt/java$n/lib/security/cacerts; done
ENV PATH=/opt/java1/bin:/opt/java2/bin:/opt/java3/bin:/opt/java4/bin:/opt/java5/bin:/opt/java6/bin:/opt/java7/bin:` +
		`/opt/java8/bin:/opt/java9/bin:/opt/java10/bin:/opt/java11/bin:/opt/java12/bin:/usr/local/bin:/usr/bin:/bin
`,
	"options": "FROM PARTS\nENV JAVA_TOOL_OPTIONS=\"-Xmx64m -Djavax.net.ssl.trustStore=/opt/own.p12\"\n",
	"java": `FROM PARTS
RUN mkdir -p /opt/java/openjdk/lib/security && echo no store >/opt/java/openjdk/lib/security/cacerts
ENV JAVA_HOME=/opt/java/openjdk
`,
}
