/** What a nested call resolves to. `output` is the text, `structuredContent` the typed value. */
interface Result<T = unknown> {
  callId: string;
  name: string;
  status: "success";
  output: string;
  content: Content[];
  structuredContent: T;
  /** The text was cut; `file` holds the whole. */
  truncated?: true;
  file?: string;
  /** What was done to the arguments to make them valid. */
  notes?: string[];
}
type Content =
  | { type: "text"; text: string }
  | { type: "image" | "audio"; mimeType: string; data: string; text?: string; uri?: string }
  | { type: "resource"; resource: { uri: string; mimeType?: string; text?: string; blob?: string } }
  | { type: "resource_link"; uri: string; name?: string; description?: string; mimeType?: string };
/** What a nested call rejects with. */
interface ToolCallError extends Error {
  name: "ToolCallError";
  tool: string;
  callId: string;
  code: string;
}
/** All tools that can be called, also those not declared below. */
declare const ALL_TOOLS: { name: string; jsName: string; description: string; deferred: boolean }[];
/** Prints a line: a string as it is, any other value as JSON. */
declare function text(value: unknown): void;
/** Prints an image or a sound: a content block, a data: URL, or base64 data with its type. */
declare function image(value: string | { mimeType: string; data: string }): void;
declare function audio(value: string | { mimeType: string; data: string }): void;
/** Ends the program. */
declare function exit(): never;
