// Who imports whom among the packages of this module, and what nobody imports.
const module = (await tools.read_file({ file_path: "go.mod" })).output.match(/^module (\S+)/m)[1];
const { files } = (await tools.glob({ pattern: "**/*.go" })).structuredContent;
const graph = new Map();
await Promise.all(
  files
    .filter((f) => !f.endsWith("_test.go"))
    .map(async (f) => {
      const source = (await tools.read_file({ file_path: f })).output;
      const dir = f.includes("/") ? f.slice(0, f.lastIndexOf("/")) : ".";
      const head = source.slice(0, source.search(/^(?:func|type|var|const) /m) >>> 0);
      const own = [...head.matchAll(/"([^"\n]+)"/g)]
        .map((m) => m[1])
        .filter((p) => p.startsWith(module + "/"))
        .map((p) => p.slice(module.length + 1));
      const set = graph.getOrInsert(dir, new Set());
      for (const p of own) set.add(p);
    }),
);

const importers = new Map();
for (const [from, all] of graph) for (const to of all) importers.set(to, (importers.get(to) ?? 0) + 1);
const byName = [...graph.keys()].sort();
for (const p of byName) text(`${p}: imports ${graph.get(p).size}, imported by ${importers.get(p) ?? 0}`);
