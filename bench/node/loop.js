// The same as loop.mjs, as a program of Capstan. CALLS is put in front.
const call = async message => {
	const r = await tools.mcp__echo__echo({ message });
	if (r.content[0].text !== message) throw new Error("not an echo: " + JSON.stringify(r));
};
for (let i = 0; i < 50; i++) await call("warm " + i);
const began = Date.now();
for (let i = 0; i < CALLS; i++) await call("message " + i);
text(Date.now() - began);
