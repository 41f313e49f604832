// SPDX-License-Identifier: Apache-2.0
// node embed.mjs WEB_DIR NODE_MODULES OUT.c
//
// Makes one C file of the flamegraph page: the template with styles, the libraries (as their packages ship them for a browser),
// our script, and the licenses of what is inside. The page is cut at its data, which `spanprof flame` writes in between.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [webDir, modules, outPath] = process.argv.slice(2);
const web = (name) => readFileSync(join(webDir, name), 'utf8');
const module = (name) => readFileSync(join(modules, name), 'utf8');

// In the order in which each needs those before it; all of them add to the global d3.
const packages = [
  ['d3-array', 'dist/d3-array.min.js'],
  ['d3-color', 'dist/d3-color.min.js'],
  ['d3-dispatch', 'dist/d3-dispatch.min.js'],
  ['d3-ease', 'dist/d3-ease.min.js'],
  ['d3-format', 'dist/d3-format.min.js'],
  ['d3-hierarchy', 'dist/d3-hierarchy.min.js'],
  ['d3-interpolate', 'dist/d3-interpolate.min.js'],
  ['d3-selection', 'dist/d3-selection.min.js'],
  ['d3-time', 'dist/d3-time.min.js'],
  ['d3-time-format', 'dist/d3-time-format.min.js'],
  ['d3-timer', 'dist/d3-timer.min.js'],
  ['d3-scale', 'dist/d3-scale.min.js'],
  ['d3-transition', 'dist/d3-transition.min.js'],
  ['d3-flame-graph', 'dist/d3-flamegraph.umd.min.js'],
];

const library = packages.map(([name, file]) => module(`${name}/${file}`)).join('\n');
if (/<\/script|<!--/i.test(library)) throw new Error('a library holds text that ends a script element');

// Packages share license texts; each text stands once, under the names of those that have it.
const holders = new Map();
for (const name of [...packages.map(([name]) => name), 'internmap']) {
  const { version } = JSON.parse(module(`${name}/package.json`));
  const text = module(`${name}/LICENSE`).trim();
  holders.set(text, [...(holders.get(text) ?? []), `${name} ${version}`]);
}
const licenses = [...holders].map(([text, names]) => `${names.join(', ')}\n\n${text}`).join('\n\n');

const fill = (page, mark, text) => {
  if (!page.includes(mark)) throw new Error(`flame.html lacks ${mark}`);
  return page.replace(mark, () => text);
};
let page = web('flame.html');
page = fill(page, '<!--@licenses-->', `<!--\n${licenses.replaceAll('--', '- -')}\n-->`);
page = fill(page, '/*@styles*/', web('flame.css'));
page = fill(page, '/*@library*/', library);
page = fill(page, '/*@page*/', web('flame.js'));
const [head, tail] = page.split('/*@data*/');

// Bytes, for a compiler need not take string literals of this length.
const array = (name, text) => {
  const bytes = [...Buffer.from(text, 'utf8'), 0];
  const lines = [];
  for (let i = 0; i < bytes.length; i += 24) lines.push('    ' + bytes.slice(i, i + 24).join(',') + ',');
  return `static const unsigned char ${name}[] = {\n${lines.join('\n')}\n};\n`;
};
writeFileSync(outPath, `/* Made by web/embed.mjs. */
#include "tool/draw/flame.h"

${array('head', head)}
${array('tail', tail)}
const char *const sp_flame_page_head = (const char *)head;
const char *const sp_flame_page_tail = (const char *)tail;
`);
