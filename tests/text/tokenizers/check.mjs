// Holds the token estimates against the real tokenizers and prints a table.
// Usage: node check.mjs <driver> [--vectors <file>]. Exits 1 when a bound fails:
//   before any correction no text is estimated below 0.8 x its true count;
//   after 20 corrections the median error is <= 10 % on English, Chinese, code and mixed texts.
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import generators, { seeded } from "./generators.mjs";
import { countTokens, families } from "./tokenizers.mjs";

const driver = process.argv[2];
const seed = Number(process.env.SEED ?? 7);
const here = process.env.CORPUS ?? join(dirname(fileURLToPath(import.meta.url)), "corpus");
const random = seeded(seed);
const close = ["english", "chinese", "code", "mixed"];
const corrections = 20;
const draws = 25;

const samples = [];
const add = (category, text) => text.length > 0 && samples.push({ category, text });
const cut = (text, length) => [...text].slice(0, length).join("");

function addWritten(category, texts) {
  texts.forEach((text, i) => {
    add(category, text);
    for (const length of [30, 90, 250]) add(category, cut(text, length));
    add(category, `${text}\n\n${texts[(i + 3) % texts.length]}\n\n${texts[(i + 5) % texts.length]}`);
  });
  add(category, texts.join("\n\n"));
}
for (const category of ["english", "chinese", "mixed", "other"]) {
  addWritten(category, readFileSync(join(here, `${category}.txt`), "utf8").trim().split("\n\n"));
}
const codeFiles = readdirSync(join(here, "code")).sort();
addWritten("code", codeFiles.map((file) => readFileSync(join(here, "code", file), "utf8")));
for (const [category, make] of Object.entries(generators)) {
  for (const length of [3, 12, 40, 160, 800, 3000]) add(category, make(random, length));
}

function drive(mode, input) {
  const run = spawnSync(driver, mode, { input: JSON.stringify(input), maxBuffer: 1 << 28, encoding: "utf8" });
  if (run.status !== 0) throw new Error(`driver: ${run.stderr}`);
  return JSON.parse(run.stdout);
}
const estimates = drive([], samples.map((s) => s.text));
samples.forEach((s, i) => {
  s.estimate = estimates[i];
  s.tokens = countTokens(s.text);
});

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const failures = [];

// 1. Before any correction.
const rows = new Map();
for (const s of samples) {
  if (!rows.has(s.category)) rows.set(s.category, Object.fromEntries(families.map((f) => [f, []])));
  for (const family of families) {
    if (s.tokens[family] === 0) continue;
    const ratio = s.estimate[family] / s.tokens[family];
    rows.get(s.category)[family].push(ratio);
    if (ratio < 0.8) {
      failures.push(`${s.category} ${family}: ${ratio.toFixed(3)} of ${s.tokens[family]} tokens: ${JSON.stringify(cut(s.text, 50))}`);
    }
  }
}
console.log(`seed ${seed}, ${samples.length} texts\n`);
console.log("Estimate / true count before any correction, lowest and (median):\n");
console.log(`| texts | n | ${families.join(" | ")} |\n|---|---|${"---|".repeat(families.length)}`);
for (const [category, byFamily] of rows) {
  const cells = families.map((f) => `${Math.min(...byFamily[f]).toFixed(2)} (${median(byFamily[f]).toFixed(2)})`);
  console.log(`| ${category} | ${byFamily.o200k.length} | ${cells.join(" | ")} |`);
}

// 2. After corrections: learnt from a mix of all four kinds, and from one kind alone.
const pool = samples.filter((s) => close.includes(s.category) && s.tokens.o200k >= 15);
const drawPairs = (from, family) =>
  Array.from({ length: corrections }, () => {
    const s = from[Math.floor(random() * from.length)];
    return [s.estimate[family], s.tokens[family]];
  });
console.log(`\nMedian error after ${corrections} corrections, typical and (worst of ${draws} draws):\n`);
console.log(`| texts | corrected by | ${families.join(" | ")} |\n|---|---|${"---|".repeat(families.length)}`);
const byKind = Object.fromEntries(close.map((kind) => [kind, pool.filter((s) => s.category === kind)]));
for (const teacher of ["all four", "the same kind"]) {
  for (const kind of close) {
    const cells = families.map((family) => {
      const teachers = Array.from({ length: draws }, () =>
        drawPairs(teacher === "all four" ? close.flatMap((k) => byKind[k].slice(0, 45)) : byKind[kind], family));
      const errors = drive(["--factors"], teachers).map((factor) =>
        median(byKind[kind].map((s) => Math.abs((s.estimate[family] * factor) / s.tokens[family] - 1))));
      const typical = median(errors);
      const worst = Math.max(...errors);
      if (typical > 0.1) failures.push(`${kind} ${family}, corrected by ${teacher}: median error ${typical.toFixed(3)}`);
      return `${(100 * typical).toFixed(1)} % (${(100 * worst).toFixed(1)} %)`;
    });
    console.log(`| ${kind} | ${teacher} | ${cells.join(" | ")} |`);
  }
}

const vectors = process.argv.indexOf("--vectors");
if (vectors > 0) {
  const chosen = samples.filter((s) => s.text.length >= 3 && s.text.length <= (close.includes(s.category) ? 2000 : 420));
  const lines = chosen.map((s) => JSON.stringify({ kind: s.category, text: s.text.toWellFormed?.() ?? s.text, tokens: families.map((f) => s.tokens[f]) }));
  writeFileSync(process.argv[vectors + 1], `${lines.join("\n")}\n`);
}

if (failures.length > 0) {
  console.error(`\n${failures.length} bounds failed:\n${failures.slice(0, 60).join("\n")}`);
  process.exit(1);
}
console.log("\nall bounds hold");
