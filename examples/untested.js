// The ten Go packages with the most exported names and no test.
const { files } = (await tools.glob({ pattern: "**/*.go" })).structuredContent;
const sources = await Promise.all(
  files.map(async (path) => ({ path, text: (await tools.read_file({ file_path: path })).output })),
);

const packages = new Map();
for (const { path, text } of sources) {
  const dir = path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : ".";
  const p = packages.getOrInsert(dir, { dir, exported: new Set(), tests: 0 });
  if (path.endsWith("_test.go")) {
    p.tests++;
    continue;
  }
  for (const m of text.matchAll(/^(?:func (?:\([^)]*\) )?|type |var |const )([A-Z]\w*)/gm)) {
    p.exported.add(m[1]);
  }
}

const rows = [...packages.values()]
  .filter((p) => p.tests === 0 && p.exported.size > 0)
  .sort((a, b) => b.exported.size - a.exported.size || (a.dir < b.dir ? -1 : 1))
  .slice(0, 10);
text(`${files.length} Go files in ${packages.size} directories; most exported names without a test:`);
for (const p of rows) text(`${String(p.exported.size).padStart(4)}  ${p.dir}`);
