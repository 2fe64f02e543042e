// A small OpenAI-compatible HTTP server around node-llama-cpp, so that tests have a real model as
// backend. It generates at most two answers at a time (others wait in order), counts tokens as the
// model does, and stops generating when the client leaves. For tests only: it trusts its peers.
//
// Environment: MODEL_FILE (a gguf), PORT (0 takes a free one), MODEL_NAME, CONTEXT_TOKENS,
// RUNTIME_DIR (the folder whose node_modules hold node-llama-cpp), THREADS (1: the engine's threads
// spin while they wait for one another, which is a hundredfold slower on a busy two-core machine).
import http from "node:http";
import path from "node:path";
import { randomUUID } from "node:crypto";
import { pathToFileURL } from "node:url";

const runtime = process.env.RUNTIME_DIR ?? ".";
const entry = path.join(runtime, "node_modules/node-llama-cpp/dist/index.js");
const { getLlama } = await import(pathToFileURL(entry).href);

const model_name = process.env.MODEL_NAME ?? "gemma3-270m";
const context_tokens = Number(process.env.CONTEXT_TOKENS ?? 8192);
const body_bytes_max = 32 * 1024 * 1024;
const generations_max = 2;
const default_temperature = 0.7;

const llama = await getLlama({ gpu: false, build: "never", logLevel: "error" });
const model = await llama.loadModel({ modelPath: process.env.MODEL_FILE });
const context = await model.createContext({
  contextSize: context_tokens,
  sequences: generations_max,
  threads: Number(process.env.THREADS ?? 1),
});
const stats = { active: 0, queued: 0, finished: 0, aborted: 0, last_abort_ms: 0 };

class RequestError extends Error {
  constructor(status, code, message, type = "invalid_request_error") {
    super(message);
    Object.assign(this, { status, code, type });
  }
}

// Slots: a semaphore in arrival order; a waiter that aborts leaves the queue at once.
const waiting = [];
async function take_slot(signal) {
  if (stats.active < generations_max) {
    stats.active += 1;
    return;
  }
  stats.queued += 1;
  await new Promise((resolve, reject) => {
    const waiter = { resolve };
    waiting.push(waiter);
    signal.addEventListener("abort", () => {
      const place = waiting.indexOf(waiter);
      if (place >= 0) waiting.splice(place, 1);
      reject(signal.reason);
    });
  }).finally(() => (stats.queued -= 1));
}
function give_slot() {
  const next = waiting.shift();
  if (next) next.resolve();
  else stats.active -= 1;
}

// Gemma's turn format: no system role of its own, so system text opens the first user turn.
function text_of(content) {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map((part) => part.text ?? "").join("");
  if (content === null || content === undefined) return "";
  throw new RequestError(400, "invalid_value", "messages[].content must be text or parts");
}
function prompt_of(messages) {
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new RequestError(400, "invalid_value", "messages must be a non-empty list");
  }
  let pending_system = "";
  let prompt = "<bos>";
  for (const { role, content } of messages) {
    if (role === "system" || role === "developer") {
      pending_system += `${text_of(content)}\n\n`;
      continue;
    }
    const turn = role === "assistant" ? "model" : "user";
    prompt += `<start_of_turn>${turn}\n${pending_system}${text_of(content)}<end_of_turn>\n`;
    pending_system = "";
  }
  if (pending_system) prompt += `<start_of_turn>user\n${pending_system}<end_of_turn>\n`;
  return `${prompt}<start_of_turn>model\n`;
}

function limits_of(request, prompt_tokens) {
  const room = context_tokens - prompt_tokens;
  if (room < 1) {
    throw new RequestError(
      400,
      "context_length_exceeded",
      `This model's maximum context length is ${context_tokens} tokens; ` +
        `the messages have ${prompt_tokens}.`,
    );
  }
  const asked = request.max_completion_tokens ?? request.max_tokens ?? 256;
  if (!Number.isInteger(asked) || asked < 1) {
    throw new RequestError(400, "invalid_value", "max_tokens must be a positive integer");
  }
  const stops = [request.stop ?? []].flat().filter((stop) => stop.length > 0);
  return { tokens_max: Math.min(asked, room), stops };
}

// Turns tokens into text, holding back an unfinished UTF-8 character and anything that may be the
// beginning of a stop string.
class TextAssembler {
  constructor(stops) {
    this.stops = stops;
    this.pending = [];
    this.previous = [];
    this.held = "";
    this.stopped = false;
  }
  add(token) {
    this.pending.push(token);
    const piece = model.detokenize(this.pending, false, this.previous);
    if (piece.endsWith("\uFFFD") && this.pending.length < 8) return "";
    this.previous = [...this.previous, ...this.pending].slice(-8);
    this.pending = [];
    return this.release(this.held + piece, false);
  }
  end() {
    const rest = this.pending.length ? model.detokenize(this.pending, false, this.previous) : "";
    return this.stopped ? "" : this.release(this.held + rest, true);
  }
  release(text, at_end) {
    for (const stop of this.stops) {
      const place = text.indexOf(stop);
      if (place >= 0) {
        this.stopped = true;
        return text.slice(0, place);
      }
    }
    const longest = at_end ? 0 : Math.max(0, ...this.stops.map((stop) => stop.length - 1));
    let keep = Math.min(longest, text.length);
    while (keep > 0 && !this.stops.some((s) => s.startsWith(text.slice(-keep)))) keep -= 1;
    this.held = text.slice(text.length - keep);
    return text.slice(0, text.length - keep);
  }
}

// Generates for one request; on_text gets each piece. Returns the reason and the token counts.
async function generate(prompt_tokens, request, signal, on_text) {
  const { tokens_max, stops } = limits_of(request, prompt_tokens.length);
  await take_slot(signal);
  let sequence;
  try {
    signal.throwIfAborted();
    sequence = context.getSequence();
    const assembler = new TextAssembler(stops);
    const options = {
      temperature: request.temperature ?? default_temperature,
      topP: request.top_p ?? 1,
      seed: request.seed,
    };
    let completion_tokens = 0;
    let finish_reason = "length";
    for await (const token of sequence.evaluate(prompt_tokens, options)) {
      signal.throwIfAborted();
      completion_tokens += 1;
      if (model.isEogToken(token) || token === end_of_turn) {
        finish_reason = "stop";
        break;
      }
      const text = assembler.add(token);
      if (text) on_text(text);
      if (assembler.stopped) {
        finish_reason = "stop";
        break;
      }
      if (completion_tokens >= tokens_max) break;
    }
    const rest = assembler.end();
    if (rest) on_text(rest);
    stats.finished += 1;
    const total_tokens = prompt_tokens.length + completion_tokens;
    const usage = { prompt_tokens: prompt_tokens.length, completion_tokens, total_tokens };
    return { finish_reason, usage };
  } finally {
    sequence?.dispose();
    give_slot();
  }
}
const [end_of_turn] = model.tokenize("<end_of_turn>", true);

// One shape for chat and for the older completions: what a chunk and a whole answer look like.
const shapes = {
  chat: {
    id: "chatcmpl-",
    chunk: "chat.completion.chunk",
    whole: "chat.completion",
    opening: { delta: { role: "assistant", content: "" } },
    piece: (text) => ({ delta: { content: text } }),
    closing: { delta: {} },
    choice: (text) => ({ message: { role: "assistant", content: text, refusal: null } }),
  },
  completion: {
    id: "cmpl-",
    chunk: "text_completion",
    whole: "text_completion",
    opening: null,
    piece: (text) => ({ text }),
    closing: { text: "" },
    choice: (text) => ({ text }),
  },
};

async function answer(shape, prompt_tokens, request, response, signal) {
  const created = Math.floor(Date.now() / 1000);
  const head = { id: shape.id + randomUUID(), created, model: request.model ?? model_name };
  if (!request.stream) {
    let text = "";
    const { finish_reason, usage } = await generate(prompt_tokens, request, signal, (piece) => {
      text += piece;
    });
    const choices = [{ index: 0, ...shape.choice(text), logprobs: null, finish_reason }];
    return send_json(response, 200, { ...head, object: shape.whole, choices, usage });
  }
  limits_of(request, prompt_tokens.length);
  const with_usage = request.stream_options?.include_usage === true;
  const send = (choices, usage) => {
    const chunk = { ...head, object: shape.chunk, choices };
    if (with_usage) chunk.usage = usage ?? null;
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  const choice = (part, finish_reason = null) => [
    { index: 0, ...part, logprobs: null, finish_reason },
  ];
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  if (shape.opening) send(choice(shape.opening));
  try {
    const { finish_reason, usage } = await generate(prompt_tokens, request, signal, (piece) => {
      send(choice(shape.piece(piece)));
    });
    send(choice(shape.closing, finish_reason));
    if (with_usage) send([], usage);
    response.end("data: [DONE]\n\n");
  } catch (error) {
    if (signal.aborted) throw error;
    response.end(`data: ${JSON.stringify(error_body(error))}\n\n`);
  }
}

let embedder;
async function embed(request, response) {
  const one = !Array.isArray(request.input) || typeof request.input[0] === "number";
  const texts = one ? [request.input] : request.input;
  if (texts.length === 0 || texts.length > 256 || texts.some((text) => !text?.length)) {
    throw new RequestError(400, "invalid_value", "input must be 1 to 256 non-empty texts");
  }
  embedder ??= model.createEmbeddingContext({ contextSize: Math.min(context_tokens, 2048) });
  const data = [];
  let prompt_tokens = 0;
  for (const [index, text] of texts.entries()) {
    const tokens = typeof text === "string" ? model.tokenize(text) : text;
    prompt_tokens += tokens.length;
    const { vector } = await (await embedder).getEmbeddingFor(tokens);
    const embedding =
      request.encoding_format === "base64"
        ? Buffer.from(Float32Array.from(vector).buffer).toString("base64")
        : vector;
    data.push({ object: "embedding", index, embedding });
  }
  const usage = { prompt_tokens, total_tokens: prompt_tokens };
  send_json(response, 200, { object: "list", data, model: request.model ?? model_name, usage });
}

const error_body = (error) => ({
  error: {
    message: error.message,
    type: error.type ?? "server_error",
    param: null,
    code: error.code ?? null,
  },
});
function send_json(response, status, value) {
  const bytes = Buffer.from(JSON.stringify(value));
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": bytes.length,
  });
  response.end(bytes);
}
async function read_json(request) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > body_bytes_max) throw new RequestError(413, "body_too_large", "body over 32 MiB");
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch (error) {
    throw new RequestError(400, "invalid_json", `the body is not JSON: ${error.message}`);
  }
}

const posts = {
  "/v1/chat/completions": (body, response, signal) =>
    answer(shapes.chat, model.tokenize(prompt_of(body.messages), true), body, response, signal),
  "/v1/completions": (body, response, signal) => {
    const tokens = model.tokenize(`<bos>${[body.prompt].flat().join("")}`, true);
    return answer(shapes.completion, tokens, body, response, signal);
  },
  "/v1/embeddings": embed,
  // Not OpenAI's: how many tokens a text has for this model.
  "/tokenize": (body, response) =>
    send_json(response, 200, { tokens: model.tokenize(String(body.content)).length }),
};

async function handle(request, response, signal) {
  const target = request.url.split("?")[0];
  if (request.method === "GET" && target === "/health") {
    return send_json(response, 200, { status: "ok", ...stats });
  }
  if (request.method === "GET" && target === "/v1/models") {
    const card = { id: model_name, object: "model", created: 1, owned_by: "real_model" };
    return send_json(response, 200, { object: "list", data: [card] });
  }
  const post = posts[target];
  if (!post) throw new RequestError(404, "not_found", `no such path: ${target}`);
  if (request.method !== "POST") throw new RequestError(405, "bad_method", "use POST");
  return post(await read_json(request), response, signal);
}

const server = http.createServer((request, response) => {
  const departure = new AbortController();
  response.on("close", () => {
    if (response.writableFinished) return;
    stats.aborted += 1;
    stats.last_abort_ms = Date.now();
    departure.abort(new Error("the client left"));
  });
  handle(request, response, departure.signal).catch((error) => {
    if (departure.signal.aborted) return;
    if (!error.status) console.error(error);
    if (response.headersSent) return response.destroy();
    send_json(response, error.status ?? 500, error_body(error));
  });
});
server.requestTimeout = 0;
server.keepAliveTimeout = 60_000;
server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}/v1`);
});
process.on("SIGTERM", () => process.exit(0));
