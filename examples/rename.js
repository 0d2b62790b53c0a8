// Replaces a word in every file that holds it, and says where. Edits ask for
// approval: run it with --approval-mode auto-edit, or answer the questions.
const from = "colour";
const to = "color";

const { matches } = (await tools.grep_search({ pattern: `\\b${from}\\b` })).structuredContent;
const files = [...new Set(matches.map((m) => m.path))];
const results = await Promise.all(
  files.map(async (path) => {
    try {
      const before = (await tools.read_file({ file_path: path })).output;
      const content = before.replace(new RegExp(`\\b${from}\\b`, "g"), to);
      await tools.write_file({ file_path: path, content });
      return `${path}: ${matches.filter((m) => m.path === path).length} line(s)`;
    } catch (e) {
      return `${path}: ${e.code}: ${e.message}`;
    }
  }),
);
for (const line of results.sort()) text(line);
text(`${files.length} file(s)`);
