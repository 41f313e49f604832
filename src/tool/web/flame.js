// The page of `spanprof flame`. Names reach the document as text only (textContent, SVG attributes), never as markup.
(() => {
  'use strict';
  const graphs = JSON.parse(document.getElementById('data').textContent);
  const element = (id) => document.getElementById(id);
  let data = graphs; // the graph that is shown: this one, or graphs.other
  let total = data.tree.v;

  // ---- places ----
  // The other graph may be of other files, where a function may be elsewhere: this one's files win.
  const lists = [graphs.other, graphs].filter(Boolean);
  const places = new Map(lists.flatMap((list) => list.places).map(([name, file, first, last, module]) => [name, { file, first, last, module }]));
  const moduleOf = (name) => (places.get(name) || {}).module || '';
  function placeOf(name) {
    const { file, first, last, module } = places.get(name) || {};
    const lines = first ? ':' + first + (last > first ? '–' + last : '') : '';
    return [file ? file + lines : '', module].filter(Boolean).join(', ');
  }

  // ---- names ----
  // A frame is known by its name in the style that the page was made with, whatever it is called on the screen.
  const styles = ['short', 'folded', 'full'];
  const names = new Map(lists.flatMap((list) => list.names).map(([name, ...others]) => [name, others]));
  let style = graphs.style;
  const nameOf = (name) => (names.has(name) ? names.get(name)[styles.indexOf(style)] : name);

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
  const shareOf = (node) => (node.f ? share(node.v) : node.l === undefined ? '?' : share(node.v) + ', 95 %: ' + node.l.toFixed(0) + '–' + node.h.toFixed(0) + ' %');
  // ---- changes: of a graph that compares A and B ----
  const changeOf = (node) => {
    if (!node.d) return null;
    const [a, aLow, aHigh, b, bLow, bHigh, change, low, high, strength] = node.d;
    return { a: [a, aLow, aHigh], b: [b, bLow, bHigh], change, low, high, strength };
  };
  const sideOf = (name, [value, low, high]) => name + ' ' + (low !== null ? value.toFixed(1) + ' % (95 %: ' + low.toFixed(1) + '–' + high.toFixed(1) + ')' : value > 0 ? '?' : 'nothing');
  const signed = (value) => (value < 0 ? '−' : '+') + Math.abs(value).toFixed(1);
  function describeChange(node) {
    const { a, b, change, low, high } = changeOf(node);
    return sideOf('A', a) + ', ' + sideOf('B', b) + (low === null ? ', too few samples to compare' : ', change ' + signed(change) + ' (for sure ' + signed(low) + ' to ' + signed(high) + ')');
  }
  function changeColor(isMore, strength) {
    const full = isMore ? [238, 82, 74] : [84, 140, 236];
    return 'rgb(' + full.map((part) => Math.round(255 + (part - 255) * strength)).join(',') + ')';
  }
  const strengthOf = (points) => Math.min(1, Math.sqrt(Math.abs(points) / 20));

  const describe = (node) => {
    const own = node.data.s ? ', own ' + amount(node.data.s) + ' (' + share(node.data.s) + ')' : '';
    const place = node.depth ? placeOf(node.data.n) : '';
    return nameOf(node.data.n) + ': ' + amount(node.data.v) + ' (' + (node.data.d ? describeChange(node.data) : shareOf(node.data)) + own + ')' + (place ? ' – ' + place : '');
  };

  // ---- legend ----
  function fillLegend() {
    for (const key of ['subject', 'details', 'amount']) element(key).textContent = data[key];
    if (data.label) element('subject').textContent += ': ' + data.label;
    for (const key of ['where', 'queued', 'confidence']) {
      element(key).textContent = data[key];
      element(key).hidden = !data[key];
    }
  }

  // ---- chart ----
  // The colour of a name is the same in every graph.
  const waits = { cpu: '#f0a35e', runnable: '#d98cb3', lock: '#e3c84b', condition: '#c8d46a', semaphore: '#b8b04a', join: '#d9b38c', disk: '#7fa6e8', network: '#6cc5c1', sleep: '#b9c0c9', other: '#a9d18e' };
  const comparesSides = Boolean(graphs.tree.d);
  let colors = comparesSides ? 'change' : 'function';
  function hashOf(text) {
    let hash = 2166136261;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
    return hash >>> 0;
  }
  function functionColor(name) {
    const hash = hashOf(name);
    return 'hsl(' + (22 + hash % 30) + ' ' + (78 + (hash >> 8) % 15) + '% ' + (62 + (hash >> 16) % 12) + '%)';
  }
  const moduleColor = (module) => (module ? 'hsl(' + hashOf(module) % 360 + ' 55% 72%)' : '#d5dae0');
  function color(node) {
    if (node.highlight) return '#7b5cd6';
    if (colors === 'change') {
      const found = changeOf(node.data);
      return found ? changeColor(found.change > 0, found.strength) : '#eceff2';
    }
    if (node.depth === 0 && !node.data.f) return '#c9d3de';
    if (colors === 'module') return moduleColor(moduleOf(node.data.n));
    if (colors === 'wait') return waits[node.data.w] || '#d5dae0';
    return functionColor(node.data.n);
  }
  // What the colours mean, where they mean something.
  function fillChangeKey() {
    element('key').hidden = false;
    element('key').replaceChildren(...[-20, -5, -1, 0, 1, 5, 20].map((points) => {
      const item = document.createElement('span');
      item.appendChild(document.createElement('i')).style.background = changeColor(points > 0, strengthOf(points));
      item.append(points ? (points < 0 ? '−' : '+') + Math.abs(points) + (Math.abs(points) === 20 ? ' or more' : '') : 'within chance');
      return item;
    }));
  }
  function fillKey() {
    if (colors === 'change') return fillChangeKey();
    const seen = new Set();
    const look = (node) => { seen.add(colors === 'wait' ? node.w : moduleOf(node.n)); node.c.forEach(look); };
    if (colors !== 'function') data.tree.c.forEach(look);
    element('key').hidden = colors === 'function';
    element('key').replaceChildren(...[...seen].filter(Boolean).sort().slice(0, 30).map((text) => {
      const item = document.createElement('span');
      item.appendChild(document.createElement('i')).style.background = colors === 'wait' ? waits[text] : moduleColor(text);
      item.append(text);
      return item;
    }));
    if (!element('key').firstChild) element('key').textContent = 'The profile does not tell ' + (colors === 'wait' ? 'what was waited for.' : 'modules.');
  }
  const idle = () => [
    data.left_out ? data.left_out + ' frames too small to draw are left out.' : '',
    data.cut_at ? 'Stacks deeper than ' + data.cut_at + ' frames are cut.' : '',
  ].join(' ').trim();
  let found = '';
  const say = (text) => { element('status').textContent = text || found || idle(); };
  const width = () => Math.max(320, document.documentElement.clientWidth - 40);
  // d3-flame-graph lets a new frame grow from nothing and writes its name afterwards. The first picture has to be the whole one.
  function finishFrames(id) {
    d3.selectAll(id + ' rect').interrupt().attr('width', function () { return this.parentNode.getAttribute('width'); });
    d3.selectAll(id + ' .d3-flame-graph-label').interrupt().text((node) => nameOf(node.data.n));
  }
  function drawInto(id, tree, isInverted, onClick) {
    element(id).replaceChildren();
    const made = flamegraph.default()
      .width(width()).cellHeight(19).inverted(isInverted).minFrameSize(0.5).transitionDuration(150)
      .getName((node) => nameOf(node.data.n))
      .setColorMapper(color)
      .setLabelHandler(describe)
      .setDetailsHandler(say)
      .setSearchMatch((node, term) => node.depth > 0 && nameOf(node.data.n).toLowerCase().includes(term.toLowerCase()))
      .setSearchHandler((results, sum) => {
        found = results.length + (results.length === 1 ? ' frame matches, ' : ' frames match, ') + amount(sum) + ' (' + share(sum) + ')';
        say('');
      });
    if (onClick) made.onClick(onClick);
    d3.select('#' + id).datum(structuredClone(tree)).call(made);
    finishFrames('#' + id);
    return made;
  }
  let inverted = true;
  let chart;
  let zoomed = []; // the names on the way from the root to the frame that fills the width
  function draw() {
    const path = zoomed;
    chart = drawInto('chart', data.tree, inverted, select);
    let node = d3.select('#chart').datum();
    for (const name of path) node = node && (node.children || []).find((child) => child.data.n === name);
    if (!path.length || !node) return;
    chart.transitionDuration(0).zoomTo(node);
    finishFrames('#chart');
    chart.transitionDuration(150);
  }

  // ---- one function: what a click shows, its callers and callees ----
  let selected = '';
  function select(node) {
    selected = node.depth ? node.data.n : '';
    zoomed = node.ancestors().reverse().slice(1).map((each) => each.data.n);
    element('selected').hidden = !selected;
    element('selected-text').textContent = describe(node);
  }
  // A branch without interval: shares of a sum over several places are told without one.
  const branch = (name) => ({ n: name, v: 0, s: 0, c: [], f: true, below: new Map() });
  function below(node, name) {
    let child = node.below.get(name);
    if (!child) node.below.set(name, child = branch(name)), node.c.push(child);
    return child;
  }
  function addCallees(to, from) {
    to.v += from.v;
    to.s += from.s;
    to.w = to.w || from.w;
    for (const child of from.c) addCallees(below(to, child.n), child);
  }
  function addCallers(to, path, value) {
    to.v += value;
    for (let i = path.length - 1; i >= 0; i--) (to = below(to, path[i].n)).v += value;
  }
  // A call within a call of the same function counts once, as in the table.
  function sandwichOf(name) {
    const callers = branch(name), callees = branch(name);
    const look = (node, path) => {
      if (node.n === name) {
        addCallers(callers, path, node.v);
        addCallees(callees, node);
        return;
      }
      path.push(node);
      for (const child of node.c) look(child, path);
      path.pop();
    };
    for (const child of data.tree.c) look(child, []);
    return { callers, callees };
  }
  let opened = '';
  function openSandwich(name) {
    const { callers, callees } = sandwichOf(name);
    opened = callees.v ? name : '';
    element('sandwich').hidden = !opened;
    if (!opened) return;
    const strip = (node) => { delete node.below; node.c.forEach(strip); };
    strip(callers);
    strip(callees);
    element('sandwich-name').textContent = nameOf(name) + ': ' + amount(callees.v) + ' (' + share(callees.v) + ')';
    // In a reversed graph what stands below a frame are its callers.
    const [above, under] = data.reverse ? [callees, callers] : [callers, callees];
    drawInto('callers', above, false);
    drawInto('callees', under, true);
  }
  function search(term) {
    element('search').value = term;
    history.replaceState(null, '', term ? '#search=' + encodeURIComponent(term) : '#');
    found = '';
    if (term) chart.search(term); else chart.clear();
    say('');
  }

  // ---- functions by own time ----
  function fillTable() {
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
    element('functions').tBodies[0].replaceChildren();
    for (const f of rows) {
      const row = element('functions').tBodies[0].insertRow();
      const cells = [[amount(f.own)], [share(f.own), 'share'], [amount(f.all)], [share(f.all), 'share'], [nameOf(f.name), 'name']];
      for (const [text, kind] of cells) {
        const cell = row.insertCell();
        if (kind) cell.className = kind;
        if (kind !== 'name') { cell.textContent = text; continue; }
        const button = cell.appendChild(document.createElement('button'));
        button.textContent = text;
        button.title = 'Search for it' + (placeOf(f.name) ? ' – ' + placeOf(f.name) : '');
        button.addEventListener('click', () => search(text));
      }
    }
  }

  // ---- one picture ----
  function show() {
    total = data.tree.v;
    element('selected').hidden = true;
    fillLegend();
    fillKey();
    draw();
    fillTable();
    if (opened) openSandwich(opened);
    say('');
  }
  const titles = { cpu: 'CPU time', cpu_innermost: 'CPU time', wall: 'wall time', wall_innermost: 'wall time' };
  function nameSwitch() {
    const next = data === graphs ? graphs.other : graphs;
    element('switch').hidden = !next;
    if (next) element('switch').textContent = 'Show ' + (next.label || titles[next.type] || next.type);
  }
  if (comparesSides) {
    document.body.classList.add('compares');
    element('colors').prepend(new Option('Colour: change', 'change', true, true));
  }
  show();
  nameSwitch();

  // ---- controls ----
  element('switch').addEventListener('click', () => {
    data = data === graphs ? graphs.other : graphs;
    show();
    nameSwitch();
    search(element('search').value);
  });
  element('colors').addEventListener('change', (event) => {
    colors = event.target.value;
    show();
    search(element('search').value);
  });
  element('names').hidden = !names.size;
  element('names').value = style;
  element('names').addEventListener('change', (event) => {
    style = event.target.value;
    show();
    search(element('search').value);
  });
  element('selected-open').addEventListener('click', () => openSandwich(selected));
  element('sandwich-close').addEventListener('click', () => openSandwich(''));
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
    resizing = setTimeout(() => { show(); search(element('search').value); }, 150);
  });
  const asked = /^#search=(.*)$/.exec(location.hash);
  if (asked) search(decodeURIComponent(asked[1]));
  const askedFunction = /^#function=(.*)$/.exec(location.hash);
  if (askedFunction) openSandwich(decodeURIComponent(askedFunction[1]));
})();
