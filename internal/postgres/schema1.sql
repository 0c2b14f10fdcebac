-- Rows of the audit logs of many installations, each a chain of its own: an origin.
--
-- What a role may do: one that ships rows gets INSERT on the four tables below, and SELECT of the columns that it
-- needs to go on where it was. Row security lets it add rows of origins that it registered, and of no others. One that
-- reads gets SELECT. No role but the owner can change or remove a row.
--
-- The bodies of functions are parsed here, and not where they are called: a role that adds rows cannot put functions of
-- its own in the place of sha256() and the others by its search_path.
SET LOCAL search_path = pg_catalog, pg_temp;
CREATE SCHEMA aileron;

CREATE TABLE aileron.schema_version (version integer NOT NULL);

-- utc writes a time as RFC 3339 has it.
CREATE FUNCTION aileron.utc(at timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');

-- quoted writes a text as Go's encoding/json does.
CREATE FUNCTION aileron.quoted(t text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN t !~ '[^ !#-%''-;=?-\[\]-~]' THEN '"' || t || '"' ELSE
  replace(replace(replace(replace(replace(to_json(t)::text, '<', '\u003c'), '>', '\u003e'), '&', '\u0026'),
    chr(8232), '\u2028'), chr(8233), '\u2029') END;

-- row_hash returns the hash of a row, as docs/audit.md describes it under "Exact bytes".
CREATE FUNCTION aileron.row_hash(prev_hash text, seq bigint, id text, event text, session_id text, source text,
  decision text, reason text, connector_fqn text, connector_version text, tool text, operation text, binding text,
  method text, scheme text, host text, port bigint, path text, http_version text, status bigint, request_bytes bigint,
  response_bytes bigint, redactions bigint, duration_us bigint, ts text, fields text)
RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN encode(sha256(convert_to(prev_hash || '{"seq":' || seq
  || ',"id":' || aileron.quoted(id) || ',"event":' || aileron.quoted(event)
  || ',"session_id":' || aileron.quoted(session_id) || ',"source":' || aileron.quoted(source)
  || ',"decision":' || aileron.quoted(decision) || ',"reason":' || aileron.quoted(reason)
  || ',"connector_fqn":' || aileron.quoted(connector_fqn)
  || ',"connector_version":' || aileron.quoted(connector_version)
  || ',"tool":' || aileron.quoted(tool) || ',"operation":' || aileron.quoted(operation)
  || ',"binding":' || aileron.quoted(binding) || ',"method":' || aileron.quoted(method)
  || ',"scheme":' || aileron.quoted(scheme) || ',"host":' || aileron.quoted(host) || ',"port":' || port
  || ',"path":' || aileron.quoted(path) || ',"http_version":' || aileron.quoted(http_version)
  || ',"status":' || status || ',"request_bytes":' || request_bytes || ',"response_bytes":' || response_bytes
  || ',"redactions":' || redactions || ',"duration_us":' || duration_us
  || ',"ts":"' || ts || '","fields":' || fields || '}', 'UTF8')), 'hex');

-- key_fits reports whether a public key is one of an origin: its name has the origin, and its fingerprint is right.
CREATE FUNCTION aileron.key_fits(origin text, key text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN key ~ '^github\.com/ALRubinger/aileron/audit/[0-9A-HJKMNP-TV-Z]{26}\+[0-9a-f]{8}\+[A-Za-z0-9+/]{44}$'
  AND substr(key, 37, 26) = origin
  AND substr(key, 64, 8) = encode(substr(sha256(convert_to(substr(key, 1, 62) || chr(10), 'UTF8')
    || decode(right(key, 44), 'base64')), 1, 4), 'hex');

-- An origin is bound to the key that signs its heads, and to the role that registered it first.
CREATE TABLE aileron.origins (
  origin text COLLATE "C" PRIMARY KEY,
  key text NOT NULL CONSTRAINT origins_key CHECK (aileron.key_fits(origin, key)),
  role name NOT NULL DEFAULT session_user,
  registered timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE aileron.events (
  origin text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  event text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  source text COLLATE "C" NOT NULL,
  decision text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL,
  connector_fqn text COLLATE "C" NOT NULL,
  connector_version text COLLATE "C" NOT NULL,
  tool text COLLATE "C" NOT NULL,
  operation text COLLATE "C" NOT NULL,
  binding text COLLATE "C" NOT NULL,
  method text COLLATE "C" NOT NULL,
  scheme text COLLATE "C" NOT NULL,
  host text COLLATE "C" NOT NULL,
  port bigint NOT NULL,
  path text COLLATE "C" NOT NULL,
  http_version text COLLATE "C" NOT NULL,
  status bigint NOT NULL,
  request_bytes bigint NOT NULL,
  response_bytes bigint NOT NULL,
  redactions bigint NOT NULL,
  duration_us bigint NOT NULL,
  ts text COLLATE "C" NOT NULL,      -- RFC 3339 in UTC, nine digits: it sorts as a text
  fields text COLLATE "C" NOT NULL,  -- JSON, as it was hashed
  prev_hash text COLLATE "C" NOT NULL,
  hash text COLLATE "C" NOT NULL,
  PRIMARY KEY (origin, seq),
  CONSTRAINT events_seq CHECK (seq > 0),
  CONSTRAINT events_ts CHECK (ts ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$'),
  CONSTRAINT events_hash CHECK (hash = aileron.row_hash(prev_hash, seq, id, event, session_id, source, decision,
    reason, connector_fqn, connector_version, tool, operation, binding, method, scheme, host, port, path, http_version,
    status, request_bytes, response_bytes, redactions, duration_us, ts, fields))
);
CREATE INDEX events_id ON aileron.events (id);
CREATE INDEX events_session ON aileron.events (session_id, seq);
CREATE INDEX events_ts ON aileron.events USING brin (ts);

-- Rows that an origin's log did not have when they were to be shipped. hash is that of the last one.
CREATE TABLE aileron.gaps (
  origin text COLLATE "C" NOT NULL,
  first_seq bigint NOT NULL,
  last_seq bigint NOT NULL,
  hash text COLLATE "C" NOT NULL,
  reason text NOT NULL CONSTRAINT gaps_reason CHECK (reason IN ('pruned', 'missing')),
  stated timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (origin, last_seq),
  CONSTRAINT gaps_seq CHECK (first_seq > 0 AND last_seq >= first_seq)
);

-- The head of each batch: the newest row that the origin had sent, with the signature of its key if it was also the
-- newest row of its log.
CREATE TABLE aileron.heads (
  origin text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  hash text COLLATE "C" NOT NULL,
  note text NOT NULL,
  shipped timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (origin, seq)
);

-- chained refuses rows that are not chained to the row before them, or to a gap that was stated.
CREATE FUNCTION aileron.chained() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  bad record;
BEGIN
  SELECT n.origin, n.seq INTO bad FROM added n
    LEFT JOIN aileron.events p ON p.origin = n.origin AND p.seq = n.seq - 1
    WHERE p.hash IS DISTINCT FROM n.prev_hash AND NOT (n.seq = 1 AND n.prev_hash = repeat('0', 64))
      AND NOT EXISTS (SELECT FROM aileron.gaps g
        WHERE g.origin = n.origin AND g.last_seq = n.seq - 1 AND g.hash = n.prev_hash)
    LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'row % of origin % is not chained to the row before it', bad.seq, bad.origin
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'events_chain';
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER chained AFTER INSERT ON aileron.events REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION aileron.chained();

ALTER TABLE aileron.origins ENABLE ROW LEVEL SECURITY;
ALTER TABLE aileron.events ENABLE ROW LEVEL SECURITY;
ALTER TABLE aileron.gaps ENABLE ROW LEVEL SECURITY;
ALTER TABLE aileron.heads ENABLE ROW LEVEL SECURITY;
CREATE POLICY reads ON aileron.origins FOR SELECT USING (true);
CREATE POLICY reads ON aileron.events FOR SELECT USING (true);
CREATE POLICY reads ON aileron.gaps FOR SELECT USING (true);
CREATE POLICY reads ON aileron.heads FOR SELECT USING (true);
CREATE POLICY ships ON aileron.origins FOR INSERT WITH CHECK (role = session_user);
CREATE POLICY ships ON aileron.events FOR INSERT
  WITH CHECK (origin IN (SELECT o.origin FROM aileron.origins o WHERE o.role = session_user));
CREATE POLICY ships ON aileron.gaps FOR INSERT
  WITH CHECK (origin IN (SELECT o.origin FROM aileron.origins o WHERE o.role = session_user));
CREATE POLICY ships ON aileron.heads FOR INSERT
  WITH CHECK (origin IN (SELECT o.origin FROM aileron.origins o WHERE o.role = session_user));

-- findings is what does not verify, recomputed from the rows as they are now.
CREATE VIEW aileron.findings AS
SELECT origin, seq, 'its content does not have its hash' AS found FROM aileron.events
  WHERE hash <> aileron.row_hash(prev_hash, seq, id, event, session_id, source, decision, reason, connector_fqn,
    connector_version, tool, operation, binding, method, scheme, host, port, path, http_version, status, request_bytes,
    response_bytes, redactions, duration_us, ts, fields)
UNION ALL
SELECT e.origin, e.seq, CASE WHEN e.before = e.seq - 1 THEN 'its prev_hash is not the hash of the row before it'
    WHEN e.before = e.seq - 2 THEN 'row ' || e.seq - 1 || ' is missing before it'
    ELSE 'rows ' || e.before + 1 || ' to ' || e.seq - 1 || ' are missing before it' END
  FROM (SELECT origin, seq, prev_hash, coalesce(lag(seq) OVER w, 0) AS before,
      coalesce(lag(hash) OVER w, repeat('0', 64)) AS before_hash
    FROM aileron.events WINDOW w AS (PARTITION BY origin ORDER BY seq)) e
  WHERE (e.before <> e.seq - 1 OR e.before_hash <> e.prev_hash) AND NOT EXISTS (SELECT FROM aileron.gaps g
    WHERE g.origin = e.origin AND g.last_seq = e.seq - 1 AND g.first_seq = e.before + 1 AND g.hash = e.prev_hash)
UNION ALL
SELECT h.origin, h.seq, CASE WHEN e.seq IS NULL THEN 'it is the head of a batch, and missing'
    ELSE 'it has another hash than the head of its batch' END
  FROM aileron.heads h LEFT JOIN aileron.events e ON e.origin = h.origin AND e.seq = h.seq
  WHERE e.hash IS DISTINCT FROM h.hash
UNION ALL
SELECT e.origin, min(e.seq), 'its origin is not registered' FROM aileron.events e
  WHERE NOT EXISTS (SELECT FROM aileron.origins o WHERE o.origin = e.origin) GROUP BY e.origin;

-- open_sessions are the sessions whose end was not shipped: they run, or their host was lost.
CREATE VIEW aileron.open_sessions AS
SELECT s.origin, s.session_id, s.ts AS started, l.seq AS last_seq, l.ts AS last_ts
  FROM aileron.events s CROSS JOIN LATERAL (SELECT e.seq, e.ts FROM aileron.events e
    WHERE e.origin = s.origin AND e.session_id = s.session_id ORDER BY e.seq DESC LIMIT 1) l
  WHERE s.event = 'session.started' AND NOT EXISTS (SELECT FROM aileron.events e WHERE e.origin = s.origin
    AND e.session_id = s.session_id AND e.event = 'session.ended');
