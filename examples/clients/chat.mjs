// flashgate from Node: npm install openai; node chat.mjs
// Only baseURL differs from any other use of the SDK. LLM_BASE_URL and LLM_API_KEY override it.
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: process.env.LLM_BASE_URL ?? "http://127.0.0.1:8080/v1",
  apiKey: process.env.LLM_API_KEY ?? "local",
  maxRetries: 0, // flashgate retries and falls back; a second layer would multiply it
});
const messages = [{ role: "user", content: "用三句话解释什么是KV Cache" }];

// A whole answer, and which profile gave it.
const { data, response } = await client.chat.completions
  .create({ model: "auto", messages, max_tokens: 64 })
  .withResponse();
console.log(data.choices[0].message.content);
const profile = response.headers.get("x-flashgate-profile");
console.log("profile:", profile, "usage:", data.usage.total_tokens);

// The same, streamed; the last chunk has the usage.
const stream = await client.chat.completions.create({
  model: "auto",
  messages,
  max_tokens: 64,
  stream: true,
  stream_options: { include_usage: true },
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "");
  if (chunk.usage) console.log("\nusage:", chunk.usage.total_tokens);
}
