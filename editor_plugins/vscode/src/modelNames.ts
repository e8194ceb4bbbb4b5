/** What the server says of models and their names. No editor. */

export interface OfferedModel {
  readonly name: string;
  readonly description: string;
}

export function areOffered(value: unknown): value is readonly OfferedModel[] {
  return (
    Array.isArray(value) &&
    value.every((one: unknown) => typeof one === "object" && one !== null && "name" in one)
  );
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
