// Writes the part of an OpenAPI document that describes some operations, for a stub that judges their requests: the
// responses are objects of any kind.
//
//	node prune.mjs MODULES DOCUMENT OUT 'METHOD /path'...
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [modules, source, out, ...operations] = process.argv.slice(2);
const { parse } = createRequire(`${modules}/`)('yaml');
const text = readFileSync(source, 'utf8');
const doc = source.endsWith('.json') ? JSON.parse(text) : parse(text);
const { paths, components, definitions, parameters, webhooks, ...part } = doc;
for (const key of Object.keys(part)) if (key.startsWith('x-')) delete part[key]; // GitHub's has webhooks there
part.paths = {};
if (components?.securitySchemes) part.components = { securitySchemes: components.securitySchemes };

const schema = { type: 'object' };
const responses = { 200: doc.swagger
  ? { description: 'ok', schema }
  : { description: 'ok', content: { 'application/json': { schema } } } };
for (const name of operations) {
  const [method, path] = name.split(' ');
  const { callbacks, ...operation } = paths[path][method.toLowerCase()];
  delete operation.servers;
  const form = operation.requestBody?.content?.['application/x-www-form-urlencoded'];
  for (const [input, { type }] of Object.entries(form?.schema?.properties ?? {})) {
    // OpenAPI's default, without which Prism takes a list for a string.
    if (type === 'array') (form.encoding ??= {})[input] ??= { style: 'form', explode: true };
  }
  part.paths[path] ??= paths[path].parameters ? { parameters: paths[path].parameters } : {};
  part.paths[path][method.toLowerCase()] = { ...operation, responses };
  if (doc.swagger) part.paths[path][method.toLowerCase()].produces = ['application/json'];
}

const keys = (ref) => ref.slice(2).split('/').map((k) => decodeURIComponent(k).replaceAll('~1', '/').replaceAll('~0', '~'));
const seen = new Set();
const keep = (value) => {
  if (value === null || typeof value !== 'object') return;
  const ref = value.$ref;
  if (typeof ref === 'string' && !seen.has(ref)) {
    seen.add(ref);
    const found = keys(ref).reduce((at, key) => at[key], doc);
    const last = keys(ref).pop();
    keys(ref).slice(0, -1).reduce((at, key) => (at[key] ??= {}), part)[last] = found;
    keep(found);
  }
  for (const each of Object.values(value)) keep(each);
};
keep(part.paths);
writeFileSync(out, JSON.stringify(part));
