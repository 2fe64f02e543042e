// Starts stack.py for a Node test and gives its addresses and the fake backend's levers.
// `stop()` ends everything that was started.
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const script = fileURLToPath(new URL("stack.py", import.meta.url));
const python = process.env.CLIENTS_PYTHON ?? "python3";
export const direct = process.env.FLASHGATE_DIRECT === "1";

export async function start_stack(config = {}, options = []) {
  const command = ["-B", script, "--config", JSON.stringify(config), ...options];
  const child = spawn(python, command, { stdio: ["pipe", "pipe", "inherit"] });
  const first = once(createInterface({ input: child.stdout }), "line");
  const died = once(child, "exit").then(() => {
    throw new Error("stack.py ended before it was ready");
  });
  died.catch(() => {});
  const [line] = await Promise.race([first, died]);
  const addresses = JSON.parse(line);

  const backend = (base_url) => {
    const call = async (name, value) => {
      const body = value === undefined ? undefined : JSON.stringify(value);
      const method = body === undefined ? "GET" : "POST";
      const answer = await fetch(base_url.replace(/v1$/, `_${name}`), { method, body });
      return answer.json();
    };
    return {
      base_url,
      script: (...steps) => call("script", steps),
      pace: (fields) => call("pace", fields),
      reset: () => call("reset", {}),
      requests: async (path = "/v1/chat/completions") =>
        (await call("requests")).requests.filter((request) => request.path === path),
    };
  };
  return {
    base_url: addresses.base_url,
    flash: backend(addresses.flash),
    cloud: backend(addresses.cloud),
    // The call log's lines, once there are at least `count` of them.
    async calls(count) {
      for (let tries = 0; ; tries += 1) {
        const text = await readFile(addresses.log, "utf8").catch(() => "");
        const lines = text.split("\n").slice(0, -1);
        if (lines.length >= count || tries > 200) return lines.map((one) => JSON.parse(one));
        await sleep(25);
      }
    },
    async stop() {
      const ended = once(child, "exit");
      child.stdin.end();
      await ended;
    },
  };
}

// When the fake backend saw its last client leave, in milliseconds since the epoch.
export async function departure_of(backend) {
  for (let tries = 0; tries < 250; tries += 1) {
    const left_at = (await backend.requests()).at(-1)?.left_at;
    if (left_at) return left_at * 1000;
    await sleep(20);
  }
  throw new Error("the backend never saw the client leave");
}

export const reply = "你好,世界!Hello from the fake backend. 🙂 再见。";
