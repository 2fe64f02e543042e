// Fits the weights of text/estimate_weights.cpp: how many tokens each shape is worth in each family.
// Usage: node fit.mjs <driver> <source root> <folder of texts>...
// A folder's files are named <category>-*.txt; categories english, chinese, code and mixed are fitted
// closely, all others from above. Generated texts are added with their own seed.
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import generators, { seeded } from "./generators.mjs";
import { countTokens, families } from "./tokenizers.mjs";

const [driver, root, ...folders] = process.argv.slice(2);
const close = new Set(["english", "chinese", "code", "mixed"]);
const random = seeded(20260301);
// What the ends of a text may cost; fixed, for short texts would bend the other weights.
const perText = 1.6;
// One factor corrects all traffic of a backend, so the kinds must lean alike; these even them out.
const targets = { chinese: 1.04, code: 0.97 };
// Weights that too few samples would otherwise pull to nothing.
const floors = { punct_same: 1 / 60, punct_same_rare: 0.78, space_run: 0.5, han_common: 0.85 };
for (const pair of ["han_pair", "han_pair_o200k", "han_pair_llama3", "han_pair_both"]) floors[pair] = 0.62;
const margin = Number(process.env.MARGIN ?? 1.1);

const samples = [];
for (const [name, make] of Object.entries(generators)) {
  for (const length of [40, 150, 150, 600, 600]) samples.push({ category: name, text: make(random, length), weight: 1 });
}
for (const folder of folders) {
  for (const file of readdirSync(folder)) {
    const text = readFileSync(`${folder}/${file}`, "utf8");
    const category = file.split("-")[0];
    for (let at = 0; at < text.length; ) {
      const length = Math.floor(60 * 40 ** random());
      samples.push({ category, text: text.slice(at, at + length).toWellFormed?.() ?? text.slice(at, at + length) });
      at += length;
    }
  }
}
const perCategory = new Map();
for (const s of samples) perCategory.set(s.category, (perCategory.get(s.category) ?? 0) + 1);
console.log(samples.length, "samples");

const run = spawnSync(driver, ["--shapes"], {
  input: JSON.stringify(samples.map((s) => s.text)), maxBuffer: 1 << 30, encoding: "utf8",
});
if (run.status !== 0) throw new Error(`driver: ${run.stderr}`);
const rows = JSON.parse(run.stdout);
samples.forEach((s, i) => {
  s.shapes = rows[i].shapes;
  s.tokens = countTokens(s.text);
});

const header = readFileSync(`${root}/text/text_shape.hpp`, "utf8");
const names = [...header.slice(header.indexOf("enum class Shape"), header.indexOf("count_\n")).matchAll(/^ {2}(\w+),/gm)].map((m) => m[1]);

// Weighted least squares of (estimate / true - target), weights kept >= 0, by coordinate descent.
// The close categories pull both ways; the others only push up where they would be short.
function fit(family) {
  const n = samples[0].shapes.length;
  const data = samples.filter((s) => s.tokens[family] > 0).map((s) => {
    const isClose = close.has(s.category);
    return {
      x: s.shapes.map((count) => count / s.tokens[family]),
      base: (isClose ? 60 : 1) / perCategory.get(s.category),
      isClose,
      target: targets[s.category] ?? (isClose ? 1 : 0.92),
      boost: 1,
    };
  });
  const w = new Array(n).fill(0.5);
  const fixed = names.indexOf("text");
  w[fixed] = perText / margin;
  for (let outer = 0; outer < 40; outer++) {
    const predictions = data.map((d) => d.x.reduce((sum, x, j) => sum + x * w[j], 0));
    const weights = data.map((d, i) => {
      const residual = predictions[i] - d.target;
      // Whoever still comes near the bound of 0.8 is listened to more and more.
      if (predictions[i] * margin < 0.85) d.boost = Math.min(60, d.boost * 1.4);
      const base = d.base * d.boost;
      if (d.isClose) return base * (residual < -0.12 ? 4 : 1);
      return base * (residual < 0 ? 12 : 0.12);
    });
    const residuals = data.map((d, i) => d.target - predictions[i]);
    for (let sweep = 0; sweep < 25; sweep++) {
      for (let j = 0; j < n; j++) {
        if (j === fixed) continue;
        let up = 0;
        let down = 1e-6;
        for (let i = 0; i < data.length; i++) {
          const x = data[i].x[j];
          if (x === 0) continue;
          up += weights[i] * x * residuals[i];
          down += weights[i] * x * x;
        }
        const next = Math.max(floors[names[j]] ?? 0, w[j] + up / down);
        const step = next - w[j];
        if (step === 0) continue;
        for (let i = 0; i < data.length; i++) residuals[i] -= step * data[i].x[j];
        w[j] = next;
      }
    }
  }
  return w;
}

const weights = Object.fromEntries(families.map((family) => [family, fit(family)]));

// Report how each category stands with the margin on.
const report = new Map();
for (const family of families) {
  for (const s of samples) {
    if (!s.tokens[family]) continue;
    const ratio = (margin * s.shapes.reduce((sum, c, j) => sum + c * weights[family][j], 0)) / s.tokens[family];
    const key = `${s.category}`;
    if (!report.has(key)) report.set(key, Object.fromEntries(families.map((f) => [f, []])));
    report.get(key)[family].push(ratio);
  }
}
const line = (list) => {
  list.sort((a, b) => a - b);
  return `${list[0].toFixed(2)} ${list[list.length >> 1].toFixed(2)}`;
};
for (const [key, r] of report) {
  console.log(key.padEnd(22), families.map((f) => line(r[f])).join(" | "));
}

const rowsOut = names.map((name, j) => {
  const cells = families.map((f) => (margin * weights[f][j]).toFixed(3)).join(", ");
  return `    {${cells}},  // ${name}`;
});
writeFileSync(
  `${root}/text/estimate_weights.cpp`,
  `// Tokens per counted shape and family, leaning high by a factor of ${margin}.\n` +
    `// Generated by tests/text/tokenizers/fit.mjs; docs/token-estimates.md tells from what.\n\n` +
    `#include "text/estimate_weights.hpp"\n\nnamespace flashgate::detail {\n\n` +
    `// ${families.join(", ")}\n` +
    `const std::array<std::array<double, family_count>, shape_count> estimate_weights = {{\n` +
    `${rowsOut.join("\n")}\n}};\n\n}  // namespace flashgate::detail\n`,
);
