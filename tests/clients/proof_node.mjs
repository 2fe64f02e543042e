// The Node step of proof.py: one whole and one streamed answer. Prints what it saw as JSON.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "local", maxRetries: 0 });
const body = {
  model: "flash",
  messages: [{ role: "user", content: "Name three rivers." }],
  max_tokens: 16,
};
const { data, response } = await client.chat.completions.create(body).withResponse();
const stream = await client.chat.completions.create({
  ...body,
  stream: true,
  stream_options: { include_usage: true },
});
let text = "";
let usage;
for await (const chunk of stream) {
  text += chunk.choices[0]?.delta.content ?? "";
  usage = chunk.usage ?? usage;
}
console.log(
  JSON.stringify({
    profile: response.headers.get("x-flashgate-profile"),
    whole: data.usage,
    stream: usage,
    text,
  }),
);
