// The page of `spanprof flame`. Names reach the document as text only (textContent, SVG attributes), never as markup.
(() => {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);
  const element = (id) => document.getElementById(id);
  const total = data.tree.v;

  // ---- words and numbers ----
  const scales = {
    nanoseconds: [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']],
    bytes: [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'bytes']],
  };
  function amount(value) {
    const scale = scales[data.unit];
    if (!scale) return value.toLocaleString('en') + ' ' + data.unit;
    const [factor, unit] = scale.find(([least]) => value >= least * 0.9995) || scale[scale.length - 1];
    const scaled = value / factor;
    return scaled.toFixed(factor === 1 ? 0 : scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0) + ' ' + unit;
  }
  const share = (value) => (total ? (100 * value / total).toFixed(1) : '0.0') + ' %';
  // Without an interval there are too few samples to tell the share.
  const shareOf = (node) => (node.l === undefined ? '?' : share(node.v) + ', 95 %: ' + node.l.toFixed(0) + '–' + node.h.toFixed(0) + ' %');
  const describe = (node) => {
    const own = node.data.s ? ', own ' + amount(node.data.s) + ' (' + share(node.data.s) + ')' : '';
    return node.data.n + ': ' + amount(node.data.v) + ' (' + shareOf(node.data) + own + ')';
  };

  // ---- legend ----
  for (const key of ['subject', 'details', 'amount']) element(key).textContent = data[key];
  for (const key of ['where', 'confidence']) {
    element(key).textContent = data[key];
    element(key).hidden = !data[key];
  }
  document.title = data.subject + ' – flamegraph';

  // ---- chart ----
  // A frame's colour comes from its name alone, so that a function looks the same in every graph.
  function color(node) {
    if (node.highlight) return '#7b5cd6';
    if (node.depth === 0) return '#c9d3de';
    let hash = 2166136261;
    for (let i = 0; i < node.data.n.length; i++) hash = Math.imul(hash ^ node.data.n.charCodeAt(i), 16777619);
    hash >>>= 0;
    return 'hsl(' + (22 + hash % 30) + ' ' + (78 + (hash >> 8) % 15) + '% ' + (62 + (hash >> 16) % 12) + '%)';
  }
  const idle = [
    data.left_out ? data.left_out + ' frames too small to draw are left out.' : '',
    data.cut_at ? 'Stacks deeper than ' + data.cut_at + ' frames are cut.' : '',
  ].join(' ').trim();
  let found = '';
  const say = (text) => { element('status').textContent = text || found || idle; };
  const width = () => Math.max(320, document.documentElement.clientWidth - 40);
  // d3-flame-graph lets a new frame grow from nothing and writes its name afterwards. The first picture has to be the whole one.
  function finishFrames() {
    d3.selectAll('#chart rect').interrupt().attr('width', function () { return this.parentNode.getAttribute('width'); });
    d3.selectAll('#chart .d3-flame-graph-label').interrupt().text((node) => node.data.n);
  }
  let inverted = true;
  let chart;
  function draw() {
    element('chart').replaceChildren();
    chart = flamegraph.default()
      .width(width()).cellHeight(19).inverted(inverted).minFrameSize(0.5).transitionDuration(150)
      .getName((node) => node.data.n)
      .setColorMapper(color)
      .setLabelHandler(describe)
      .setDetailsHandler(say)
      .setSearchMatch((node, term) => node.depth > 0 && node.data.n.toLowerCase().includes(term.toLowerCase()))
      .setSearchHandler((results, sum) => {
        found = results.length + ' frames match, ' + amount(sum) + ' (' + share(sum) + ')';
        say('');
      });
    d3.select('#chart').datum(structuredClone(data.tree)).call(chart);
    finishFrames();
  }
  function search(term) {
    element('search').value = term;
    history.replaceState(null, '', term ? '#search=' + encodeURIComponent(term) : '#');
    found = '';
    if (term) chart.search(term); else chart.clear();
    say('');
  }
  draw();
  say('');

  // ---- functions by own time ----
  const functions = new Map();
  const collect = (node, above) => {
    let entry = functions.get(node.n);
    if (!entry) functions.set(node.n, entry = { name: node.n, own: 0, all: 0 });
    entry.own += node.s;
    const recursive = above.has(node.n); // counted where it was called first
    if (!recursive) { entry.all += node.v; above.add(node.n); }
    for (const child of node.c) collect(child, above);
    if (!recursive) above.delete(node.n);
  };
  for (const child of data.tree.c) collect(child, new Set());
  const rows = [...functions.values()].filter((f) => f.own > 0).sort((a, b) => b.own - a.own).slice(0, 15);
  for (const f of rows) {
    const row = element('functions').tBodies[0].insertRow();
    const cells = [[amount(f.own)], [share(f.own), 'share'], [amount(f.all)], [share(f.all), 'share'], [f.name, 'name']];
    for (const [text, kind] of cells) {
      const cell = row.insertCell();
      if (kind) cell.className = kind;
      if (kind !== 'name') { cell.textContent = text; continue; }
      const button = cell.appendChild(document.createElement('button'));
      button.textContent = text;
      button.title = 'Search for it';
      button.addEventListener('click', () => search(text));
    }
  }

  // ---- controls ----
  element('controls').addEventListener('submit', (event) => event.preventDefault());
  element('search').addEventListener('input', (event) => search(event.target.value));
  const reset = () => { chart.resetZoom(); search(''); };
  element('reset').addEventListener('click', reset);
  element('flip').addEventListener('click', () => {
    inverted = !inverted;
    draw();
    search(element('search').value);
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') reset();
    if (event.key === '/' && document.activeElement !== element('search')) {
      event.preventDefault();
      element('search').focus();
    }
  });
  let resizing;
  window.addEventListener('resize', () => {
    clearTimeout(resizing);
    resizing = setTimeout(() => { draw(); search(element('search').value); }, 150);
  });
  const asked = /^#search=(.*)$/.exec(location.hash);
  if (asked) search(decodeURIComponent(asked[1]));
})();
