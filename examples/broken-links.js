// Relative links in Markdown files that lead nowhere.
const { files } = (await tools.glob({ pattern: "**/*.md" })).structuredContent;
const pages = await Promise.all(
  files.map(async (path) => ({ path, text: (await tools.read_file({ file_path: path })).output })),
);

const links = [];
for (const { path, text } of pages) {
  const dir = path.split("/").slice(0, -1);
  const prose = text.replace(/^```[^]*?^```/gm, "").replace(/`[^`\n]*`/g, "");
  for (const [, target] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z][a-z+.-]*:|^#/i.test(target)) continue;
    const parts = [...dir];
    for (const step of decodeURI(target.replace(/[#?].*$/, "")).split("/")) {
      if (step === "..") parts.pop();
      else if (step !== "." && step !== "") parts.push(step);
    }
    links.push({ path, target, file: parts.join("/") || "." });
  }
}

// One directory listing answers for all links into it.
const parent = (file) => (file.includes("/") ? file.slice(0, file.lastIndexOf("/")) : ".");
const names = new Map();
await Promise.all(
  [...new Set(links.map((l) => parent(l.file)))].map(async (dir) => {
    try {
      const { entries } = (await tools.list_directory({ path: dir })).structuredContent;
      names.set(dir, new Set(entries.map((e) => e.name)));
    } catch {
      names.set(dir, new Set()); // no such directory: every link into it is broken
    }
  }),
);

const broken = links.filter((l) => l.file !== "." && !names.get(parent(l.file)).has(l.file.split("/").pop()));
text(`${links.length} relative links in ${files.length} Markdown files, ${broken.length} broken`);
for (const b of broken) text(`${b.path}: ${b.target}`);
