// The Vercel AI SDK against the base_url.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embedMany, generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { departure_of, direct, reply, start_stack } from "./stack.mjs";

describe("Vercel AI SDK", () => {
  let stack, provider, model;
  before(async () => {
    stack = await start_stack();
    provider = createOpenAICompatible({
      name: "flashgate",
      baseURL: stack.base_url,
      apiKey: "client-key",
      includeUsage: true,
      supportsStructuredOutputs: true,
    });
    model = provider("flash");
  });
  after(() => stack.stop());
  beforeEach(() => stack.flash.reset());

  test("generateText returns text and usage", async () => {
    const { text, usage } = await generateText({ model, prompt: "你好", maxRetries: 0 });
    assert.equal(text, reply);
    assert.ok(usage.totalTokens > 0);
  });

  test("streamText yields every character and usage", async () => {
    const result = streamText({ model, prompt: "你好", maxRetries: 0 });
    let text = "";
    for await (const part of result.textStream) text += part;
    assert.equal(text, reply);
    assert.ok((await result.usage).outputTokens > 0);
    assert.equal(await result.finishReason, "stop");
  });

  test("a tool is called, run and answered in two steps", async () => {
    const get_weather = tool({
      description: "查询城市天气",
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => `${city}:晴`,
    });
    const result = streamText({
      model,
      prompt: "北京天气?",
      tools: { get_weather },
      stopWhen: stepCountIs(3),
      maxRetries: 0,
    });
    assert.match(await result.text, /工具的结果:.*北京:晴/);
    assert.equal((await result.steps).length, 2);
  });

  test("generateObject follows the schema", async () => {
    const schema = z.object({ name: z.string(), population: z.number() });
    const options = { model, schema, prompt: "一座城市", maxRetries: 0 };
    const { object } = await generateObject(options);
    assert.deepEqual(object, { name: "北京", population: 1.5 });
  });

  test("embedMany keeps the order", async () => {
    const embedder = provider.textEmbeddingModel("flash");
    const options = { model: embedder, values: ["a", "你好"], maxRetries: 0 };
    const { embeddings } = await embedMany(options);
    assert.deepEqual(embeddings.map((vector) => vector[0]), [1, 6]);
  });

  test("an aborted stream reaches the backend within half a second", async () => {
    await stack.flash.pace({ piece_delay_s: 0.03, pieces: 1000 });
    const leaving = new AbortController();
    const options = { model, prompt: "你好", maxRetries: 0, abortSignal: leaving.signal };
    const result = streamText({ ...options, onError: () => {} });
    let count = 0;
    let closed_at;
    for await (const part of result.fullStream) {
      if (part.type === "text-delta") count += 1;
      if (count === 5 && !closed_at) {
        closed_at = Date.now();
        leaving.abort();
      }
    }
    assert.ok((await departure_of(stack.flash)) - closed_at < 500);
  });

  if (direct) return;

  test("an unknown model is an API error with the gateway's words", async () => {
    const call = generateText({ model: provider("flahs"), prompt: "你好", maxRetries: 0 });
    await assert.rejects(call, (error) => {
      assert.equal(error.statusCode, 404);
      assert.match(error.message.replace("flahs", ""), /flash/);
      return true;
    });
  });
});
