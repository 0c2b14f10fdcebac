// Chunks knows where the rows of a list are, newest first, without having them: for each chunk of at most 128 rows the
// range of their numbers and how many there are. Rows are loaded by chunk and forgotten again.

const chunkRows = 128;
const maxLoaded = 48;

export class Chunks {
  constructor() {
    this.list = [];
    this.starts = [0];
    this.total = 0;
    this.loaded = new Set();
  }

  index() {
    let at = 0;
    this.starts = this.list.map((c) => { const start = at; at += c.n; return start; });
    this.total = at;
  }

  // older adds chunks behind the others.
  older(chunks) {
    for (const [hi, lo, n] of chunks) this.list.push({ hi, lo, n, rows: null });
    this.index();
  }

  // range adds the chunks for rows of which all numbers are there.
  range(newest, oldest) {
    const chunks = [];
    for (let hi = newest; hi >= oldest; hi -= chunkRows) {
      const lo = Math.max(oldest, hi - chunkRows + 1);
      chunks.push([hi, lo, hi - lo + 1]);
    }
    return chunks;
  }

  // begins puts rows of no chunk before all others, in place of those that it was called with before. It returns how
  // many more they are.
  begins(rows) {
    const before = this.first?.n || 0;
    if (this.first) this.list.shift();
    this.first = rows.length > 0 ? { hi: Infinity, lo: Infinity, n: rows.length, rows } : null;
    if (this.first) this.list.unshift(this.first);
    this.index();
    return rows.length - before;
  }

  // newer adds chunks before the others, with the rows of the first if they are known. It returns how many rows.
  newer(chunks, rows) {
    const before = this.total;
    const added = chunks.map(([hi, lo, n]) => ({ hi, lo, n, rows: null }));
    if (rows && added.length === 1) {
      added[0].rows = rows;
      this.loaded.add(added[0]);
    }
    if (this.first) this.list.shift();
    this.list.unshift(...added);
    this.merge();
    if (this.first) this.list.unshift(this.first);
    this.index();
    return this.total - before;
  }

  // merge joins small chunks at the beginning: one was added for each moment in which there were new rows.
  merge() {
    for (let i = 0; i + 1 < this.list.length && i < 64;) {
      const a = this.list[i], b = this.list[i + 1];
      if (a.n + b.n > chunkRows || a.loading || b.loading || !a.rows !== !b.rows) {
        i++;
        continue;
      }
      const one = { hi: a.hi, lo: b.lo, n: a.n + b.n, rows: a.rows ? a.rows.concat(b.rows) : null };
      this.loaded.delete(a);
      this.loaded.delete(b);
      if (one.rows) this.loaded.add(one);
      this.list.splice(i, 2, one);
    }
  }

  // find returns the chunk of the row at an index, and its place there.
  find(index) {
    let low = 0, high = this.list.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= index) low = middle;
      else high = middle - 1;
    }
    return { chunk: this.list[low], at: index - this.starts[low] };
  }

  // keep stores the rows of a chunk. If all of its numbers should be there, those that are not get a row that says so.
  keep(chunk, rows, whole) {
    if (whole && rows.length < chunk.n) {
      const found = new Map(rows.map((r) => [r.seq, r]));
      rows = Array.from({ length: chunk.n }, (_, i) => found.get(chunk.hi - i) || { seq: chunk.hi - i, missing: true });
    }
    chunk.rows = rows;
    this.loaded.add(chunk);
    for (const old of this.loaded) {
      if (this.loaded.size <= maxLoaded) break;
      old.rows = null;
      this.loaded.delete(old);
    }
  }

  // touch marks a chunk as used.
  touch(chunk) {
    if (this.loaded.delete(chunk)) this.loaded.add(chunk);
  }
}
