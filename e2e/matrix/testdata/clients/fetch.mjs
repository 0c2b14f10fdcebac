// fetch of Node, Bun and Deno: GET to standard output.
import { writeSync } from "node:fs";
const put = (chunk) => { for (let n = 0; n < chunk.length; ) { try { n += writeSync(1, chunk, n); } catch (e) { if (e.code !== "EAGAIN") throw e; } } };
const res = await fetch(process.argv[2]);
for await (const chunk of res.body) put(chunk);
if (res.status !== 200) { console.error(`status ${res.status}`); process.exitCode = 1; }
