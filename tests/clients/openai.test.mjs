// The official Node SDK against the base_url.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { departure_of, direct, reply, start_stack } from "./stack.mjs";

const messages = [{ role: "user", content: "你好" }];
const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "查询城市天气",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer" } },
      required: ["city", "days"],
    },
  },
};
const client_of = (stack, options = {}) =>
  new OpenAI({ baseURL: stack.base_url, apiKey: "client-key", maxRetries: 0, ...options });
const join = async (stream, read = (chunk) => chunk.choices[0]?.delta.content ?? "") => {
  let text = "";
  for await (const chunk of stream) text += read(chunk);
  return text;
};

describe("openai for Node", () => {
  let stack, client;
  before(async () => {
    stack = await start_stack();
    client = client_of(stack);
  });
  after(() => stack.stop());
  beforeEach(async () => {
    await stack.flash.reset();
    await stack.cloud.reset();
  });

  test("gets a whole answer with usage", async () => {
    const answer = await client.chat.completions.create({ model: "flash", messages });
    assert.equal(answer.choices[0].message.content, reply);
    assert.ok(answer.usage.total_tokens > 0);
  });

  test("gets every character of a stream, and usage when it asks", async () => {
    const stream = await client.chat.completions.create({
      model: "flash",
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    let usage;
    const text = await join(stream, (chunk) => {
      usage = chunk.usage ?? usage;
      return chunk.choices[0]?.delta.content ?? "";
    });
    assert.equal(text, reply);
    assert.ok(usage.completion_tokens > 0);
  });

  test("sees no usage in a stream when it did not ask", async () => {
    const stream = await client.chat.completions.create({ model: "flash", messages, stream: true });
    for await (const chunk of stream) {
      assert.equal(chunk.usage ?? null, null);
      assert.equal(chunk.choices.length, 1);
    }
  });

  test("sends and receives Chinese and emoji unchanged", async () => {
    const text = "繁體、简体、かな、𠮷野家 👩‍👩‍👧 “引号” \u2028 尾\t\n";
    const echo = [{ role: "user", content: `echo:${text}` }];
    const body = { model: "flash", messages: echo };
    const whole = await client.chat.completions.create(body);
    assert.equal(whole.choices[0].message.content, text);
    const stream = await client.chat.completions.create({ ...body, stream: true });
    assert.equal(await join(stream), text);
  });

  test("calls a tool and answers its result", async () => {
    const body = { model: "flash", messages, tools: [weather] };
    const first = await client.chat.completions.create(body);
    const { message, finish_reason } = first.choices[0];
    assert.equal(finish_reason, "tool_calls");
    const wanted = { city: "北京", days: 7 };
    assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), wanted);
    const result = { role: "tool", tool_call_id: message.tool_calls[0].id, content: "晴" };
    const history = [...messages, message, result];
    const second = await client.chat.completions.create({ ...body, messages: history });
    assert.equal(second.choices[0].message.content, "工具的结果:晴");
  });

  test("puts a streamed tool call together", async () => {
    const stream = client.chat.completions.stream({ model: "flash", messages, tools: [weather] });
    const final = await stream.finalChatCompletion();
    const call = final.choices[0].message.tool_calls[0];
    assert.deepEqual(JSON.parse(call.function.arguments), { city: "北京", days: 7 });
  });

  test("parses structured output", async () => {
    const City = z.object({ name: z.string(), population: z.number(), tags: z.array(z.string()) });
    const answer = await client.chat.completions.parse({
      model: "flash",
      messages,
      response_format: zodResponseFormat(City, "city"),
    });
    assert.equal(answer.choices[0].message.parsed.name, "北京");
  });

  test("gets embeddings in order", async () => {
    const answer = await client.embeddings.create({ model: "flash", input: ["a", "你好"] });
    assert.deepEqual(answer.data.map((item) => item.embedding[0]), [1, 6]);
  });

  test("uses /v1/responses whole and streamed", async () => {
    const whole = await client.responses.create({ model: "flash", input: "你好" });
    assert.equal(whole.output_text, reply);
    const stream = await client.responses.create({ model: "flash", input: "你好", stream: true });
    const text = await join(stream, (event) =>
      event.type === "response.output_text.delta" ? event.delta : "",
    );
    assert.equal(text, reply);
  });

  test("lists the models", async () => {
    const names = [];
    for await (const model of client.models.list()) names.push(model.id);
    assert.ok(names.includes("flash"));
  });

  test("gets a backend's refusal as BadRequestError with its words", async () => {
    const body = { model: "flash", messages, temperature: 3 };
    await assert.rejects(client.chat.completions.create(body), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.match(error.message, /at most 2/);
      return true;
    });
  });

  test("an aborted stream reaches the backend within half a second", async () => {
    await stack.flash.pace({ piece_delay_s: 0.03, pieces: 1000 });
    const stream = await client.chat.completions.create({ model: "flash", messages, stream: true });
    let count = 0;
    let closed_at;
    for await (const _ of stream) {
      count += 1;
      if (count === 5) {
        closed_at = Date.now();
        stream.controller.abort();
      }
    }
    assert.ok((await departure_of(stack.flash)) - closed_at < 500);
  });

  test("an aborted whole answer reaches the backend within half a second", async () => {
    await stack.flash.pace({ first_delay_s: 10 });
    const giving_up = new AbortController();
    setTimeout(() => giving_up.abort(), 400);
    const options = { signal: giving_up.signal };
    const call = client.chat.completions.create({ model: "flash", messages }, options);
    await assert.rejects(call, OpenAI.APIUserAbortError);
    const closed_at = Date.now();
    assert.ok((await departure_of(stack.flash)) - closed_at < 500);
  });

  if (direct) return;

  test("an unknown model is NotFoundError with close matches", async () => {
    const call = client.chat.completions.create({ model: "flahs", messages });
    await assert.rejects(call, (error) => {
      assert.ok(error instanceof OpenAI.NotFoundError);
      assert.equal(error.code, "model_not_found");
      assert.match(error.message.replace("flahs", ""), /flash/);
      return true;
    });
  });

  test("sees which profile served it", async () => {
    const call = client.chat.completions.create({ model: "flash", messages });
    const { response } = await call.withResponse();
    assert.equal(response.headers.get("x-flashgate-profile"), "local-flash");
  });
});

const no_routes = { fallback: null, long_context_threshold: null };
const alone = { profiles: { "cloud-main": null }, routing: no_routes };
const with_stack = (config, body) => async () => {
  const stack = await start_stack(config);
  try {
    await body(stack);
  } finally {
    await stack.stop();
  }
};

describe("openai for Node and flashgate's own decisions", () => {
  if (direct) return;

  test(
    "does not repeat what the gateway gave up",
    with_stack(alone, async (stack) => {
      await stack.flash.script(...Array(30).fill({ status: 500 }));
      const client = client_of(stack, { maxRetries: 5 });
      const call = client.chat.completions.create({ model: "flash", messages });
      await assert.rejects(call, (error) => error.headers.get("x-should-retry") === "false");
      assert.equal((await stack.flash.requests()).length, 3);
      assert.equal((await stack.calls(1)).length, 1);
    }),
  );

  test(
    "an empty bucket is RateLimitError with Retry-After",
    with_stack(
      {
        ...alone,
        profiles: {
          ...alone.profiles,
          "local-flash": {
            rate_limit: { requests: "1/min", burst: 1 },
            queue: { max_wait: "1s" },
          },
        },
      },
      async (stack) => {
        const client = client_of(stack);
        await client.chat.completions.create({ model: "flash", messages });
        const call = client.chat.completions.create({ model: "flash", messages });
        await assert.rejects(call, (error) => {
          assert.ok(error instanceof OpenAI.RateLimitError);
          assert.ok(Number(error.headers.get("retry-after")) >= 1);
          return true;
        });
      },
    ),
  );

  test(
    "a stream that breaks before its first word is answered by the cloud",
    with_stack({}, async (stack) => {
      await stack.flash.script(...Array(3).fill({ cut_after: 0 }));
      const body = { model: "flash", messages, stream: true };
      const stream = await client_of(stack).chat.completions.create(body);
      assert.equal(await join(stream), reply);
    }),
  );

  test(
    "a stream that breaks after words raises",
    with_stack({}, async (stack) => {
      await stack.flash.script({ cut_after: 5 });
      const body = { model: "flash", messages, stream: true };
      const stream = await client_of(stack).chat.completions.create(body);
      await assert.rejects(join(stream), OpenAI.APIError);
    }),
  );
});
