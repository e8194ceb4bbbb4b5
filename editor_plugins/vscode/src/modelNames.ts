/** The models that a person is offered, what they cost, and names that are surely wrong. No editor. */

export interface OfferedModel {
  readonly label: string;
  readonly description: string;
}

/** Sizes are those of the weights as the hub has them, in bfloat16; a bare one is Qwen2.5-Coder's. */
export const MODELS: readonly OfferedModel[] = [
  {
    label: "offline",
    description: "0.5B Instruct as installed: downloads nothing, takes 1.7 GB of memory",
  },
  { label: "auto", description: "what this machine's GPU runs well; without one, offline" },
  { label: "0.5b", description: "0.5B base, made to fill in code: downloads 1.0 GB" },
  { label: "1.5b", description: "downloads 3.1 GB, for a fast CPU or a GPU" },
  { label: "3b", description: `downloads 6.2 GB, ${onGpu(8)}` },
  { label: "7b", description: `downloads 15.2 GB, ${onGpu(17)}` },
  { label: "14b", description: `downloads 29.5 GB, ${onGpu(32)}` },
  { label: "32b", description: `downloads 65.5 GB, ${onGpu(68)}` },
  { label: "mellum-4b", description: `Mellum of JetBrains: downloads 8.0 GB, ${onGpu(10)}` },
  { label: "seed-coder-8b", description: `Seed-Coder: downloads 16.5 GB, ${onGpu(18)}` },
];

/** With a little more memory than the weights take. */
function onGpu(gigabytes: number): string {
  return `for a GPU with ${gigabytes} GB free, else slow on the CPU`;
}

/** What to call a model in a sentence. */
export function titleOf(model: string): string {
  return model === "" ? "the server's own model" : model;
}

/** What the list of models says on top: the one that runs, or else the one that is set. */
export function questionFor(running: string | undefined, configured: string): string {
  const set = configured === "" ? "" : `; ${configured} is set now`;
  const now = running === undefined ? set : `; ${running} runs now`;
  return `Sizes of Qwen2.5-Coder, or another model${now}`;
}

/** What the server says of a name. */
export interface CheckedName {
  readonly ok: boolean;
  readonly sentence?: string;
  readonly near?: readonly string[];
}

export function isChecked(value: unknown): value is CheckedName {
  return typeof value === "object" && value !== null && "ok" in value;
}

/** What a person has to read before the name is taken; undefined where nothing is wrong. */
export function objectionTo({
  ok,
  sentence = "it is no model",
  near = [],
}: CheckedName): string | undefined {
  const isSaid = near.length === 0 || sentence.includes("did you mean");
  const hint = isSaid ? "" : `; did you mean ${near.join(" or ")}?`;
  return ok ? undefined : `${sentence}${hint}`;
}
