// A server that speaks lines on its standard input and output, as streamable HTTP: the conformance
// suite of the protocol asks in no other way. Each session is a server of its own. What HTTP itself
// must do (status codes, headers, origins) is not here, and so is not tested through this.
// usage: node bridge.mjs COMMAND [ARGUMENT]...      prints its address
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

const [command, ...words] = process.argv.slice(2);
const sessions = new Map();

function begin() {
  const server = spawn(command, words, { stdio: ["pipe", "pipe", "inherit"] });
  const waiting = new Map();
  createInterface({ input: server.stdout }).on("line", (line) => {
    const answered = JSON.parse(line).id;
    waiting.get(answered)?.(line);
    waiting.delete(answered);
  });
  const ask = (message) =>
    new Promise((answer) => {
      const isRequest = message.method !== undefined && message.id !== undefined;
      if (isRequest) waiting.set(message.id, answer);
      server.stdin.write(JSON.stringify(message) + "\n");
      if (!isRequest) answer(null);
    });
  const session = { id: `session-${sessions.size}`, ask };
  sessions.set(session.id, session);
  return session;
}

async function answer(text, session, response) {
  const line = await session.ask(JSON.parse(text));
  const head = { "mcp-session-id": session.id, "content-type": "application/json" };
  response.writeHead(line === null ? 202 : 200, head).end(line ?? "");
}

const bridge = createServer((request, response) => {
  if (request.method !== "POST") {
    response.writeHead(405).end();
    return;
  }
  let text = "";
  request.on("data", (part) => (text += part));
  request.on("end", () => {
    const session = sessions.get(request.headers["mcp-session-id"]) ?? begin();
    answer(text, session, response);
  });
});
bridge.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${bridge.address().port}/mcp`));
