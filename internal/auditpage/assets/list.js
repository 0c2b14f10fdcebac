// List shows a window of rows. Its scroll bar stands for all of them: only the rows that are visible are elements, and
// the height of what scrolls is bounded, because browsers bound it.
import { h } from "./dom.js";
import { Chunks } from "./chunks.js";

const maxHeight = 8_000_000;

export class List {
  // options: load(chunk, signal) returns rows, cells() the cells of a row element, fill(cells, row), open(row),
  // changed() when the selected row or the number of rows is another one, bar(width) when the scroll bar is.
  constructor(element, options) {
    Object.assign(this, options);
    this.element = element;
    this.spacer = h("div", { class: "spacer", role: "presentation" });
    this.layer = h("div", { class: "layer", role: "rowgroup" });
    element.append(this.layer, this.spacer);
    this.pool = [];
    this.reset(true);
    element.addEventListener("scroll", () => this.scrolled());
    new ResizeObserver(() => this.measure()).observe(element);
  }

  // reset empties the list. whole: every number has a row.
  reset(whole) {
    for (const c of this.chunks?.list || []) c.abort?.abort();
    this.chunks = new Chunks();
    this.whole = whole;
    this.top = 0; // the index of the first visible row, with a fraction
    this.current = -1;
    this.opening = false;
    this.element.scrollTop = this.last = 0;
    this.measure();
  }

  measure() {
    const style = getComputedStyle(this.element);
    this.rowHeight = parseFloat(style.getPropertyValue("--row")) || 26;
    this.height = this.element.clientHeight;
    this.bar(this.element.offsetWidth - this.element.clientWidth);
    this.visible = Math.max(1, Math.floor(this.height / this.rowHeight));
    this.draw();
  }

  get maxTop() { return Math.max(0, this.chunks.total - this.height / this.rowHeight); }
  get full() { return this.chunks.total * this.rowHeight; }

  // place sets the scroll bar to where the list is.
  place() {
    const room = Math.min(this.full, maxHeight);
    this.spacer.style.height = `${Math.max(0, room - this.height)}px`;
    const to = this.maxTop > 0 ? Math.round((this.top / this.maxTop) * Math.max(0, room - this.height)) : 0;
    if (Math.abs(this.element.scrollTop - to) > 1) this.element.scrollTop = to;
    this.last = this.element.scrollTop;
  }

  // scrolled moves by the distance if it is short, as by a wheel, and to the place if it is long, as by the bar.
  scrolled() {
    const now = this.element.scrollTop, by = now - this.last;
    this.last = now;
    if (by === 0) return;
    const room = Math.min(this.full, maxHeight) - this.height;
    if (this.full <= maxHeight || Math.abs(by) > 3 * this.height || now <= 0 || now >= room - 1) {
      this.top = room > 0 ? (now / room) * this.maxTop : 0;
    } else {
      this.top += by / this.rowHeight;
      clearTimeout(this.settle);
      this.settle = setTimeout(() => this.place(), 200);
    }
    this.draw();
  }

  // grew shows rows that were added: in front of the first one if it is visible, else without moving what is seen.
  grew(added) {
    if (added > 0) {
      if (this.top > 0.5 || (this.current > 0 && !this.follow)) this.top += added;
      if (this.current >= 0) this.current += added;
    }
    this.top = Math.min(this.top, this.maxTop);
    this.place();
    this.draw();
    this.changed();
  }

  // begins shows rows before all others, in place of those that it was called with before.
  begins(rows) {
    const chosen = this.chunks.first?.rows[this.current]?.seq;
    const added = this.chunks.begins(rows);
    if (chosen) this.current = rows.findIndex((r) => r.seq === chosen);
    else if (this.current >= 0) this.current += added;
    if (this.top > 0.5) this.top = Math.max(0, this.top + added);
    this.grew(0);
  }

  draw() {
    if (!this.queued) this.queued = requestAnimationFrame(() => { this.queued = 0; this.paint(); });
  }

  paint() {
    this.top = Math.max(0, Math.min(this.top, this.maxTop));
    const first = Math.floor(this.top), count = Math.min(this.chunks.total - first, this.visible + 2);
    while (this.pool.length < count) {
      const row = h("div", { class: "row", role: "row" }, this.cells());
      row.addEventListener("click", () => { this.select(row.index); this.open(this.row(row.index)); });
      this.pool.push(row);
      this.layer.append(row);
    }
    this.element.setAttribute("aria-rowcount", this.chunks.total);
    this.pool.forEach((element, i) => {
      element.hidden = i >= count;
      if (i < count) this.paintRow(element, first + i, (first + i - this.top) * this.rowHeight);
    });
    if (this.current >= 0) this.element.setAttribute("aria-activedescendant", `row-${this.current - first}`);
    else this.element.removeAttribute("aria-activedescendant");
    this.want(first, count);
  }

  paintRow(element, index, y) {
    const row = this.row(index);
    element.index = index;
    element.id = `row-${index - Math.floor(this.top)}`;
    element.style.transform = `translateY(${y}px)`;
    element.setAttribute("aria-rowindex", index + 1);
    element.setAttribute("aria-selected", index === this.current);
    element.classList.toggle("odd", (this.chunks.total - index) % 2 === 1);
    if (element.shown !== row || !row) {
      element.shown = row;
      element.classList.toggle("waiting", !row);
      this.fill(element, row);
    }
  }

  row(index) {
    if (index < 0 || index >= this.chunks.total) return null;
    const { chunk, at } = this.chunks.find(index);
    return chunk.rows ? chunk.rows[at] : null;
  }

  // want loads the chunks that are visible, and ends the loading of others.
  want(first, count) {
    const wanted = new Set();
    for (let i = first; i < first + count;) {
      const { chunk, at } = this.chunks.find(i);
      wanted.add(chunk);
      i += Math.max(1, chunk.n - at);
    }
    for (const chunk of this.loading || []) if (!wanted.has(chunk)) chunk.abort?.abort();
    this.loading = wanted;
    for (const chunk of wanted) {
      if (chunk.rows) this.chunks.touch(chunk);
      else if (!chunk.loading) this.fetch(chunk, this.chunks);
    }
  }

  async fetch(chunk, chunks) {
    chunk.loading = true;
    chunk.abort = new AbortController();
    try {
      const rows = await this.load(chunk, chunk.abort.signal);
      if (chunks === this.chunks) chunks.keep(chunk, rows, this.whole);
    } catch (error) {
      if (error.name !== "AbortError") this.failed(error);
      else chunk.rows = null;
    }
    chunk.loading = false;
    if (chunks === this.chunks && (chunk.rows || chunk.abort.signal.aborted)) this.draw();
    if (this.opening) this.openCurrent();
  }

  // openCurrent opens the current row, now or when it is loaded.
  openCurrent() {
    if (this.current < 0) this.move(0);
    const row = this.row(this.current);
    this.opening = !row && this.current >= 0;
    if (row) this.open(row);
  }

  // select makes the row at an index the current one, and shows it.
  select(index) {
    if (this.chunks.total === 0) return;
    this.current = Math.max(0, Math.min(index, this.chunks.total - 1));
    if (this.current < this.top) this.top = this.current;
    const bottom = this.top + this.height / this.rowHeight;
    if (this.current + 1 > bottom) this.top = this.current + 1 - this.height / this.rowHeight;
    this.place();
    this.draw();
    this.changed();
  }

  move(by) { this.select(this.current < 0 ? Math.floor(this.top) : this.current + by); }
}
