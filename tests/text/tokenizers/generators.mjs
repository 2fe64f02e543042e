// Seeded texts that nobody writes by hand: logs, JSON, tables, keys, noise, and the shapes that
// break estimates by characters. Every generator is (random, length in characters) -> text.

export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const pick = (random, list) => list[Math.floor(random() * list.length)];
const between = (random, low, high) => low + Math.floor(random() * (high - low + 1));
const repeat = (count, make) => Array.from({ length: count }, make);

function fill(length, piece) {
  let text = "";
  while (text.length < length) text += piece();
  return [...text].slice(0, length).join("");
}
const fromAlphabet = (alphabet) => (random, length) => {
  const letters = [...alphabet];
  return repeat(length, () => pick(random, letters)).join("");
};
const fromRange = (first, last) => (random, length) =>
  repeat(length, () => String.fromCodePoint(between(random, first, last))).join("");

const hex = fromAlphabet("0123456789abcdef");
const lower = fromAlphabet("abcdefghijklmnopqrstuvwxyz");
const base64 = fromAlphabet("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");

const words = (
  "user order price total status name city account request token server client error cache index " +
  "value result message thread worker queue retry timeout backend latency memory region payload"
).split(" ");
const hanWords = "订单 用户 价格 状态 服务器 请求 错误 缓存 延迟 地址 商品 客户 网络 数据库 模型 接口".split(" ");
const levels = ["INFO", "WARN", "ERROR", "DEBUG"];

const stamp = (random) =>
  `2026-${String(between(random, 1, 12)).padStart(2, "0")}-${String(between(random, 1, 28)).padStart(2, "0")}` +
  `T${String(between(random, 0, 23)).padStart(2, "0")}:${String(between(random, 0, 59)).padStart(2, "0")}:` +
  `${String(between(random, 0, 59)).padStart(2, "0")}.${String(between(random, 0, 999)).padStart(3, "0")}Z`;
const address = (random) => repeat(4, () => between(random, 1, 254)).join(".");
const uuid = (random) =>
  [8, 4, 4, 4, 12].map((length) => hex(random, length)).join("-");

function value(random, depth) {
  const kind = between(random, 0, depth > 2 ? 4 : 6);
  if (kind === 0) return between(random, 0, 100000);
  if (kind === 1) return Math.round(random() * 1e6) / 1e4;
  if (kind === 2) return random() < 0.5;
  if (kind === 3) return `${pick(random, words)} ${pick(random, words)}`;
  if (kind === 4) return pick(random, hanWords);
  if (kind === 5) return repeat(between(random, 1, 4), () => value(random, depth + 1));
  const object = {};
  for (let i = between(random, 2, 5); i > 0; i--) {
    object[`${pick(random, words)}_${pick(random, words)}`] = value(random, depth + 1);
  }
  return object;
}

const generators = {
  json_compact: (r, n) => fill(n, () => `${JSON.stringify({ id: uuid(r), data: value(r, 0), at: stamp(r) })}\n`),
  json_pretty: (r, n) => fill(n, () => `${JSON.stringify({ id: between(r, 1, 1e6), data: value(r, 0) }, null, 2)}\n`),
  json_deep_indent: (r, n) => fill(n, () => `${JSON.stringify({ a: { b: { c: value(r, 0) } } }, null, 8)}\n`),
  log_server: (r, n) =>
    fill(n, () => `${stamp(r)} ${pick(r, levels)} [${pick(r, words)}-${between(r, 1, 32)}] ${pick(r, words)}.${pick(r, words)} ` +
      `peer=${address(r)}:${between(r, 1024, 65535)} took=${between(r, 1, 9000)}ms id=${uuid(r)}\n`),
  log_access: (r, n) =>
    fill(n, () => `${address(r)} - - [12/Mar/2026:10:${between(r, 10, 59)}:${between(r, 10, 59)} +0800] "GET /api/${pick(r, words)}/` +
      `${between(r, 1, 99999)}?${pick(r, words)}=${pick(r, words)} HTTP/1.1" ${pick(r, [200, 404, 500, 302])} ${between(r, 10, 99999)}\n`),
  stack_trace: (r, n) =>
    fill(n, () => `    at com.example.${pick(r, words)}.${pick(r, words)}Service.handle(${pick(r, words)}Service.java:${between(r, 1, 900)})\n`),
  csv: (r, n) => fill(n, () => `${between(r, 1, 99999)},${pick(r, words)},${(r() * 1000).toFixed(2)},${pick(r, hanWords)},${stamp(r)}\n`),
  table_markdown: (r, n) => fill(n, () => `| ${pick(r, words)} | ${between(r, 1, 9999)} | ${(r() * 100).toFixed(1)}% | ${pick(r, hanWords)} |\n`),
  table_padded: (r, n) => fill(n, () => `${pick(r, words).padEnd(20)}${String(between(r, 1, 99999)).padStart(12)}${pick(r, words).padStart(18)}\n`),
  table_boxes: (r, n) => fill(n, () => `│ ${pick(r, words).padEnd(10)} │ ${String(between(r, 0, 999)).padStart(5)} │\n├${"─".repeat(12)}┼${"─".repeat(7)}┤\n`),
  numbers: (r, n) => fill(n, () => `${between(r, 0, 10 ** between(r, 1, 9))} `),
  decimals: (r, n) => fill(n, () => `${(r() * 100 - 50).toFixed(6)}, `),
  digits_run: fromAlphabet("0123456789"),
  pi_spaced: (r, n) => fill(n, () => `${between(r, 0, 9)} `),
  hex_run: hex,
  hex_upper: fromAlphabet("0123456789ABCDEF"),
  hex_dump: (r, n) => fill(n, () => `${repeat(16, () => hex(r, 2)).join(" ")}  ${lower(r, 8)}\n`),
  hex_commas: (r, n) => fill(n, () => `0x${hex(r, 2)}, `),
  base64,
  base64_lines: (r, n) => fill(n, () => `${base64(r, 76)}\n`),
  uuids: (r, n) => fill(n, () => `${uuid(r)}\n`),
  jwt: (r, n) => fill(n, () => `eyJhbGciOiJIUzI1NiJ9.${base64(r, 120).replaceAll(/[+/]/g, "_")}.${base64(r, 43).replaceAll(/[+/]/g, "-")}\n`),
  urls: (r, n) =>
    fill(n, () => `https://${pick(r, words)}.example.com/${pick(r, words)}/${hex(r, 10)}?${pick(r, words)}=${between(r, 1, 9999)}&sig=${base64(r, 20)}\n`),
  urls_escaped: (r, n) => fill(n, () => `https://example.com/?q=${encodeURIComponent(pick(r, hanWords) + pick(r, hanWords))}&page=${between(r, 1, 99)}\n`),
  unicode_escapes: (r, n) => fill(n, () => `\\u${hex(r, 4)}`),
  letters_random: lower,
  letters_random_words: (r, n) => fill(n, () => `${lower(r, between(r, 3, 12))} `),
  letters_upper: fromAlphabet("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
  letters_mixed_case: fromAlphabet("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
  letters_alternating: (r, n) => repeat(n, (_, i) => (i % 2 ? lower(r, 1) : lower(r, 1).toUpperCase())).join(""),
  letters_spaced: (r, n) => fill(n, () => `${lower(r, 1)} `),
  syllables: (r, n) => fill(n, () => `${pick(r, [..."bcdfghklmnprstvz"])}${pick(r, [..."aeiou"])}${r() < 0.25 ? " " : ""}`),
  vowel_words: (r, n) => fill(n, () => `${repeat(between(r, 2, 5), () => pick(r, ["an", "er", "in", "or", "th", "st", "re", "al", "ti", "on"])).join("")} `),
  dna: fromAlphabet("ACGT"),
  binary: fromAlphabet("01"),
  protein: fromAlphabet("ACDEFGHIKLMNPQRSTVWY"),
  run_a: (r, n) => "a".repeat(n),
  run_letter: (r, n) => lower(r, 1).repeat(n),
  run_upper: (r, n) => lower(r, 1).toUpperCase().repeat(n),
  run_digit: (r, n) => "7".repeat(n),
  run_mark: (r, n) => pick(r, [..."-=*#._~@^%&!?/\\|+"]).repeat(n),
  run_han: (r, n) => pick(r, [..."的哈一啊龘"]).repeat(n),
  run_emoji: (r, n) => pick(r, ["😀", "🔥", "👍", "🫠"]).repeat(Math.ceil(n / 2)),
  run_space: (r, n) => `x${" ".repeat(n)}x`,
  run_newline: (r, n) => `x${"\n".repeat(n)}x`,
  run_tab: (r, n) => `x${"\t".repeat(n)}x`,
  blanks_mixed: fromAlphabet(" \n\t "),
  blanks_words: (r, n) => fill(n, () => `${pick(r, words)}${" ".repeat(between(r, 2, 40))}`),
  words_lines: (r, n) => fill(n, () => `${pick(r, words)}\n`),
  words_blank_lines: (r, n) => fill(n, () => `${pick(r, words)}\n\n\n`),
  words_tabs: (r, n) => fill(n, () => `${pick(r, words)}\t${between(r, 1, 99)}\t`),
  marks_random: fromAlphabet("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
  marks_spaced: (r, n) => fill(n, () => `${pick(r, [..."!@#$%^&*()-+=[]{}|;:<>,./?"])} `),
  marks_math: (r, n) => fill(n, () => `${pick(r, [..."abxyzn"])}${pick(r, ["=", "<=", "+", "-", "*", "^2", "/"])}`),
  ascii_random: (r, n) => repeat(n, () => String.fromCharCode(between(r, 32, 126))).join(""),
  password_list: (r, n) => fill(n, () => `${fromAlphabet("abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ23456789!@#$%")(r, 14)}\n`),
  regexes: (r, n) => fill(n, () => pick(r, ["^\\d{3}-\\w+$", "(?:[a-z]+|\\s*)?", "[^\\]\\n]*\\b", "(?<=x)\\S{2,5}", "\\\\(.+?)\\\\", "[A-Z_]{1,}"])),
  brackets: (r, n) => fromAlphabet("()[]{}<>")(r, n),
  control_bytes: fromRange(1, 31),
  latex: (r, n) =>
    fill(n, () => pick(r, ["\\frac{x_{i}}{n}", "\\sum_{k=1}^{n} ", "\\int_0^\\infty e^{-x^2}\\,dx ", "\\alpha + \\beta ", "\\left( \\mathbf{A}^{-1} \\right)", "\\begin{aligned}\n", "\\end{aligned}\n", "x^{2} \\leq y_{k+1} "])),
  math_symbols: (r, n) => fill(n, () => `${pick(r, [..."∀∃∈∉⊂∪∩→⇒≤≥≠≈∞∑∏∫√∂∇αβγδλμπσω"])}${pick(r, ["x", " ", "y", "1", ""])}`),
  arrows_boxes: fromRange(0x2190, 0x25ff),
  dingbats: fromRange(0x2600, 0x27bf),
  emoji: fromRange(0x1f300, 0x1f64f),
  emoji_rare: fromRange(0x1f900, 0x1fad0),
  emoji_joined: (r, n) => fill(n, () => pick(r, ["👨‍👩‍👧‍👦", "🏳️‍🌈", "👩🏽‍💻", "❤️", "✌🏿", "🇨🇳", "🇩🇪", "1️⃣"])),
  emoji_chat: (r, n) => fill(n, () => `${pick(r, words)} ${pick(r, ["😀", "🎉", "🙏", "🚀"])} `),
  flags: (r, n) => fill(n, () => pick(r, ["🇨🇳", "🇺🇸", "🇫🇷", "🇯🇵", "🇧🇷", "🇰🇪"])),
  han_common_random: (r, n) => fromAlphabet("的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长")(r, n),
  han_random: fromRange(0x4e00, 0x9fa5),
  han_rare: fromRange(0x9000, 0x9fff),
  han_ext_a: fromRange(0x3400, 0x4dbf),
  han_ext_b: fromRange(0x20000, 0x2a6d0),
  han_names: (r, n) => fill(n, () => `${pick(r, [..."王李张刘陈杨赵黄周吴徐孙"])}${pick(r, [..."伟芳娜敏静磊洋艳勇杰涛霞鑫"])}${pick(r, [..."宇轩涵梓萱琪煜昊婷瑜珂"])}、`),
  han_classical: (r, n) => fromAlphabet("夫兵者诡道也故善战而屈人之军焉哉矣乎其以为则必於曰吾汝尔兮孰谓惟臣闻昔寡德")(r, n),
  han_traditional: (r, n) => fromAlphabet("這個國學會說時來對們開關經過還長門電話讓點應該從無線網際資訊產業發展與繁體書寫習慣標準")(r, n),
  han_spaced: (r, n) => fill(n, () => `${pick(r, hanWords)} `),
  han_digits: (r, n) => fill(n, () => `第${between(r, 1, 999)}条，共${between(r, 1, 99)}项；`),
  han_escaped_json: (r, n) => fill(n, () => JSON.stringify({ [pick(r, hanWords)]: pick(r, hanWords) + pick(r, hanWords), 数量: between(r, 1, 99) })),
  pinyin: (r, n) => fill(n, () => pick(r, "wo men jin tian qu shang hai kan dian ying ran hou chi huo guo zai hui jia xiang zhong guo ren".split(" ")) + (r() < 0.4 ? " " : "")),
  hiragana_random: fromRange(0x3041, 0x3096),
  katakana_random: fromRange(0x30a1, 0x30fa),
  hangul_random: fromRange(0xac00, 0xd7a3),
  hangul_common: fromAlphabet("가나다라마바사아자하이은는을를의에서로고도만한다요지기시리어여대해일수있것들그저우리사람"),
  cyrillic_random: fromAlphabet("абвгдежзийклмнопрстуфхцчшщъыьэюя"),
  cyrillic_upper: fromAlphabet("АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЭЮЯ "),
  greek_random: fromAlphabet("αβγδεζηθικλμνξοπρστυφχψω "),
  arabic_random: fromAlphabet("ابتثجحخدذرزسشصضطظعغفقكلمنهوي "),
  hebrew_random: fromAlphabet("אבגדהוזחטיכלמנסעפצקרשת "),
  thai_random: fromRange(0x0e01, 0x0e3a),
  devanagari_random: fromRange(0x0904, 0x0950),
  bengali_random: fromRange(0x0985, 0x09ce),
  tamil_random: fromAlphabet("அஆஇஈகஙசஞடணதநபமயரலவழளறனாிீுூெேைொோௌ்"),
  georgian_random: fromRange(0x10d0, 0x10f0),
  armenian_random: fromRange(0x0561, 0x0586),
  amharic_random: fromRange(0x1200, 0x1340),
  khmer_random: fromRange(0x1780, 0x17b3),
  tibetan_random: fromRange(0x0f40, 0x0f69),
  yi_random: fromRange(0xa000, 0xa48c),
  vietnamese_marks: fromAlphabet("ăâđêôơưáàảãạấầẩẫậéèẻẽẹếềểễệ nghtrc"),
  latin_extended: fromRange(0x00c0, 0x024f),
  fullwidth: fromRange(0xff01, 0xff5e),
  math_alphanumeric: fromRange(0x1d400, 0x1d7ff),
  private_use: fromRange(0xe000, 0xf8ff),
  combining_zalgo: (r, n) => fill(n, () => pick(r, [..."zalgo"]) + repeat(3, () => String.fromCodePoint(between(r, 0x300, 0x36f))).join("")),
  any_bmp: (r, n) => repeat(n, () => String.fromCodePoint(r() < 0.5 ? between(r, 0x20, 0xd7ff) : between(r, 0xe000, 0xfffd))).join(""),
  replacement: (r, n) => "\uFFFD".repeat(n),
};

export default generators;
