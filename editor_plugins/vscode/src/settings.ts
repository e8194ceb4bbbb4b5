/**
 * The server's settings as a person has set them. Defaults are not sent: they stay with the server,
 * whose own file and environment may say otherwise.
 */

export const SECTION = "foregram";
const OWN = "server."; // the extension's own settings

export type Settings = Readonly<Record<string, unknown>>;

const SCOPES = ["globalValue", "workspaceValue", "workspaceFolderValue"];

/** The part of VS Code's WorkspaceConfiguration that is asked. */
export interface Configuration {
  get(key: string): unknown;
  inspect(key: string): Readonly<Record<string, unknown>> | undefined;
}

/** The names of the server's settings among those that package.json declares. */
export function serverKeys(declared: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(declared)
    .map((key) => key.slice(SECTION.length + 1))
    .filter((key) => !key.startsWith(OWN));
}

/**
 * What somebody has set, in any scope, wrong types too: the server names them. An empty text is a
 * field that was cleared.
 */
export function chosenSettings(configuration: Configuration, keys: readonly string[]): Settings {
  const chosen = keys.filter((key) => {
    const at = configuration.inspect(key);
    return SCOPES.some((scope) => at?.[scope] !== undefined);
  });
  const values = chosen.map((key) => [key, configuration.get(key)] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== ""));
}

const VARIABLES: Readonly<Record<string, string>> = {
  cacheFolder: "FOREGRAM_CACHE",
  runtimeFolder: "FOREGRAM_RUNTIME",
};

/** The same settings for commands such as `foregram doctor`, which read the environment. */
export function environmentOf(settings: Settings): Record<string, string> {
  const entries = Object.entries(settings).filter(
    ([, value]) => value !== undefined && value !== null,
  );
  return Object.fromEntries(entries.map(([key, value]) => [variableOf(key), textOf(value)]));
}

function variableOf(key: string): string {
  const words = key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
  return VARIABLES[key] ?? `FOREGRAM_${words}`;
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) {
    return value.join(",");
  }
  if (typeof value === "object" && value !== null) {
    return Object.entries(value)
      .map(([name, one]) => `${name}=${String(one)}`)
      .join(",");
  }
  return String(value);
}
