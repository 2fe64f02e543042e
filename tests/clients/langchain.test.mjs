// LangChain for Node against the base_url.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { z } from "zod";
import { reply, start_stack } from "./stack.mjs";

const get_weather = tool(({ city }) => `${city}:晴`, {
  name: "get_weather",
  description: "查询城市天气",
  schema: z.object({ city: z.string() }),
});

describe("LangChain for Node", () => {
  let stack, chat, options;
  before(async () => {
    stack = await start_stack();
    options = { apiKey: "client-key", configuration: { baseURL: stack.base_url }, maxRetries: 0 };
    chat = new ChatOpenAI({ model: "flash", streamUsage: true, ...options });
  });
  after(() => stack.stop());

  test("invoke returns text and usage", async () => {
    const answer = await chat.invoke("你好");
    assert.equal(answer.content, reply);
    assert.ok(answer.usage_metadata.total_tokens > 0);
  });

  test("a stream adds up to the answer", async () => {
    let text = "";
    for await (const part of await chat.stream("你好")) text += part.content;
    assert.equal(text, reply);
  });

  test("a bound tool is called and its result is answered", async () => {
    const bound = chat.bindTools([get_weather]);
    const question = new HumanMessage("北京天气?");
    const first = await bound.invoke([question]);
    const [call] = first.tool_calls;
    const content = await get_weather.invoke(call.args);
    const result = new ToolMessage({ content, tool_call_id: call.id });
    const second = await bound.invoke([question, first, result]);
    assert.equal(second.content, "工具的结果:北京:晴");
  });

  test("structured output follows the schema", async () => {
    const City = z.object({ name: z.string(), population: z.number() });
    const asker = chat.withStructuredOutput(City, { method: "jsonSchema", name: "city" });
    assert.equal((await asker.invoke("一座城市")).name, "北京");
  });

  test("embeddings of documents keep their order", async () => {
    const embeddings = new OpenAIEmbeddings({ model: "flash", ...options });
    const vectors = await embeddings.embedDocuments(["a", "你好"]);
    assert.deepEqual(vectors.map((vector) => vector[0]), [1, 6]);
  });
});
