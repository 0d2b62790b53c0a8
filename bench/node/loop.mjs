// A bare loop of the official client: node loop.mjs SERVER CALLS
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [server, calls] = process.argv.slice(2);
const client = new Client({ name: "loop", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command: process.execPath, args: [server] }));
await client.listTools();
const call = async message => {
	const r = await client.callTool({ name: "echo", arguments: { message } });
	if (r.content[0].text !== message) throw new Error("not an echo: " + JSON.stringify(r));
};
for (let i = 0; i < 50; i++) await call("warm " + i);
const began = Date.now();
for (let i = 0; i < calls; i++) await call("message " + i);
console.log(Date.now() - began);
await client.close();
